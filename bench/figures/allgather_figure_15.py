#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 15: UC with chunks of several packets: how many threads of a DPA the line rate needs, by a chunk's size.

usage: allgather_figure_15.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml: a CQE for each chunk, with the cycles of Table I. "paper" is what the text of VI-C states, nothing read
off the plot.
"""
from dpa_receive import UC, arguments, measure, statements, table

KIB = (4, 8, 16, 32, 64)
THREADS = (1, 2, 4)
FULL = 0.95  # of what comes


def main():
    options = arguments(__doc__)
    points = [{**UC, "size": f"{kib}KiB", "threads": n, "time": "1ms"} for kib in KIB for n in THREADS]
    measured = dict(zip([(kib, n) for kib in KIB for n in THREADS], measure(options, points)))
    rows, needed = [], []
    for kib in KIB:
        mine = [measured[kib, n] for n in THREADS]
        needed.append(next((n for n, point in zip(THREADS, mine) if point.rate >= FULL * point.arriving), THREADS[-1] + 1))
        rows.append((f"{kib} KiB", *(f"{point.gbps(kib * 1024):.1f}" for point in mine), f"{mine[-1].arriving * kib * 1024 * 8 / 1e9:.1f}",
                     needed[-1]))
    table(("chunk", *(f"{n} threads, Gbit/s" for n in THREADS), "what comes", "threads of the line rate"), rows)
    falls = all(a >= b for a, b in zip(needed, needed[1:])) and needed[-1] < needed[0]
    statements([("larger chunks: the line rate with fewer threads", "yes", " ".join(map(str, needed)), "holds" if falls else "does not hold")])


if __name__ == "__main__":
    main()
