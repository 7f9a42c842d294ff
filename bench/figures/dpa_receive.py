# SPDX-License-Identifier: BSD-3-Clause
"""What the figures of receive sides on a DPA share: the costs, which are fitted to Allgather's Table I and to SDR's 15 million packets a
second and to nothing else, and runs of configs/sim/dpa_receive.yaml."""
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


def error(ours, paper):
    return f"{100 * (ours / paper - 1):+.0f}%"


def statements(rows):
    """What the paper's text states, ours, and the error of a number or whether an order holds."""
    print("\nwhat the text states")
    table(("statement", "paper", "ours", "error or verdict"), rows)


__all__ = ["arguments", "measure", "table", "error", "statements", "UC", "UD", "SDR", "TABLE_1", "LINK", "CHUNK", "CLOCK", "SMALL", "RATE_1600"]
