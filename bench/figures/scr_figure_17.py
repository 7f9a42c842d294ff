#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 17: fairness and use of the port with many queue pairs that READ; it is the responder that paces.

usage: scr_figure_17.py BUILD_FOLDER

The text (A.5): results of READ are similar to those of WRITE in Figure 12, which stand beside them.
"""
from closed_loops import arguments, run_all, table
from scr_figure_12 import ALGORITHMS, point, rates_of
from scr_kit import jain


def main():
    options = arguments(__doc__)
    points = [point(verb, qps, algorithm) for qps in (4, 16, 128) for algorithm in range(3) for verb in ("read_bw", "write_bw")]
    runs = [rates_of(run) for run, *_ in run_all(options, "scr/figure_12.yaml", points)]
    rows, similar = [], True
    for number in range(0, len(points), 2):
        read, write = runs[number], runs[number + 1]
        similar &= abs(jain(read) - jain(write)) < 0.1 and abs(sum(read) / sum(write) - 1) < 0.1
        rows.append([points[number]["qps"], ALGORITHMS[points[number]["algorithm"]], f"{jain(read):.3f}", f"{jain(write):.3f}",
                     f"{sum(read):.1f}", f"{sum(write):.1f}"])
    table(("queue pairs", "algorithm", "Jain, READ", "WRITE", "Gbps together, READ", "WRITE"), rows)
    print("paper: results of READ are similar to those of WRITE; ours, within 10 points:", "so they are" if similar else "NOT so")


if __name__ == "__main__":
    main()
