#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 12 of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": bytes over all switch ports of 188 nodes on 18
switches of 36 ports, of an Allgather of 64 KiB a rank.

usage: allgather_figure_12.py BUILD_FOLDER [--block BYTES]

Runs configs/sim/allgather/traffic.yaml: twelve leaves with 15 or 16 hosts each, three wires to each of six spines, ranks in the order
of racks, one broadcasting root. The text states 1.5 to 2 times for point-to-point algorithms against multicast (VI-B, d), of port
counters of both directions; which layout of the 18 switches it was it does not say.
"""
from allgather_shapes import algorithms, leaf_spine
from closed_loops import arguments, run_all, table

HOSTS, LEAVES = 188, 12
PAPER = {"ring": "1.5 to 2", "multicast": "1"}
SAYS = {"ring": "each byte is received and transmitted once more at each host; transmitted alone it is little more than multicast",
        "linear": "nearly each packet crosses two leaves and a spine: no algorithm of the paper's figure"}


def main():
    options = arguments(__doc__, block=(65536, "bytes of each rank's block"))
    run = run_all(options, "allgather/traffic.yaml", [{"block": f"{options.block}B", "buffer": f"{options.block * HOSTS}B"}])[0][0]
    shapes = algorithms(leaf_spine(HOSTS, LEAVES), options.block)
    base = {way: shapes["multicast"][way] for way in (0, 1)}
    rows = []
    for name, (received, transmitted) in shapes.items():
        mine = next((row for row in run.report["traffic"] if row["workloads"] == name), None)
        rows.append((name, received + transmitted, mine["port_bytes"] if mine else "-",
                     f"{(received + transmitted) / (base[0] + base[1]):.2f}", f"{transmitted / base[1]:.2f}", PAPER.get(name, "-")))
    table(("algorithm", "payload, closed form", "simulated, all frames", "to multicast", "transmitted alone", "paper"), rows)
    for name, why in SAYS.items():
        print(f"{name}: {why}")


if __name__ == "__main__":
    main()
