#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 14: throughput of the receive side at 400 Gbit/s with chunks of 64 KiB (16 packets), by DPA threads.

usage: sdr_figure_14.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml with the program `chunks`. Fitted are Allgather's Table I (a CQE) and SDR's 15 million packets a second
of 16 threads with chunks of one packet (the write to the host's bitmap); "paper" is what the text of 5.4.1 states. What a new receive
costs (slot, memory key, bitmap) no text states, so that throughput by message size, the left half, is not predicted.
"""
from dpa_receive import SDR, arguments, measure, statements, table

THREADS = (1, 2, 4, 8, 16)
FULL = 0.95


def main():
    options = arguments(__doc__)
    points = measure(options, [{**SDR, "rate": "400Gbps", "chunk": 16, "threads": n, "time": "300us"} for n in THREADS])
    table(("threads", "Gbit/s", "what comes"),
          [[n, f"{point.gbps():.1f}", f"{point.arriving * 4096 * 8 / 1e9:.1f}"] for n, point in zip(THREADS, points)])
    full = points[-1].rate >= FULL * points[-1].arriving
    statements([["16 threads, 1/16 of the DPA, sustain 400 Gbit/s", "yes", f"{points[-1].gbps():.0f} Gbit/s", "holds" if full else "does not hold"],
                ["from messages of 512 KiB on", "yes", "not modelled", "-"],
                ["below 512 KiB behind RC Writes", "yes", "not modelled", "-"]])


if __name__ == "__main__":
    main()
