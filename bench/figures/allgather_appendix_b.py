#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Appendix B of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": an Allgather and a ReduceScatter at once, by multicast and by
sums in the switches, against both by a ring: 2 - 2 / P times faster where N is large. Figure 3: what crosses a node's boundary meanwhile, which is
N (P - 1) of each ring both ways, and of the others N one way and N (P - 1) the other.

usage: allgather_appendix_b.py BUILD_FOLDER [--block KIB]

Runs configs/sim/allgather/appendix_b.yaml with four hosts a leaf and as many spines: a fabric that does not block, as the appendix has it. A rank in its turn shares its way out with its ReduceScatter, so one chain leaves
the way in half idle: CHAINS broadcast side by side, as many as switches have room for.
"""
from closed_loops import arguments, run_all, table

HOSTS_PER_LEAF = 4
CHAINS = {2: 4, 4: 4, 8: 3}  # by leaves


def at_the_node(window, ranks):
    """Bytes that a host sends and receives, all frames: what leaves have on their ports less what spines have."""
    return ((window["leaf_rx_bytes"] - window["spine_tx_bytes"]) / ranks, (window["leaf_tx_bytes"] - window["spine_rx_bytes"]) / ranks)


def main():
    options = arguments(__doc__, block=(1024, "KiB of each rank's block"))
    points = [{"leaves": n, "block": f"{options.block}KiB", "buffer": f"{options.block * n * HOSTS_PER_LEAF}KiB", "chains": chains}
              for n, chains in CHAINS.items()]
    rows, boundary = [], []
    for n, (run, *_) in zip(CHAINS, run_all(options, "allgather/appendix_b.yaml", points)):
        ranks = n * HOSTS_PER_LEAF
        took = {name: run.completion_ns(name) for name in ("ring_gather", "ring_scatter", "multicast_gather", "inc_scatter")}
        ring, ours = (max(took[a], took[b]) for a, b in (("ring_gather", "ring_scatter"), ("multicast_gather", "inc_scatter")))
        says = 2 - 2 / ranks
        rows.append((ranks, *(f"{took[name] / 1e3:.0f}" for name in took), f"{ring / ours:.3f}", f"{says:.3f}", f"{100 * (ring / ours / says - 1):+.1f}%"))
        block = options.block * 1024
        for window, what, stated in zip(run.report["traffic"], ("ring and ring", "multicast and switches"), (2 * (ranks - 1), ranks)):
            sent, received = (value / block for value in at_the_node(window, ranks))
            boundary.append((ranks, what, stated, f"{sent:.2f}", f"{received:.2f}", f"{100 * (max(sent, received) / stated - 1):+.1f}%"))
    table(("ranks", "ring Allgather, us", "ring ReduceScatter", "multicast Allgather", "ReduceScatter in switches", "speed-up", "2 - 2/P", "error"), rows)
    print("\nFigure 3: bytes at a node's boundary, in N")
    table(("ranks", "Allgather and ReduceScatter by", "paper, each way", "sent", "received", "headers, acknowledgements"), boundary)


if __name__ == "__main__":
    main()
