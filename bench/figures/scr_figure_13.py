#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 13: latency of small messages beside a queue pair that wants the port.

usage: scr_figure_13.py BUILD_FOLDER

The text: water filling reduces the latency by up to 52.8% against the default, and the bandwidth of the other is the default's; static
halves that.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps

ALGORITHMS = ("default", "static", "water filling")


def main():
    options = arguments(__doc__)
    runs = [runs[0] for runs in run_all(options, "scr/figure_13.yaml", [{"algorithm": one} for one in range(3)])]
    latency = [run.workload("latency")["details"]["t_typical_ns"] / 1000 for run in runs]
    rows = [[ALGORITHMS[i], f"{latency[i]:.2f}", f"{100 * (1 - latency[i] / latency[0]):.1f}%", f"{gbps(runs[i], 'bandwidth'):.1f}"]
            for i in range(3)]
    table(("algorithm", "latency, us", "less than default", "Gbps of the other"), rows)
    print(f"water filling against default: paper up to -52.8%, ours -{100 * (1 - latency[2] / latency[0]):.1f}%")


if __name__ == "__main__":
    main()
