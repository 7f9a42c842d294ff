#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The program `snooping`: reports that scapy makes, queries that scapy and tshark read."""
import sys
import unittest

from common import tshark
from switch_kit import SwitchTest, scapy, udp

try:
    from scapy.contrib.igmp import IGMP
    from scapy.contrib.igmpv3 import IGMPv3, IGMPv3gr, IGMPv3mr
except ImportError:
    print("skipped: scapy has no IGMP")
    sys.exit(77)

HOST = "02:00:00:00:00:05"
GROUP, GROUP6 = "239.1.2.3", "ff05::107"
PROGRAMS = {"ports": ["p0", "p1", "p2", "p3"], "programs": ["forward", "snooping"]}


def mac(group):
    """RFC 1112, 6.4; RFC 2464, 7."""
    if ":" in group:
        import ipaddress
        return "33:33:%02x:%02x:%02x:%02x" % tuple(ipaddress.ip_address(group).packed[-4:])
    parts = [int(p) for p in group.split(".")]
    return "01:00:5e:%02x:%02x:%02x" % (parts[1] & 0x7f, parts[2], parts[3])


def at(packet, time):
    packet = scapy.Ether(bytes(packet))  # with its checksums
    packet.time = 1000 + time
    return packet


def ip4(to):
    return scapy.Ether(src=HOST, dst=mac(to)) / scapy.IP(src="10.0.0.5", dst=to, ttl=1, options=[scapy.IPOption_Router_Alert()])


def ip6(to):
    return (scapy.Ether(src=HOST, dst=mac(to)) / scapy.IPv6(src="fe80::5", dst=to, hlim=1) /
            scapy.IPv6ExtHdrHopByHop(options=[scapy.RouterAlert()]))


REPORTS = {
    "igmp v1": ip4(GROUP) / IGMP(type=0x12, gaddr=GROUP),
    "igmp v2": ip4(GROUP) / IGMP(type=0x16, gaddr=GROUP),
    "igmp v3": ip4("224.0.0.22") / IGMPv3(type=0x22) / IGMPv3mr(records=[IGMPv3gr(rtype=4, maddr=GROUP)]),
    "igmp v3, of sources": ip4("224.0.0.22") / IGMPv3(type=0x22) / IGMPv3mr(
        records=[IGMPv3gr(rtype=2, maddr="239.7.7.7", srcaddrs=["10.0.0.1"]),
                 IGMPv3gr(rtype=5, maddr=GROUP, srcaddrs=["10.0.0.1", "10.0.0.2"])]),
    "mld v1": ip6(GROUP6) / scapy.ICMPv6MLReport(mladdr=GROUP6),
    "mld v2": ip6("ff02::16") / scapy.ICMPv6MLReport2(records=[scapy.ICMPv6MLDMultAddrRec(rtype=4, dst=GROUP6)]),
}
LEAVES = {
    "igmp v2": ip4("224.0.0.2") / IGMP(type=0x17, gaddr=GROUP),
    "igmp v3": ip4("224.0.0.22") / IGMPv3(type=0x22) / IGMPv3mr(records=[IGMPv3gr(rtype=3, maddr=GROUP)]),
    "mld v1": ip6("ff02::2") / scapy.ICMPv6MLDone(mladdr=GROUP6),
    "mld v2": ip6("ff02::16") / scapy.ICMPv6MLReport2(records=[scapy.ICMPv6MLDMultAddrRec(rtype=3, dst=GROUP6)]),
}


