#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An access list through the command, against packets that scapy makes, reads and computes the checksums of."""
import random
import sys
import unittest

sys.dont_write_bytecode = True
from common import CAPTURES, tshark  # noqa: E402
from switch_kit import A, B, SwitchTest, scapy, udp  # noqa: E402

STATIC = {"learning": False, "unknown": "drop", "macs": [{"mac": B, "ports": ["b"]}, {"mac": B, "vlan": 7, "ports": ["b"]}]}


class AclTest(SwitchTest):
    def run_acl(self, rules, packets, **options):
        out, report = self.run_switch({"ports": ["a", "b", "c"], "programs": ["acl", "forward"], "forward": STATIC,
                                       "mirror_sessions": [{"session": 1, "port": "c", "bytes": 60}],
                                       "acl": {"rules": rules}, **options}, a=packets)
        return out, {row["rule"]: row for row in report["acl"]["rules"]}, report["counters"]

    def test_marks_mirrors_drops_and_counts(self):
        web = scapy.Ether(src=A, dst=B) / scapy.IP(src="10.0.0.1", dst="10.0.1.1", tos=1) / scapy.TCP(dport=80)
        arp = scapy.Ether(src=A, dst=B) / scapy.ARP(pdst="10.0.0.2") / scapy.Raw(bytes(18))
        six = udp(A, B, src="2001:db8::1", dst="2001:db8:1::1", tos=3)
        tagged = udp(A, B, vlan=7)
        packets = [web, arp, six, tagged, udp(A, B)]
        for i, packet in enumerate(packets):
            packet.time = 1000 + i
        out, rows, counters = self.run_acl(
            [{"name": "web", "match": {"protocol": "tcp", "destination_port": "80-443"}, "dscp": 46},
             {"name": "arp", "match": {"ethertype": "arp"}, "action": "drop", "mirror": 1},
             {"name": "six", "match": {"destination": "2001:db8:1::/48", "ports": "a"}, "dscp": 10, "egress_port": "c"},
             {"name": "vlan", "match": {"vlan": 7, "source_port": 1000}, "mirror": 1}], packets)
        marked = scapy.Ether(bytes(web))
        marked[scapy.IP].tos = 46 << 2 | 1
        del marked[scapy.IP].chksum
        self.assertEqual([bytes(p) for p in out["b"]], [bytes(marked), bytes(tagged), bytes(packets[4])])
        moved = scapy.Ether(bytes(six))
        moved[scapy.IPv6].tc = 10 << 2 | 3
        self.assertEqual([bytes(p) for p in out["c"]], [bytes(arp)[:60], bytes(moved), bytes(tagged)[:60]])
        self.assertEqual({name: (row["packets"], row["bytes"]) for name, row in rows.items()},
                         {"web": (1, len(web)), "arp": (1, len(arp)), "six": (1, len(six)), "vlan": (1, len(tagged)),
                          "default": (1, len(packets[4]))})
        self.assertEqual(counters["drop_acl"], 1)

    def test_a_marked_roce_packet_keeps_its_icrc(self):
        report = self.replay(self.config(f"""
devices:
  s: {{switch: {{ports: [a, b, c], strict: true, programs: [acl, forward], acl: {{rules: [
    {{name: writes, match: {{opcodes: [rc_rdma_write_first, rc_rdma_write_middle, rc_rdma_write_last, rc_rdma_write_only]}}, dscp: 26, egress_port: b}},
    {{name: acks, match: {{opcodes: rc_acknowledge}}, dscp: 48, egress_port: b}}]}}}}}}
  judge: {{path: in <-> inspect <-> out}}
links: {{l: {{between: [s.b, judge.in]}}}}
ports:
  s.a: {{pcap: {{in: {CAPTURES}/perftest_write.pcap}}}}
  judge.out: {{pcap: {{out: out.pcap}}}}
"""))
        rows = {row["rule"]: row["packets"] for row in report["devices"]["s"]["kernels"]["switch"]["acl"]["rules"]}
        dscp = [row[0] for row in tshark(self.dir / "out.pcap", "ip.dsfield.dscp")]
        self.assertEqual(set(dscp), {"26", "48", "0"} if rows["default"] else {"26", "48"})
        self.assertGreater(rows["writes"], 60)
        self.assertGreater(rows["acks"], 0)
        self.assertEqual(report["devices"]["judge"]["kernels"]["inspect"]["counters"].get("icrc_bad", 0), 0)
        wrong = tshark(self.dir / "out.pcap", "ip.checksum.status")
        self.assertNotIn(["0"], wrong)

    def test_a_meter_polices_as_a_token_bucket_does(self):
        """Against the text of RFC 2698, 3: two buckets in exact fractions of a byte."""
        random.seed(8)
        committed, peak, cbs, pbs = 8_000_000, 12_000_000, 3000, 6000  # bits per second, bytes
        packets, at = [], 0
        for _ in range(800):
            at += random.choice([0, 100, 300, 600, 1100])
            packets.append(udp(A, B, size=random.randrange(20, 1400), at=at / 1e6))
        tokens_c, tokens_p, last, wanted = cbs * 8_000_000, pbs * 8_000_000, 0, []  # in bits times microseconds
        for packet in packets:
            now, bits = round((float(packet.time) - 1000) * 1e6), len(packet) * 8 * 1_000_000
            tokens_c = min(cbs * 8_000_000, tokens_c + (now - last) * committed)
            tokens_p = min(pbs * 8_000_000, tokens_p + (now - last) * peak)
            last = now
            if tokens_p < bits:
                wanted.append(None)
                continue
            tokens_p -= bits
            wanted.append(10 if tokens_c < bits else 0)
            tokens_c -= 0 if tokens_c < bits else bits
        out, rows, counters = self.run_acl(
            [{"name": "udp", "match": {"protocol": "udp"},
              "meter": {"committed": "8Mbps", "committed_burst": "3000B", "peak": "12Mbps", "peak_burst": "6000B", "yellow_dscp": 10}}],
            packets)
        self.assertEqual([p[scapy.IP].tos >> 2 for p in out["b"]], [dscp for dscp in wanted if dscp is not None])
        self.assertEqual((counters["drop_meter"], rows["udp"]["yellow_packets"], rows["udp"]["red_packets"]),
                         (wanted.count(None), wanted.count(10), wanted.count(None)))
        for color in (0, 10, None):
            self.assertGreater(wanted.count(color), 20)

    def test_check_reaches_every_rule_and_names_mistakes(self):
        rules = "[{name: t, match: {protocol: tcp}}, {name: n, match: {opcodes: rc_acknowledge}, mirror: 1}]"
        text = "devices:\n  s:\n    switch: {ports: [a, b], programs: [acl, forward], mirror_sessions: [{session: 1, port: b}], acl: {rules: %s}}\n"
        out, _ = self.rocebox("check", self.config(text % rules), "--strict")
        self.assertIn("no access that the hardware could not do", out)
        _, error = self.rocebox("check", self.config(text % "[{match: {source: 10.0.0.1/8}, mirror: 3}]"), status=2)
        self.assertRegex(error, r"config.yaml:3:\d+: `source` has address bits behind its length: `10.0.0.1/8`\n")
        self.assertRegex(error, r"config.yaml:3:\d+: `mirror` names no mirror session: 3 is not in")


if __name__ == "__main__":
    unittest.main()
