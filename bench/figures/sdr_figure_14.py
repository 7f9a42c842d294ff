#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 14: throughput of the receive side at 400 Gbit/s with chunks of 64 KiB (16 packets), by DPA threads.

usage: sdr_figure_14.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml with the program `chunks`. Fitted are Allgather's Table I (a CQE) and SDR's 15 million packets a second
of 16 threads with chunks of one packet (the write to the host's bitmap); "paper" is what the text of 5.4.1 states.

What a new receive costs (slot, memory key, bitmap) no text states. The left half, throughput by message size, is therefore no prediction: it
takes the receive that just keeps up with the line at 512 KiB, the size from which the text says that SDR does, and shows what follows for
other sizes where the server, as its text has it, posts one receive after the other.
"""
from dpa_receive import SDR, arguments, measure, statements, table

THREADS = (1, 2, 4, 8, 16)
SIZES = tuple(1 << n for n in range(12, 25))
FULL_SIZE = 512 << 10
LINE = 400e9
FULL = 0.95


def left_half(threads_rate):
    """The cost of a receive in seconds, and Gbit/s by size: what the line has, the threads do, and receives are posted for."""
    receive = FULL_SIZE * 8 / LINE
    return receive, [min(threads_rate, size * 8 / receive) / 1e9 for size in SIZES]


def main():
    options = arguments(__doc__)
    points = measure(options, [{**SDR, "rate": "400Gbps", "chunk": 16, "threads": n, "time": "300us"} for n in THREADS])
    table(("threads", "Gbit/s", "what comes"),
          [[n, f"{point.gbps():.1f}", f"{point.arriving * 4096 * 8 / 1e9:.1f}"] for n, point in zip(THREADS, points)])
    full = points[-1].rate >= FULL * points[-1].arriving
    receive, by_size = left_half(min(points[-1].gbps() * 1e9, LINE))
    print(f"\nleft half: 16 threads, a receive taken to cost {receive * 1e6:.1f} us, with which messages of 512 KiB just keep up")
    table(("message, KiB", "Gbit/s", "to 512 KiB"),
          [[size >> 10, f"{gbps:.1f}", f"{gbps / by_size[SIZES.index(FULL_SIZE)]:.3f}"] for size, gbps in zip(SIZES, by_size)])
    statements([["16 threads, 1/16 of the DPA, sustain 400 Gbit/s", "yes", f"{points[-1].gbps():.0f} Gbit/s", "holds" if full else "does not hold"],
                ["from messages of 512 KiB on", "yes", f"a receive costs at most {receive * 1e6:.1f} us", "fitted"],
                ["below 512 KiB behind RC Writes", "yes", f"and no less: {by_size[SIZES.index(FULL_SIZE >> 1)]:.0f} Gbit/s at 256 KiB",
                 "follows from the fit"]])


if __name__ == "__main__":
    main()
