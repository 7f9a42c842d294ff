#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes on switch ports of Allgather algorithms, by tier, against closed forms: packets times headers and payload times
the ports that they cross, from the shape of the network alone."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

CONFIG = HERE.parent.parent / "configs/sim/allgather/traffic.yaml"
UNDERLAY, BTH, RETH, IMMEDIATE, AETH, DETH, ICRC = 14 + 20 + 8, 12, 16, 4, 4, 8, 4
MTU = 4096


def racks(hosts, leaves):
    """The leaf of each host: the first leaves have one more where hosts do not go into each alike."""
    return [leaf for leaf in range(leaves) for _ in range(hosts // leaves + (leaf < hosts % leaves))]


def write_bytes(size, own_reth):
    """(packets, bytes of frames) of a WRITE with immediate: a RETH in the first packet, or in each."""
    packets = -(-size // MTU)
    reths = packets if own_reth else 1
    return packets, size + packets * (UNDERLAY + BTH + ICRC) + reths * RETH + IMMEDIATE


class Crossings:
    """Bytes that leaves and spines receive and transmit."""

    def __init__(self):
        self.leaf_rx = self.leaf_tx = self.spine_rx = self.spine_tx = 0

    def unicast(self, bytes_, same_leaf):
        ports = 1 if same_leaf else 2
        self.leaf_rx += ports * bytes_
        self.leaf_tx += ports * bytes_
        if not same_leaf:
            self.spine_rx += bytes_
            self.spine_tx += bytes_

    def multicast(self, bytes_, members, leaves):
        """From one of `members` hosts to all others behind `leaves` leaves."""
        self.leaf_rx += bytes_ * leaves  # from the sender, and from the spine at each other one
        self.leaf_tx += bytes_ * (members - 1 + (leaves > 1))
        self.spine_rx += bytes_ * (leaves > 1)
        self.spine_tx += bytes_ * (leaves - 1)

    def row(self):
        return {"leaf_tx_bytes": self.leaf_tx, "leaf_rx_bytes": self.leaf_rx, "spine_tx_bytes": self.spine_tx,
                "spine_rx_bytes": self.spine_rx,
                "port_bytes": self.leaf_rx + self.leaf_tx + self.spine_rx + self.spine_tx}


ACK = UNDERLAY + BTH + AETH + ICRC


def ring(hosts, leaves, block):
    at, total = racks(hosts, leaves), Crossings()
    for host in range(hosts):
        same = at[host] == at[(host + 1) % hosts]
        total.unicast((hosts - 1) * (write_bytes(block, False)[1] + ACK), same)
    return total.row()


def linear(hosts, leaves, block):
    at, total = racks(hosts, leaves), Crossings()
    for a in range(hosts):
        for b in range(hosts):
            if a != b:
                total.unicast(write_bytes(block, False)[1] + ACK, at[a] == at[b])
    return total.row()


def multicast(hosts, leaves, block):
    """The datagrams alone, each chunk once from its root to all others."""
    total = Crossings()
    for begin in range(0, block, MTU):
        frame = UNDERLAY + BTH + DETH + IMMEDIATE + min(MTU, block - begin) + ICRC
        total.multicast(hosts * frame, hosts, leaves)
    return total.row()


class Traffic(RoceboxTest):
    def run_it(self, **settings):
        out = self.dir / "report.json"
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self.rocebox("sim", CONFIG, "--quiet", "--json", out, *words)
        report = json.loads(out.read_text())
        return {row["workloads"]: row for row in report["traffic"]}, report

    def check(self, hosts, leaves, spines, block):
        rows, report = self.run_it(hosts=hosts, leaves=leaves, spines=spines, wires=2, block=f"{block}B",
                                   buffer=f"{hosts * block}B")
        for name, want in (("ring", ring(hosts, leaves, block)), ("linear", linear(hosts, leaves, block))):
            self.assertEqual({key: rows[name][key] for key in want}, want, name)
        # Above the datagrams are the barrier's messages, activations and final packets, of 32 bytes, with their ACKs.
        details = report["workloads"]["multicast"]["details"]
        self.assertEqual(details["released_whole"], hosts)
        self.assertNotIn("fetch_reads", {key for key, value in details.items() if value})
        largest = 6 * (UNDERLAY + BTH + 32 + ICRC + ACK)  # in and out of two leaves and a spine
        for key, least in multicast(hosts, leaves, block).items():
            self.assertGreaterEqual(rows["multicast"][key], least, key)
            self.assertLessEqual(rows["multicast"][key], least + details["control_messages"] * largest, key)
        sums = report["tiers"]
        self.assertEqual(sum(row["port_bytes"] for row in report["traffic"]),
                         sum(tier[way] for tier in sums.values() for way in ("rx_bytes", "tx_bytes")))
        return rows

    def test_every_byte_on_every_port_is_what_the_shape_says(self):
        self.check(hosts=14, leaves=4, spines=2, block=4096)
        self.check(hosts=9, leaves=3, spines=3, block=10000)


if __name__ == "__main__":
    unittest.main()
