#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A switch that balances Soft-RoCE's traffic over three equal ports: which packets go where, judged by what load balancing
promises of each. Themis's choice by PSN has themis_spray_test.py."""
import struct
import sys
import unittest
from collections import Counter, defaultdict

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import CAPTURES, RoceboxTest  # noqa: E402

# Captures that differ in all frames, end to end: WRITEs of eight QPs and of one at full speed, READs, SENDs, datagrams.
NAMES = ("multi_qp", "perftest_write", "rc_read", "rc_send", "ud_send")
HOSTS = ("52:54:00:77:00:01", "52:54:00:77:00:02")
PORTS = ("p1", "p2", "p3")
GAP = 300_000  # ns; the captures have longer silences and shorter ones
RATE = 100     # Mbit/s, at which queues stand


def load():
    """[(time in ns, frame)], with a second between captures."""
    records, start = [], 1_000_000_000
    for name in NAMES:
        taken = wire.read_pcap(CAPTURES / f"{name}.pcap")[0]
        # What IPv6 and ARP have to say is the same in several captures.
        taken = [(at, frame) for at, _, frame in taken if wire.parse(frame)]
        records += [(at - taken[0][0] + start, frame) for at, frame in taken]
        start = records[-1][0] + 1_000_000_000
    return records


def flow_of(frame):
    """Addresses, protocol and ports."""
    ip, udp, _, version = wire.find_udp(frame)
    return frame[ip + 12:ip + 20] if version == 4 else frame[ip + 8:ip + 40], frame[udp:udp + 4]


def is_spread(frame):
    """WRITEs and READ responses of RC, which say where they belong."""
    packet = wire.parse(frame)
    return packet["service"] == wire.RC and (6 <= packet["op"] <= 11 or packet["op"] in wire.READ_RESPONSES)


class Balance(RoceboxTest):
    records = load()

    def setUp(self):
        super().setUp()
        self.assertEqual(max(Counter(frame for _, frame in self.records).values()), 1, "a frame tells which record it is")

    def balanced(self, forward, more=""):
        """{frame: (port, when it left)}, and the counters. All that came has left by one of the ports, once, unchanged."""
        data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        for at, frame in self.records:
            data += struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame
        (self.dir / "in.pcap").write_bytes(data)
        macs = ", ".join(f"{{mac: '{mac}', ports: [{', '.join(PORTS)}]}}" for mac in HOSTS)
        outs = "".join(f"  s.{port}: {{pcap: {{out: {port}.pcap}}}}\n" for port in PORTS)
        report = self.replay(self.config(
            f"devices: {{s: {{switch: {{ports: [a, {', '.join(PORTS)}], forward: {{learning: false, macs: [{macs}], {forward}}}{more}}}}}}}\n"
            f"ports:\n  s.a: {{pcap: {{in: in.pcap}}}}\n{outs}"))
        left = {}
        for port in PORTS:
            for at, _, frame in wire.read_pcap(self.dir / f"{port}.pcap")[0]:
                self.assertNotIn(frame, left, "twice")
                left[frame] = port, at
        self.assertEqual(left.keys(), {frame for _, frame in self.records})
        return left, report["devices"]["s"]["kernels"]["switch"]["counters"]

    def by_flow(self, left, wanted=lambda frame: True):
        """{flow: how many by each port}."""
        found = defaultdict(Counter)
        for _, frame in self.records:
            if wanted(frame):
                found[flow_of(frame)][left[frame][0]] += 1
        return found

    def spread_evenly(self, left):
        """Each flow with many packets has about a third of them at each port, five standard deviations at most away."""
        flows = [ports for ports in self.by_flow(left, is_spread).values() if ports.total() >= 100]
        self.assertGreaterEqual(len(flows), 2)
        for ports in flows:
            for port in PORTS:
                self.assertLess(abs(ports[port] - ports.total() / 3), 5 * (ports.total() * 2 / 9) ** 0.5, ports)

    def the_rest_stays(self, left):
        """What is not spread keeps its flow's path, which is the same as without spreading."""
        unspread = self.balanced("balance: flow")[0]
        for _, frame in self.records:
            if not is_spread(frame):
                self.assertEqual(left[frame][0], unspread[frame][0], wire.parse(frame))

    def test_ecmp_keeps_each_flow_on_one_path(self):
        left, _ = self.balanced("balance: flow")
        flows = self.by_flow(left)
        self.assertGreater(len(flows), 8)
        self.assertEqual({len(ports) for ports in flows.values()}, {1})
        self.assertEqual({port for ports in flows.values() for port in ports}, set(PORTS), "no path stays empty")
        self.assertEqual(self.balanced("balance: flow")[0], left)

    def test_random_spray_draws_for_each_packet(self):
        left, _ = self.balanced("balance: random")
        self.spread_evenly(left)
        self.the_rest_stays(left)

    def test_flowlets_move_only_behind_a_silence(self):
        left, counters = self.balanced(f"balance: flowlet, flowlet_gap: {GAP}ns")
        last, flowlets, moved, stayed = {}, 0, 0, 0  # last: when, and by which port
        for at, frame in self.records:
            flow, port = flow_of(frame), left[frame][0]
            before, by = last.get(flow, (None, None))
            if before is None or at - before > GAP:
                flowlets += 1
                moved += by not in (None, port)
                stayed += by == port
            else:
                self.assertEqual(port, by, "within a flowlet")
            last[flow] = at, port
        self.assertEqual(counters["flowlets"], flowlets)
        self.assertGreater(moved, stayed, "of three ports two are others")
        self.assertGreater(stayed, 0)

    def test_the_least_queue_is_taken(self):
        queues = f", traffic_manager: {{rate: {RATE}Mbps}}"
        left, _ = self.balanced("balance: least_queue", queues)
        chosen, came = 0, []  # (frame's bytes, port, when it leaves) of all before
        for at, frame in self.records:
            port, leaves = left[frame]
            if is_spread(frame):
                depth = dict.fromkeys(PORTS, 0)
                for size, other, gone in came:
                    depth[other] += size * (gone > at)
                self.assertEqual(depth[port], min(depth.values()), (at, depth))
                chosen += len(set(depth.values())) > 1
            came.append((len(frame), port, leaves))
        self.assertGreater(chosen, 100, "queues stood, and differed")
        self.the_rest_stays(left)
        self.spread_evenly(self.balanced("balance: least_queue")[0])  # without queues all are equal


if __name__ == "__main__":
    unittest.main()