class SnoopingTest(SwitchTest):
    def data(self, group, times):
        source = "fd00::9" if ":" in group else "10.0.0.9"
        return [udp("02:00:00:00:00:09", mac(group), src=source, dst=group, at=t) for t in times]

    def times(self, packets):
        return [round(float(p.time) - 1000, 6) for p in packets if p.haslayer(scapy.UDP)]

    def test_reports_of_every_version_open_a_port_and_leaves_close_it(self):
        for name, report in REPORTS.items():
            group = GROUP6 if name.startswith("mld") else GROUP
            leave = LEAVES.get(name)
            said = [at(report, 1)] + ([at(leave, 3)] if leave else [])
            out, kernel = self.run_switch({**PROGRAMS, "snooping": {"unknown": "drop", "fast_leave": True}},
                                          p1=said, p3=self.data(group, (0, 2, 4)))
            self.assertEqual(self.times(out["p1"]), [2] if leave else [2, 4], name)
            self.assertEqual(self.times(out["p0"]) + self.times(out["p2"]), [], name)
            counters = kernel["counters"]
            leaves = int(leave is not None and name in ("igmp v2", "mld v1"))  # later ones leave by a report
            self.assertEqual((counters["reports"], counters["leaves"]), (len(said) - leaves, leaves), name)

    def test_queries_open_the_way_to_routers(self):
        query = ip4("224.0.0.1") / IGMP(type=0x11, mrcode=100, gaddr="0.0.0.0")
        nobody = at(query, 0.5)
        nobody[scapy.IP].src = "0.0.0.0"
        del nobody[scapy.IP].chksum
        out, _ = self.run_switch({**PROGRAMS, "snooping": {"unknown": "routers"}}, p0=[at(query, 1)], p2=[at(nobody, 0.5)],
                                 p1=[at(REPORTS["igmp v2"], 2)], p3=self.data(GROUP, (0, 0.7, 3)))
        self.assertEqual(self.times(out["p0"]), [3])
        self.assertEqual(self.times(out["p2"]), [], "a query of 0.0.0.0 is no router's")
        self.assertTrue(any(p.haslayer(IGMP) and p[IGMP].type == 0x16 for p in out["p0"]), "the report")
        self.assertFalse(any(p.haslayer(IGMP) and p[IGMP].type == 0x16 for p in out["p2"] + out["p3"]))

    def test_what_the_querier_sends(self):
        options = {"querier": True, "querier_address": "10.0.0.254", "query_interval": "8s", "response_time": "2s",
                   "last_member_time": "500ms"}
        self.run_switch({**PROGRAMS, "snooping": options}, top={"drain": "3s"},
                        p1=[at(REPORTS["igmp v3"], 1), at(REPORTS["mld v2"], 1), at(LEAVES["igmp v2"], 2),
                            at(LEAVES["mld v1"], 2)])
        capture = self.dir / "p1.out.pcap"
        rows = tshark(capture, "ip.src", "ip.dst", "ip.ttl", "igmp.version", "igmp.type", "igmp.maddr", "igmp.max_resp",
                      "igmp.checksum.status", "igmp.qrv", "ip.checksum.status")
        igmp = [row for row in rows if row[4]]
        self.assertGreaterEqual(len(igmp), 4)
        general = [row for row in igmp if row[1] == "224.0.0.1"]
        self.assertEqual({tuple(r[:5]) for r in general}, {("10.0.0.254", "224.0.0.1", "1", "3", "0x11")})
        self.assertEqual({(r[5], r[6], r[7], r[8]) for r in general}, {("0.0.0.0", "20", "1", "2")})
        specific = [row for row in igmp if row[1] == GROUP]
        self.assertEqual({(r[5], r[6], r[7]) for r in specific}, {(GROUP, "5", "1")})
        self.assertEqual(len(specific), 2, "robustness")
        rows = tshark(capture, "ipv6.src", "ipv6.dst", "ipv6.hlim", "icmpv6.type", "icmpv6.mld.maximum_response_delay",
                      "icmpv6.checksum.status", "icmpv6.mld.multicast_address", "_ws.malformed")
        mld = [row for row in rows if row[3]]
        self.assertEqual({tuple(r[:4]) for r in mld if r[1] == "ff02::1"}, {("fe80::ff:fe00:fe01", "ff02::1", "1", "130")})
        self.assertEqual({(r[1], r[5], r[6]) for r in mld if r[1] != "ff02::1"}, {(GROUP6, "1", GROUP6)})
        self.assertEqual({r[5] for r in mld} | {r[7] for r in rows}, {"1", ""})
        for packet in scapy.rdpcap(str(capture)):
            if packet.haslayer(scapy.IPv6):
                self.assertTrue(packet.haslayer(scapy.RouterAlert) and packet.haslayer(scapy.ICMPv6MLQuery2), packet.show(dump=True))
                self.assertEqual(bytes(scapy.Ether(bytes(packet))), bytes(packet))


if __name__ == "__main__":
    unittest.main()
