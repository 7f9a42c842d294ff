#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A switch through the command: forwarding, marks and pauses, against packets that scapy makes and reads."""
import sys
import unittest
import zlib

sys.dont_write_bytecode = True
from common import tshark  # noqa: E402
from switch_kit import A, B, BROADCAST, C, ROUTER, SwitchTest, scapy, udp  # noqa: E402


class Switch(SwitchTest):
    def test_l2_learns_floods_ages_and_keeps_vlans_apart(self):
        out, report = self.run_switch(
            {"ports": ["a", "b", "c"], "forward": {"mac_age": "500ms"}},
            a=[udp(A, B), udp(A, B, at=0.2), udp(A, BROADCAST, at=0.3), udp(A, B, at=0.35, vlan=7), udp(A, B, at=2)],
            b=[udp(B, A, at=0.1)])
        self.assertEqual({port: len(packets) for port, packets in out.items()}, {"a": 1, "b": 5, "c": 4})
        self.assertEqual((report["counters"]["macs_learnt"], report["counters"]["macs_aged"]), (4, 4))
        arp = scapy.Ether(src=A, dst=BROADCAST) / scapy.ARP(pdst="10.0.0.2")
        lldp = scapy.Ether(src=A, dst="01:80:c2:00:00:0e", type=0x88cc) / scapy.Raw(bytes(46))
        out, report = self.run_switch({"ports": ["a", "b", "c"]}, a=[arp, lldp, udp(A, "02:00:00:00:00:99")])
        self.assertEqual([bytes(p) for p in out["b"]][:1], [bytes(arp)])
        self.assertEqual(len(out["c"]), 2)
        self.assertEqual(report["counters"]["drop_link_local"], 1)

    def test_l3_takes_the_longest_prefix_and_rewrites_what_a_router_does(self):
        routes = [{"prefix": "10.0.0.0/8", "via": [{"port": "b", "mac": B}]},
                  {"prefix": "10.0.1.0/24", "via": [{"port": "c", "mac": C}]},
                  {"prefix": "2001:db8::/32", "via": [{"port": "b", "mac": B}]},
                  {"prefix": "2001:db8:1::/48", "via": [{"port": "c", "mac": C}]}]
        packets = [udp(A, ROUTER, dst="10.2.0.1"), udp(A, ROUTER, dst="10.0.1.200"), udp(A, ROUTER, dst="192.0.2.1"),
                   udp(A, ROUTER, dst="10.2.0.1", ttl=1), udp(A, ROUTER, src="2001:db8::1", dst="2001:db8:2::1"),
                   udp(A, ROUTER, src="2001:db8::1", dst="2001:db8:1::1", ttl=9)]
        bad = udp(A, ROUTER, dst="10.2.0.1")
        bad[scapy.IP].chksum = 1
        out, report = self.run_switch({"ports": ["a", "b", "c"], "forward": {"router_mac": ROUTER, "routes": routes}},
                                      a=packets + [bad])
        for port, mac, wanted in (("b", B, [packets[0], packets[4]]), ("c", C, [packets[1], packets[5]])):
            for before in wanted:
                before = scapy.Ether(bytes(before))
                before.src, before.dst = ROUTER, mac
                if scapy.IP in before:
                    before[scapy.IP].ttl -= 1
                    del before[scapy.IP].chksum
                else:
                    before[scapy.IPv6].hlim -= 1
                self.assertEqual(bytes(out[port].pop(0)), bytes(before))
            self.assertEqual(out[port], [])
        counters = report["counters"]
        self.assertEqual([counters[f"drop_{why}"] for why in ("no_route", "ttl", "ip_header")], [1, 1, 1])

    def test_ecmp_spreads_flows_by_the_crc_and_keeps_each_on_one_path(self):
        via = [{"port": f"s{i}", "mac": f"02:00:00:00:01:0{i}"} for i in range(4)]
        packets = [udp(A, ROUTER, dst="10.2.0.1", sport=sport) for sport in range(2000, 2400)] * 2
        out, _ = self.run_switch({"ports": ["a", "s0", "s1", "s2", "s3"],
                                  "forward": {"router_mac": ROUTER, "ecmp_seed": 7, "routes": [{"prefix": "0.0.0.0/0", "via": via}]}},
                                 a=packets)
        path = {}
        for i in range(4):
            self.assertGreater(len(out[f"s{i}"]), 120)
            for packet in out[f"s{i}"]:
                sport = packet[scapy.UDP].sport
                self.assertEqual(path.setdefault(sport, i), i)
        for sport, i in path.items():  # seed, addresses, protocol, ports; the high bits choose
            key = (7).to_bytes(4, "little") + bytes([10, 0, 0, 1, 10, 2, 0, 1, 17]) + sport.to_bytes(2, "big") + b"\0\x09"
            self.assertEqual(i, zlib.crc32(key) * 4 >> 32)

    def test_multicast_groups_and_static_addresses(self):
        group = "01:00:5e:01:01:01"
        out, report = self.run_switch(
            {"ports": ["a", "b", "c", "d"], "multicast_groups": [{"group": 3, "ports": ["a", "b", "d"]}],
             "forward": {"learning": False, "unknown": "drop", "macs": [{"mac": group, "group": 3}, {"mac": C, "ports": ["c"]}]}},
            a=[udp(A, group), udp(A, C), udp(A, B)])
        self.assertEqual({port: len(packets) for port, packets in out.items()}, {"a": 0, "b": 1, "c": 1, "d": 1})
        self.assertEqual(bytes(out["b"][0]), bytes(out["d"][0]))
        self.assertEqual(report["counters"]["drop_unknown_mac"], 1)

    def test_drop_all_floods_nothing(self):
        out, report = self.run_switch({"ports": ["a", "b"], "forward": {"unknown": "drop_all", "macs": [{"mac": B, "ports": ["b"]}]}},
                                      a=[udp(A, BROADCAST), udp(A, "01:00:5e:01:01:01"), udp(A, C), udp(A, B)])
        self.assertEqual(len(out["b"]), 1)
        self.assertEqual(report["counters"]["drop_unknown_mac"], 3)

    def test_marks_are_ce_with_right_checksums(self):
        packets = [udp(A, C, tos=tos, size=958, at=1e-6 * i) for i, tos in enumerate([2, 2, 2, 1, 0, 2])]
        packets += [udp(A, C, src="2001:db8::1", dst="2001:db8::2", tos=2, size=958, at=1e-5)]
        out, report = self.run_switch(
            {"ports": ["a", "c"], "forward": {"macs": [{"mac": C, "ports": ["c"]}]},
             "traffic_manager": {"rate": "1Mbps", "ecn": {"min": "1500B", "max": "1500B"}}}, a=packets)
        rows = tshark(self.dir / "c.out.pcap", "ip.dsfield.ecn", "ipv6.tclass.ecn", "ip.checksum.status", "udp.checksum.status")
        self.assertEqual([row[0] or row[1] for row in rows], ["2", "2", "2", "3", "0", "3", "3"])
        wanted = scapy.Ether(bytes(packets[3]))
        wanted[scapy.IP].tos = 3
        del wanted[scapy.IP].chksum
        self.assertEqual(bytes(out["c"][3]), bytes(wanted))
        times = [float(p.time) for p in out["c"]]
        self.assertAlmostEqual(times[1] - times[0], 1024 * 8 / 1e6, places=6)
        self.assertEqual(report["counters"]["ecn_marked_packets"], 3)

    def test_pause_frames_are_those_of_the_standard(self):
        packets = [udp(A, C, tos=0x60, size=958, at=1e-6 * i) for i in range(8)]
        out, report = self.run_switch(
            {"ports": ["a", "c"], "forward": {"macs": [{"mac": C, "ports": ["c"]}]},
             "traffic_manager": {"rate": "10Mbps", "class_of": "dscp", "pfc": {"classes": [3], "xoff": "3000B", "xon": "1000B"}}},
            a=packets)
        self.assertEqual(len(out["c"]), 8)
        rows = tshark(self.dir / "a.out.pcap", "eth.dst", "macc.opcode", "macc.cbfc.enbv.c3", "macc.cbfc.pause_time.c3")
        self.assertGreaterEqual(len(rows), 2)
        self.assertTrue(all(row[:2] == ["01:80:c2:00:00:01", "0x0101"] for row in rows), rows)
        self.assertEqual((rows[0][3], rows[-1][3]), ("65535", "0"))
        self.assertEqual(report["counters"]["tx_pause_frames"], len(rows))

    def test_check_tells_resources_and_what_does_not_fit(self):
        config = self.config("devices: {s: {switch: {ports: [a, b], profile: {sram_pages: 24, map_ram: 12, stages: 5}}}}\n")
        out, _ = self.rocebox("check", config, "--strict", "--resources")
        self.assertIn("mac_last_seen", out)
        self.assertIn("no access that the hardware could not do", out)
        config = self.config("devices: {s: {switch: {ports: [a, b], profile: {map_ram: 1, stages: 5}}}}\n")
        _, error = self.rocebox("check", config, "--strict", status=2)
        self.assertRegex(error, r"config.yaml:1:\d+: .*\n.*register `mac_last_seen`: needs 9 SRAM pages, 9 map RAMs")

    def test_mistakes_are_named_with_their_place(self):
        config = self.config("devices:\n  s:\n    path: a <-> b\n    switch:\n      ports: [a, b]\n      programs: [forwrd]\n")
        _, error = self.rocebox("check", config, status=2)
        self.assertIn("config.yaml:6:17: `programs` names no program: `forwrd`; did you mean `forward`?", error)
        self.assertIn("config.yaml:3:11: device `s` is a switch, which has no `path:`", error)


if __name__ == "__main__":
    unittest.main()
