#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The packet generator in a replay: when packets leave and what they are, also without any capture to read."""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from common import tshark  # noqa: E402
from switch_kit import A, B, SwitchTest, scapy, udp  # noqa: E402

MACS = [{"mac": B, "ports": ["b"]}, {"mac": A, "ports": ["a"]}]


def nanoseconds(path):
    """Times of the packets of a capture, from the epoch."""
    return [round(float(seconds) * 1e9) for (seconds,) in tshark(path, "frame.time_epoch")]


class Generator(SwitchTest):
    def run_generator(self, applications, name="out.pcapng", **top):
        config = self.config(json.dumps({
            "devices": {"s": {"switch": {"strict": True, "ports": ["a", "b"], "packet_generator": applications,
                                         "forward": {"learning": False, "unknown": "drop", "macs": MACS}}}},
            "ports": {"s.b": {"pcap": {"out": name}}}, **top}))
        report = self.replay(config)
        self.assertEqual(report["devices"]["s"]["kernels"]["switch"]["violations"], [])
        return report

    def test_a_replay_of_what_the_switch_makes_alone(self):
        report = self.run_generator([
            {"name": "burst", "port": "a", "start": "10us", "batches": 3, "packets": 4, "packet_gap": "700ns", "batch_gap": "5us"},
            {"name": "tick", "port": "a", "start": "1us", "every": "8us", "times": 4,
             "packet": {"source": "2001:db8::1", "destination": "2001:db8::2", "payload": "20B", "dscp": 46}}])
        burst = [10_000 + b * (3 * 700 + 5000) + k * 700 for b in range(3) for k in range(4)]
        tick = [1000 + 8000 * i for i in range(4)]
        self.assertEqual(nanoseconds(self.dir / "out.pcapng"), sorted(burst + tick))
        four = scapy.Ether(src=A, dst=B) / scapy.IP(src="10.0.0.1", dst="10.0.0.2", id=0) / scapy.UDP(sport=49152, dport=9) / bytes(64)
        six = (scapy.Ether(src=A, dst=B) / scapy.IPv6(src="2001:db8::1", dst="2001:db8::2", tc=46 << 2) /
               scapy.UDP(sport=49152, dport=9) / bytes(20))
        wanted = [bytes(four) if at in burst else bytes(six) for at in sorted(burst + tick)]
        self.assertEqual([bytes(p) for p in scapy.rdpcap(str(self.dir / "out.pcapng"))], wanted)
        self.assertEqual([(row["application"], row["triggers"], row["packets"]) for row in report["devices"]["s"]["kernels"]["switch"]["packet_generator"]],
                         [("burst", 1, 12), ("tick", 4, 4)])
        self.assertEqual(report["hash"], self.replay(self.dir / "config.yaml")["hash"])

    def test_generated_packets_queue_behind_others(self):
        """1 Gbps: a burst of one instant leaves one packet after the other."""
        self.run_generator([{"port": "a", "packets": 5, "packet_gap": 0, "packet": {"payload": "58B"}}])
        self.assertEqual(nanoseconds(self.dir / "out.pcapng"), [0] * 5)
        config = self.dir / "config.yaml"
        slow = json.loads(config.read_text())
        slow["devices"]["s"]["switch"]["traffic_manager"] = {"rate": "1Gbps", "overhead": "0B"}
        config.write_text(json.dumps(slow))
        self.replay(config)
        self.assertEqual(nanoseconds(self.dir / "out.pcapng"), [800 * i for i in range(1, 6)], "100 bytes each")

    def test_among_packets_that_come_in(self):
        packets = [udp(A, B, sport=i, at=i * 1e-6) for i in range(10)]
        out, report = self.run_switch({"ports": ["a", "b"], "forward": {"learning": False, "macs": MACS},
                                       "packet_generator": [{"port": "a", "start": "2500ns", "every": "3us", "times": 2}]}, a=packets)
        self.assertEqual([p[scapy.UDP].sport for p in out["b"]], [0, 1, 2, 49152, 3, 4, 5, 49152, 6, 7, 8, 9])
        self.assertEqual(report["counters"]["generated"], 2)

    def test_an_endless_one_ends_with_the_drain(self):
        report = self.run_generator([{"port": "a", "every": "100us"}], drain="10ms")
        self.assertEqual(report["devices"]["s"]["kernels"]["switch"]["counters"]["generated"], 101)

    def test_without_captures_and_generators_there_is_nothing_to_replay(self):
        _, error = self.rocebox("replay", self.config("devices: {s: {switch: {ports: [a, b], packet_generator: []}}}\n"), status=2)
        self.assertIn("no port has a capture to read", error)


if __name__ == "__main__":
    unittest.main()
