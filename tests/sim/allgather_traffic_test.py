#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes on switch ports of Allgather and Broadcast algorithms, by tier, against closed forms: packets times headers and payload
times the ports that they cross, from the shape of the network and the algorithms' definitions alone."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

CONFIGS = HERE.parent.parent / "configs/sim/allgather"
UNDERLAY, BTH, RETH, IMMEDIATE, AETH, DETH, ICRC = 14 + 20 + 8, 12, 16, 4, 4, 8, 4
ACK = UNDERLAY + BTH + AETH + ICRC
MTU = 4096


def write_bytes(size):
    """Bytes of frames of a WRITE with immediate, with a RETH in the first packet."""
    return size + -(-size // MTU) * (UNDERLAY + BTH + ICRC) + RETH + IMMEDIATE


class Network:
    """A tree of switches: `tiers` are their names upwards, `at` a tuple for each host in the order of racks, its switch of each
    tier but the topmost, of which all ways use one."""

    def __init__(self, tiers, at):
        self.tiers, self.at, self.hosts = tiers, at, len(at)
        self.rx, self.tx = dict.fromkeys(tiers, 0), dict.fromkeys(tiers, 0)

    def unicast(self, a, b, bytes_):
        for tier, mine, other in zip(self.tiers, (*self.at[a], None), (*self.at[b], None)):
            ports = 1 if mine == other else 2
            self.rx[tier] += ports * bytes_
            self.tx[tier] += ports * bytes_
            if mine == other:
                return

    def multicast(self, bytes_):
        """From one host to all others: a switch gets it once, and passes it to all below but where it came from; those on the
        sender's way pass it up, too."""
        below = self.hosts
        for number, tier in enumerate(self.tiers):
            is_top = number + 1 == len(self.tiers)
            switches = 1 if is_top else len({way[number] for way in self.at})
            self.rx[tier] += switches * bytes_
            self.tx[tier] += (below - 1 + (not is_top)) * bytes_
            below = switches

    def row(self):
        row = {f"{tier}_{way}_bytes": bytes_[tier] for tier in self.tiers for way, bytes_ in (("rx", self.rx), ("tx", self.tx))}
        return {**row, "port_bytes": sum(row.values())}

    def write(self, a, b, bytes_, times=1):
        """A WRITE over a reliable connection; what comes back is one ACK, for all of it, which crosses the same ports."""
        self.unicast(a, b, times * (write_bytes(bytes_) + ACK))

    def message(self, a, b):
        """A message of 32 bytes of the multicast collectives, a SEND."""
        self.unicast(a, b, UNDERLAY + BTH + 32 + ICRC + ACK)

    def cast(self, bytes_):
        """The datagrams of a block."""
        for begin in range(0, bytes_, MTU):
            self.multicast(UNDERLAY + BTH + DETH + IMMEDIATE + min(MTU, bytes_ - begin) + ICRC)

    def barrier_and_handshake(self):
        """Recursive doubling among the first 2^k ranks, which the others tell and are told by; a ring of final packets."""
        core = 1
        while 2 * core <= self.hosts:
            core *= 2
        for rank in range(core, self.hosts):
            self.message(rank, rank - core)
            self.message(rank - core, rank)
        distance = 1
        while distance < core:
            for rank in range(core):
                self.message(rank, rank ^ distance)
            distance *= 2
        for rank in range(self.hosts):
            self.message(rank, (rank - 1) % self.hosts)


def leaf_spine(hosts, leaves):
    """The first leaves have one host more where hosts do not go into each alike."""
    return Network(("leaf", "spine"), [(leaf,) for leaf in range(leaves) for _ in range(hosts // leaves + (leaf < hosts % leaves))])


def fat_tree(k, pods):
    half = range(k // 2)
    return Network(("edge", "agg", "core"), [((pod, edge), pod) for pod in range(pods) for edge in half for _ in half])


def ring(net, block):
    for host in range(net.hosts):
        net.write(host, (host + 1) % net.hosts, block, net.hosts - 1)


def linear(net, block):
    for a in range(net.hosts):
        for b in range(net.hosts):
            if a != b:
                net.write(a, b, block)


def multicast(net, block):
    """In one chain, in which each rank but the last one activates the next one."""
    for rank in range(net.hosts):
        net.cast(block)
        if rank + 1 < net.hosts:
            net.message(rank, rank + 1)
    net.barrier_and_handshake()


def broadcast(net, message):
    net.cast(message)
    net.barrier_and_handshake()


def k_nomial(net, message, k=2):
    """A rank's parent is the rank without its lowest digit, to the base k, that is not zero."""
    for rank in range(1, net.hosts):
        place = 1
        while rank // place % k == 0:
            place *= k
        net.write(rank - rank // place % k * place, rank, message)


def binary_tree(net, message):
    for rank in range(1, net.hosts):
        net.write((rank - 1) // 2, rank, message)


ALLGATHERS = {"multicast": multicast, "ring": ring, "linear": linear}
BROADCASTS = {"cast": broadcast, "k_nomial": k_nomial, "binary_tree": binary_tree}


class Traffic(RoceboxTest):
    def run_it(self, config, **settings):
        out = self.dir / "report.json"
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self.rocebox("sim", CONFIGS / config, "--quiet", "--json", out, *words)
        report = json.loads(out.read_text())
        sums = report["tiers"].values()
        self.assertEqual(sum(row["port_bytes"] for row in report["traffic"]),
                         sum(tier[way] for tier in sums for way in ("rx_bytes", "tx_bytes")))
        for name, workload in report["workloads"].items():
            if "released_whole" in workload["details"]:
                self.assertEqual(workload["details"]["released_whole"], workload["details"]["ranks"], name)
                self.assertEqual(workload["details"].get("fetch_reads", 0), 0, name)
        return {row["workloads"]: row for row in report["traffic"]}

    def check(self, rows, network, algorithms, size):
        for name, algorithm in algorithms.items():
            net = network()
            algorithm(net, size)
            want = net.row()
            self.assertEqual({key: rows[name][key] for key in want}, want, name)

    def test_every_byte_on_every_port_is_what_the_shape_says(self):
        for hosts, leaves, spines, block, message in ((14, 4, 2, 4096, 30000), (9, 3, 3, 10000, 4096)):
            rows = self.run_it("traffic.yaml", hosts=hosts, leaves=leaves, spines=spines, wires=2, block=f"{block}B",
                               buffer=f"{hosts * block}B", message=f"{message}B")
            self.check(rows, lambda: leaf_spine(hosts, leaves), ALLGATHERS, block)
            self.check(rows, lambda: leaf_spine(hosts, leaves), BROADCASTS, message)

    def test_in_a_fat_tree_too(self):
        for pods in (2, 4):
            hosts = pods * 4
            rows = self.run_it("fat_tree_traffic.yaml", pods=pods, block="5000B", buffer=f"{hosts * 5000}B")
            self.check(rows, lambda: fat_tree(4, pods), {"multicast": multicast, "ring": ring}, 5000)


if __name__ == "__main__":
    unittest.main()
