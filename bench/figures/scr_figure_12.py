#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figures 12 and 17: fairness and use of the port with many queue pairs, WRITE and READ.

usage: scr_figure_12.py BUILD_FOLDER

The text: static and water filling have up to 1.88 times the index of the default (4 queue pairs, 0.51 to 0.96); all three use nearly all
of the line; without the bound of 1 Gbps static does not beyond 100 flows (12b); READs are similar (17). Here flows are 8 and more.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps, jain

ALGORITHMS = ("default", "static", "water filling")


def main():
    options = arguments(__doc__)
    points = [{"verb": verb, "qps": qps, "algorithm": algorithm, "time": f"{max(4, 3 * qps)}ms"} for verb in ("write_bw", "read_bw") for qps in (1, 4, 16)
              for algorithm in range(3)]
    points += [{"qps": 32, "time": "60ms", "algorithm": 1, "low_rate_loss": "30%", "bound": bound} for bound in (1_000_000_000, 100_000_000)]
    rows = []
    for point, (run, *_) in zip(points, run_all(options, "scr/figure_12.yaml", points)):
        rates = [gbps(run, f"f{i}") for i in range(8)]
        name = ALGORITHMS[point["algorithm"]]
        if "bound" in point:
            name += f", bound {point['bound'] / 1e9:g} Gbps"
        rows.append([point.get("verb", "write_bw"), 8 * point["qps"], name, f"{jain(rates):.3f}", f"{sum(rates):.1f}"])
    table(("verb", "queue pairs", "algorithm", "Jain", "Gbps together"), rows)
    gain = max(float(rows[i + k][3]) / float(rows[i][3]) for i in range(0, 9, 3) for k in (1, 2))
    print(f"fairness against default, most: paper 1.88 (at 4 queue pairs), ours {gain:.2f}")


if __name__ == "__main__":
    main()
