#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Table 2: throughput and latency of a queue pair alone, and beside one with large messages.

usage: scr_table_2.py BUILD_FOLDER

Runs configs/sim/scr/table_2.yaml, to which the greedy scheduler was fitted. Columns "paper" have what the table states.
"""
from closed_loops import arguments, run_all, table

PAPER = {"throughput_alone": 88.30, "throughput": 33.25, "beside_throughput": 57.64, "latency_alone": 2.44, "latency": 5.31,
         "beside_latency": 90.57}


def main():
    options = arguments(__doc__)
    run = run_all(options, "scr/table_2.yaml", [{}])[0][0]

    def cells(name):
        row = run.workload(name)
        is_time = name.startswith("latency")
        ours = row["details"]["t_typical_ns"] / 1e3 if is_time else row["goodput_bits_per_second"] / 1e9
        return [f"{PAPER[name]:.2f}", f"{ours:.2f}"]

    rows = [["4 KB, Gbps", *cells("throughput_alone"), *cells("throughput"), *cells("beside_throughput")],
            ["256 B, us", *cells("latency_alone"), *cells("latency"), *cells("beside_latency")]]
    table(("messages", "alone: paper", "ours", "competing: paper", "ours", "64 KB, Gbps: paper", "ours"), rows)


if __name__ == "__main__":
    main()
