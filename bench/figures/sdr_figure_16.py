#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 16: packets a second by DPA threads, Writes of 64 B, chunks of 16 packets.

usage: sdr_figure_16.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml with the program `chunks`; nothing here was fitted. "paper" is what the text of 5.4.3 states, and B.2. The
paper's client generates packets with four CPU threads, which may be its limit; here the wire is none.
"""
from dpa_receive import RATE_1600, SDR, SMALL, arguments, error, measure, statements, table

THREADS = (4, 8, 16, 32, 64, 128)


def main():
    options = arguments(__doc__)
    points = measure(options, [{**SDR, **SMALL, "chunk": 16, "threads": n} for n in THREADS])
    table(("threads", "M packets/s", "as Gbit/s of 4 KiB", "to 4 threads"),
          [[n, f"{point.rate / 1e6:.1f}", f"{point.gbps():.0f}", f"{point.rate / points[0].rate:.2f}"] for n, point in zip(THREADS, points)])
    by_threads = dict(zip(THREADS, points))
    linear = by_threads[32].rate / by_threads[4].rate
    statements([["32 threads to 4 (nearly linear)", "about 8", f"{linear:.2f}", error(linear, 8)],
                ["32 threads, near 1.6 Tbit/s, M packets/s", f"{RATE_1600 / 1e6:.1f}", f"{by_threads[32].rate / 1e6:.1f}",
                 error(by_threads[32].rate, RATE_1600)],
                ["128 threads, close to 3.2 Tbit/s, M packets/s", f"{2 * RATE_1600 / 1e6:.1f}", f"{by_threads[128].rate / 1e6:.1f}",
                 error(by_threads[128].rate, 2 * RATE_1600)],
                ["128 threads, by the artifact's description, M packets/s", "over 90", f"{by_threads[128].rate / 1e6:.1f}",
                 "holds" if by_threads[128].rate > 90e6 else "does not hold"]])


if __name__ == "__main__":
    main()
