# SPDX-License-Identifier: BSD-3-Clause
"""What the figures of receive sides on a DPA share: the costs, which are fitted to Allgather's Table I and to SDR's 15 million packets a
second and to nothing else; runs of configs/sim/dpa_receive.yaml, where the kernel `dpa` counts what passes, and of
configs/sim/allgather/dpa_receive.yaml, where the collective's own handlers run."""
from closed_loops import arguments, run_all, table

CLOCK = 1.8e9
LINK = 200e9                      # of Allgather's DPA testbed
CHUNK = 4096
UC = {"cycles": 598, "instructions": 66}     # Table I
UD = {"cycles": 1084, "instructions": 113}
TABLE_1 = {"UC": (11.9, 66, 598, 0.11), "UD": (5.2, 113, 1084, 0.1)}
# 16 threads and 15 million packets a second with chunks of one packet: 1920 cycles a packet, of which the CQE takes UC's 598.
WINDOW_WRITE = 16 * CLOCK / 15e6 - UC["cycles"]
SDR = {**UC, "window_write": round(WINDOW_WRITE), "program": "chunks"}
CQ_ENTRIES = 64                   # as in the configuration
# Chunks of 4096 B that a link of 1600 Gbit/s has in a second, which chunks of 64 B bring on a slower one.
RATE_1600 = 1600e9 / 8 / CHUNK
SMALL = {"size": "64B", "rate": "400Gbps", "time": "100us"}


class Point:
    """What one run came to: chunks a second that the threads were done with, and how many came."""

    def __init__(self, run, threads):
        seconds = run.workload("stream")["duration_ns"] / 1e9
        lost = run.count("cqes_lost")
        written = run.count("cqes")
        # Threads that are behind go on when nothing comes any more: what their queues held then is not of that time.
        done = written - CQ_ENTRIES * threads if lost else written
        self.rate = done / seconds
        self.arriving = (written + lost) / seconds

    def gbps(self, chunk=CHUNK):
        return self.rate * chunk * 8 / 1e9


def measure(options, points):
    """A Point for each dict of settings, which has `threads`."""
    runs = run_all(options, "dpa_receive.yaml", points)
    return [Point(run[0], point["threads"]) for run, point in zip(runs, points)]


class Handlers:
    """The same of a Broadcast to a leaf: its chunks in the time from the start of the collective to its release."""

    def __init__(self, run, chunk, rate, frame):
        details = run.workload("cast")["details"]
        self.rate = details["chunks_received"] / details["completion_time_ns"] * 1e9
        self.arriving = rate / 8 / frame
        self.chunk = chunk

    def gbps(self, chunk=None):
        return self.rate * (chunk or self.chunk) * 8 / 1e9


def handlers(options, transport, threads, chunk=CHUNK, rate=LINK, size=8 << 20, staging=None):
    """Handlers for each number of threads, a subgroup each. Datagrams are of a path MTU: 256 B at least. Staging, of all subgroups
    together, has room for twice of all that comes."""
    mtu = max(256, chunk)
    chunk = chunk if transport == "uc" else mtu
    # A datagram's own CQE and its copy's: each has half of what the table has for one.
    cost = {"cycles": UC["cycles"], "instructions": UC["instructions"]} if transport == "uc" else {
        "cycles": UD["cycles"] // 2, "instructions": UD["instructions"] // 2}
    points = [{**cost, "transport": transport, "subgroups": n, "mtu": mtu, "chunk": f"{chunk if transport == 'uc' else 0}B",
               "size": f"{size}B", "rate": f"{rate / 1e9:.0f}Gbps", "staging": f"{(staging or 2 * size // chunk * (mtu + 40)) // n}B"} for n in threads]
    # Ethernet with FCS, preamble and gap, IPv4, UDP, BTH, ICRC, immediate, and a DETH or a RETH.
    frame = chunk + 14 + 24 + 20 + 8 + 12 + 4 + 4 + (16 if transport == "uc" else 8)
    return [Handlers(runs[0], chunk, rate, frame) for runs in run_all(options, "allgather/dpa_receive.yaml", points)]


def error(ours, paper):
    return f"{100 * (ours / paper - 1):+.0f}%"


def statements(rows):
    """What the paper's text states, ours, and the error of a number or whether an order holds."""
    print("\nwhat the text states")
    table(("statement", "paper", "ours", "error or verdict"), rows)


__all__ = ["arguments", "measure", "handlers", "table", "error", "statements", "UC", "UD", "SDR", "TABLE_1", "LINK", "CHUNK", "CLOCK", "SMALL", "RATE_1600"]
