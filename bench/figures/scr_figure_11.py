#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 11: two tenants with messages of unlike size under the three algorithms: Jain's index and the port's use.

usage: scr_figure_11.py BUILD_FOLDER

The text: water filling has up to 1.78 times the fairness index of the default (4 KB against 1 MB); static is the fairest, and starves
large messages at half the port beside small ones that do not use theirs (256 B).
"""
from closed_loops import arguments, run_all, table
from scr_kit import explain, gbps, jain

ALGORITHMS = ("default", "static", "water filling")
PAIRS = (("256B", "1MiB"), ("4KiB", "64KiB"), ("4KiB", "1MiB"), ("64KiB", "1MiB"), ("1MiB", "1MiB"))


def main():
    options = arguments(__doc__)
    points = [{"algorithm": algorithm, "first": first, "second": second, "first_depth": 4, "second_depth": 4}
              for first, second in PAIRS for algorithm in range(3)]
    runs = [runs[0] for runs in run_all(options, "scr/fair.yaml", points)]
    rows, best = [], 0.0
    for number, pair in enumerate(PAIRS):
        three = runs[3 * number:3 * number + 3]
        rates = [(gbps(run, "first"), gbps(run, "second")) for run in three]
        index = [jain(pair) for pair in rates]
        best = max(best, index[2] / index[0])
        for algorithm in range(3):
            rows.append([" / ".join(pair), ALGORITHMS[algorithm], f"{rates[algorithm][0]:.1f}", f"{rates[algorithm][1]:.1f}",
                         f"{sum(rates[algorithm]):.1f}", f"{index[algorithm]:.3f}"])
    table(("messages", "algorithm", "first, Gbps", "second", "together", "Jain"), rows)
    explain("water filling against default, most", 1.78, best,
            "the greedy scheduler, which stands for theirs, was fitted to Table 2 alone, and shares go by size there. Of two flows 2 is the most that there can be")


if __name__ == "__main__":
    main()
