#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 2 of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": traffic of Allgather algorithms over a fat tree of
1024 nodes at switches of radix 32, a model in the paper.

usage: allgather_figure_2.py BUILD_FOLDER [--block BYTES] [--k N] [--pods N]

Runs configs/sim/allgather/fat_tree_traffic.yaml with four of 32 pods, ranks in the order of racks. The text says "2x lower network
bandwidth usage" (II-A) of multicast; against which algorithms it leaves to the plot, of which nothing is read.
"""
from allgather_shapes import algorithms, fat_tree
from closed_loops import arguments, run_all, table


def main():
    options = arguments(__doc__, block=(4096, "bytes of each rank's block"), k=(32, "ports of a switch"), pods=(4, "pods that are there"))
    tree = fat_tree(options.k, options.pods)
    settings = {"k": options.k, "pods": options.pods, "block": f"{options.block}B", "buffer": f"{options.block * len(tree)}B"}
    run = run_all(options, "allgather/fat_tree_traffic.yaml", [settings])[0][0]
    shapes = algorithms(tree, options.block)
    base = sum(shapes["multicast"])
    rows = []
    for name, (received, transmitted) in shapes.items():
        mine = next((row for row in run.report["traffic"] if row["workloads"] == name), None)
        rows.append((name, received + transmitted, mine["port_bytes"] if mine else "-", f"{(received + transmitted) / base:.2f}",
                     f"{transmitted / shapes['multicast'][1]:.2f}"))
    print(f"{len(tree)} hosts, switches of {options.k} ports, {options.block} bytes a rank")
    table(("algorithm", "payload, closed form", "simulated, all frames", "to multicast", "transmitted alone"), rows)
    print('the text states: "2x lower network bandwidth usage", against what it does not say')


if __name__ == "__main__":
    main()
