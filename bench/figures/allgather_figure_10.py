#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 10: what the protocol's critical path is made of: the barrier before (RNR synchronisation), the multicast itself, the
final handshake; by ranks and bytes of a rank.

usage: allgather_figure_10.py BUILD_FOLDER [--jobs N]

Runs configs/sim/allgather/throughput.yaml. The paper counts CPU time, ours is time on the way: hosts here take none, so a wait for a message
counts in full. "paper" is what the text of VI-B states, nothing read off the plot.
"""
from closed_loops import arguments, run_all, table

HOSTS = (2, 4, 8, 16, 64, 188)
BLOCKS = (4, 64)  # KiB
PARTS = ("barrier", "data", "handshake")


def main():
    options = arguments(__doc__)
    shape = {"leaves": 12, "spines": 6, "wires": 3}
    keys = [(kib, hosts) for kib in BLOCKS for hosts in HOSTS]
    points = [{**shape, "leaves": min(12, hosts), "hosts": hosts, "block": f"{kib}KiB", "buffer": f"{kib * hosts}KiB", "message": "4KiB"}
              for kib, hosts in keys]
    rows, shares = [], {}
    for key, (run, *_) in zip(keys, run_all(options, "allgather/throughput.yaml", points)):
        details = run.workload("multicast")["details"]
        times = [details[f"mean_{part}_time_ns"] for part in PARTS]
        shares[key] = times[1] / sum(times)
        rows.append((f"{key[0]} KiB", key[1], *(f"{ns / 1000:.1f}" for ns in times), f"{100 * shares[key]:.1f}%"))
    table(("Allgather", "ranks", "barrier, us", "multicast, us", "final handshake, us", "multicast's share"), rows)
    print("\nwhat the text states")

    def grows(values):
        return "holds" if all(b >= a for a, b in zip(values, values[1:])) else "does not hold"

    largest, many = max(BLOCKS), [shares[key] for key in keys if key[1] >= 16]
    table(("statement", "paper", "ours", "verdict"),
          [("multicast's share grows with the ranks", "yes", f"{100 * shares[largest, 2]:.0f}% to {100 * shares[largest, 188]:.0f}%",
            grows([shares[largest, hosts] for hosts in HOSTS])),
           ("multicast's share grows with the message", "yes", f"{100 * shares[BLOCKS[0], 16]:.0f}% to {100 * shares[largest, 16]:.0f}%",
            grows([shares[kib, 16] for kib in BLOCKS])),
           ("from 16 ranks on its share is", "99%", f"{100 * min(many):.1f}% at least, {100 * max(many):.1f}% at most",
            "holds" if min(many) >= 0.99 else "not everywhere")])
    print("The differences: the paper's share is of CPU time, where a rank that waits for a message of the barrier spends none; in ours of "
          "the way's time each step of the barrier and the handshake counts, and a datagram takes only its time on the wire.")


if __name__ == "__main__":
    main()
