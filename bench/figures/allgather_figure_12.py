#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 12 of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": bytes over all switch ports of 188 nodes on 18
switches of 36 ports, of an Allgather of 64 KiB a rank and of a Broadcast of 64 KiB.

usage: allgather_figure_12.py BUILD_FOLDER [--block BYTES] [--message BYTES]

Runs configs/sim/allgather/traffic.yaml: twelve leaves with 15 or 16 hosts each, three wires to each of six spines, ranks in the order
of racks, one broadcasting root. The text states that multicast moves 1.5 to 2 times less than point-to-point algorithms (VI-B, d), and
1.5 times of a Broadcast, 2 times of an Allgather (IX), by port counters of both directions; which layout of the 18 switches and which order
of ranks it was it does not say.
"""
from allgather_shapes import algorithms, broadcasts, leaf_spine
from closed_loops import arguments, run_all, table

HOSTS, LEAVES = 188, 12
PAPER = {"ring": "1.5 to 2", "k_nomial": "1.5", "binary_tree": "1.5"}
SAYS = {"ring": "each byte is received and transmitted once more at each host; transmitted alone it is little more than multicast",
        "linear": "nearly each packet crosses two leaves and a spine: no algorithm of the paper's figure",
        "k_nomial": "UCC's order, farthest ranks first, in the order of racks: most edges stay within a rack",
        "binary_tree": "rank r sends to 2r + 1 and 2r + 2: nearly all edges cross racks"}


def show(title, run, shapes, base):
    rows = []
    for name, (received, transmitted) in shapes.items():
        mine = next(row for row in run.report["traffic"] if row["workloads"] == name)
        rows.append((name, received + transmitted, mine["port_bytes"], f"{(received + transmitted) / sum(shapes[base]):.2f}",
                     f"{mine['port_bytes'] / next(row for row in run.report['traffic'] if row['workloads'] == base)['port_bytes']:.2f}",
                     f"{transmitted / shapes[base][1]:.2f}", PAPER.get(name, "-")))
    print(title)
    table(("algorithm", "payload, closed form", "simulated, all frames", "payload to multicast", "frames to multicast",
           "payload transmitted alone", "paper"), rows)


def main():
    options = arguments(__doc__, block=(65536, "bytes of each rank's block"), message=(65536, "bytes of the Broadcast"))
    settings = {"block": f"{options.block}B", "buffer": f"{options.block * HOSTS}B", "message": f"{options.message}B"}
    run = run_all(options, "allgather/traffic.yaml", [settings])[0][0]
    tree = leaf_spine(HOSTS, LEAVES)
    show(f"Allgather, {options.block} bytes a rank", run, algorithms(tree, options.block), "multicast")
    show(f"Broadcast, {options.message} bytes", run, broadcasts(tree, options.message), "cast")
    for name, why in SAYS.items():
        print(f"{name}: {why}")


if __name__ == "__main__":
    main()
