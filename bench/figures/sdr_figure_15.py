#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 15: packets a second of 16 DPA threads by packets of a chunk, Writes of 64 B, and the chance that a chunk is dropped.

usage: sdr_figure_15.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml with the program `chunks`. The first row is what the model was fitted to; the others are predicted.
"paper" is what the text of 5.4.2 states.
"""
from dpa_receive import CHUNK, SDR, SMALL, arguments, error, measure, statements, table

PACKETS = (1, 2, 4, 8, 16, 32, 64)
DROP = 1e-5
LINE = 11.6e6  # as the paper has it, of 400 Gbit/s with 4 KiB


def main():
    options = arguments(__doc__)
    points = measure(options, [{**SDR, **SMALL, "chunk": n, "threads": 16} for n in PACKETS])
    rows = [[n, f"{n * CHUNK // 1024} KiB", f"{point.rate / 1e6:.1f}", f"{1 - (1 - DROP) ** n:.2e}"] for n, point in zip(PACKETS, points)]
    table(("packets a chunk", "at 4 KiB a packet", "M packets/s", "chunk drop"), rows)
    first, last = points[0].rate, points[-1].rate
    statements([["chunks of 1 packet, M packets/s (fitted)", 15, f"{first / 1e6:.1f}", error(first, 15e6)],
                ["chunks of 1 packet reach line rate, M packets/s", f"at least {LINE / 1e6:.1f}", f"{first / 1e6:.1f}",
                 "holds" if first >= LINE else "does not hold"],
                ["chunks of 64 packets reach line rate, M packets/s", f"at least {LINE / 1e6:.1f}", f"{last / 1e6:.1f}",
                 "holds" if last >= LINE else "does not hold"],
                ["1 packet is the worst case", "yes", "yes" if first == min(point.rate for point in points) else "no",
                 "holds" if first == min(point.rate for point in points) else "does not hold"]])


if __name__ == "__main__":
    main()
