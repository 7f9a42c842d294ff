#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 21: tenants with messages and depths of unlike size share a NIC, by its own scheduler and by water filling.

usage: scr_figure_21.py BUILD_FOLDER

The text: by default large messages, and deep queues, have more; with SCR all have the same, and the port is used as before.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps, jain


def main():
    options = arguments(__doc__)
    rows = []
    for name, (run, *_) in zip(("default", "water filling"), run_all(options, "scr/figure_21.yaml", [{"algorithm": 0}, {"algorithm": 2}])):
        for part, who in (("21a", [f"gpu{i}" for i in range(5)]), ("21b", ["shallow", "deep"])):
            rates = [gbps(run, one) for one in who]
            rows.append([part, name, " ".join(f"{rate:.1f}" for rate in rates), f"{sum(rates):.1f}", f"{jain(rates):.3f}"])
    table(("figure", "scheduler", "Gbps of each", "together", "Jain"), sorted(rows))


if __name__ == "__main__":
    main()
