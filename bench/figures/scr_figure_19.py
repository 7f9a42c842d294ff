#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 19b: paths by UDP source port are probed; one gets slower, then fails, then works again.

usage: scr_figure_19.py BUILD_FOLDER

The text: 10 us more on a path show, and its failure does, by a time-out of 100 us.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps, kernel

CUT = 2_000_000


def main():
    options = arguments(__doc__)
    points = [{"mode": 0}, {"mode": 1}, {"mode": 2, "recovery": "selective"}]
    rows = []
    for name, (run, *_) in zip(("least round trip", "PLB", "MP-RDMA"), run_all(options, "scr/paths.yaml", points)):
        nic = kernel(run, "h0")
        counters = nic["policy_counters"]
        moves = [row["at_ns"] for row in nic["scr_changes"] if row.get("udp_source_port_number")]
        after = [at - CUT for at in moves if CUT <= at < 3_000_000]
        rows.append([name, counters.get("failures", 0), counters.get("recoveries", 0), len(moves), f"{after[0] / 1000:.0f}" if after else "-",
                     f"{gbps(run, 'flow'):.1f}"])
    table(("mode", "failures seen", "recoveries", "moves", "us from the failure to a move", "Gbps"), rows)


if __name__ == "__main__":
    main()
