#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A switch through the command: forwarding, marks and pauses, against packets that scapy makes and reads."""
import json
import math
import re
import struct
import sys
import unittest
import zlib
from collections import Counter

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import HERE, tshark  # noqa: E402
from switch_kit import A, B, BROADCAST, C, ROUTER, SwitchTest, crc, scapy, udp  # noqa: E402

# Width, polynomial, initial value, final XOR, reflected, and the CRC of "123456789": from the catalogue of parametrised CRC
# algorithms (reveng), not from the switch.
CRCS = {"crc32": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, 0xCBF43926),        # CRC-32/ISO-HDLC
        "crc32c": (32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, 0xE3069283),       # CRC-32/ISCSI
        "crc32_bzip2": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False, 0xFC891918),
        "crc32_mpeg": (32, 0x04C11DB7, 0xFFFFFFFF, 0, False, 0x0376E6E7),
        "crc16": (16, 0x8005, 0, 0, True, 0xBB3D),                                  # CRC-16/ARC
        "crc16_usb": (16, 0x8005, 0xFFFF, 0xFFFF, True, 0xB4C8),
        "crc16_dnp": (16, 0x3D65, 0, 0xFFFF, True, 0xEA82),
        "crc16_ccitt": (16, 0x1021, 0xFFFF, 0, False, 0x29B1),                      # CRC-16/IBM-3740
        "crc16_xmodem": (16, 0x1021, 0, 0, False, 0x31C3)}


def pause(at, quanta):
    """802.3x, or a PFC frame when `quanta` is {class: quanta}: times of classes that are not enabled say what must not count."""
    words = [1, quanta] if isinstance(quanta, int) else [0x0101, sum(1 << i for i in quanta), *(quanta.get(i, 0xFFFF) for i in range(8))]
    packet = scapy.Ether(src=C, dst="01:80:c2:00:00:01", type=0x8808) / scapy.Raw(struct.pack(f"!{len(words)}H", *words).ljust(46, b"\0"))
    packet.time = 1000 + at
    return packet


def choices(schema, name):
    """The words that an option may have, wherever in the schema it stands."""
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if not isinstance(schema, dict):
        return None
    if isinstance(schema.get(name), dict):
        return schema[name]["enum"]
    return next((found for part in schema.values() if (found := choices(part, name))), None)


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

    def test_ecmp_chooses_by_each_crc(self):
        """A switch for each algorithm, all with the same input; five paths, so that every bit of the CRC counts."""
        for name, (*algorithm, check) in CRCS.items():
            self.assertEqual(crc(b"123456789", *algorithm), check, name)
        offered = json.loads((HERE.parents[1] / "configs/rocebox.schema.json").read_text())
        self.assertEqual(sorted(CRCS), sorted(choices(offered, "ecmp_hash")))
        keys = {}  # a packet's source port -> the bytes of its flow
        packets = []
        for i in range(60):
            for ip, addresses in ((scapy.IP(src="10.0.0.1", dst=f"10.2.0.{i}"), slice(26, 34)),
                                  (scapy.IPv6(src="2001:db8::1", dst=f"2001:db8:2::{i:x}"), slice(22, 54))):
                for l4, protocol in ((scapy.UDP, 17), (scapy.TCP, 6)):
                    sport = 2000 + len(packets)
                    packets.append(scapy.Ether(src=A, dst=ROUTER) / ip / l4(sport=sport, dport=4791 + i) / scapy.Raw(bytes(20)))
                    packets[-1].time = 1000 + 1e-6 * len(packets)
                    keys[sport] = bytes(packets[-1])[addresses] + struct.pack("!BHH", protocol, sport, 4791 + i)
        paths, seed = 5, 0x89ABCDEF
        via = [{"port": f"s{i}", "mac": f"02:00:00:00:01:0{i}"} for i in range(paths)]
        devices, bindings = {}, {}
        # A polynomial in place of an algorithm's own.
        crcs = {**CRCS, "crc32_own": (32, 0x8F6E37A1, *CRCS["crc32"][2:]), "crc16_ccitt_own": (16, 0xA097, *CRCS["crc16_ccitt"][2:])}
        for name, (_, polynomial, *_) in crcs.items():
            algorithm = name.removesuffix("_own")
            devices[name] = {"switch": {"ports": ["a", *(hop["port"] for hop in via)], "strict": True, "forward": {
                "router_mac": ROUTER, "ecmp_hash": algorithm, "ecmp_seed": seed, "ecmp_polynomial": polynomial if algorithm != name else 0,
                "routes": [{"prefix": prefix, "via": via} for prefix in ("0.0.0.0/0", "::/0")]}}}
            scapy.wrpcap(str(self.dir / f"{name}.in.pcap"), packets)
            bindings[f"{name}.a"] = {"pcap": {"in": f"{name}.in.pcap"}}
            bindings.update({f"{name}.s{i}": {"pcap": {"out": f"{name}.{i}.pcap"}} for i in range(paths)})
        report = self.replay(self.config(json.dumps({"devices": devices, "ports": bindings})))
        for name, (*algorithm, _) in crcs.items():
            self.assertEqual(report["devices"][name]["kernels"]["switch"]["violations"], [])
            chosen = {}
            for i in range(paths):
                for _, _, data in wire.read_pcap(self.dir / f"{name}.{i}.pcap")[0]:
                    l4 = 34 if data[12:14] == b"\x08\x00" else 54
                    chosen[int.from_bytes(data[l4:l4 + 2], "big")] = i
            wanted = {sport: crc(seed.to_bytes(4, "little") + key, *algorithm) * paths >> algorithm[0] for sport, key in keys.items()}
            self.assertEqual(chosen, wanted, name)
            self.assertEqual(set(chosen.values()), set(range(paths)), name)

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

    def test_marks_follow_the_line_between_kmin_and_kmax(self):
        """A packet takes 1 ms to send, and one comes each ms: the queue stands still, until another one is put in to deepen it."""
        kmin, kmax, pmax, each = 10, 40, 0.4, 700  # of 1000 bytes
        depths = {9: 100, 10: 100, 13: each, 20: each, 25: each, 32: each, 39: each, 40: 100, 44: 100}
        packets, standing, slot = [udp(A, C, size=958)], 0, 0
        for depth, count in depths.items():
            packets += [udp(A, C, size=958, at=slot * 1e-3 + 2e-4) for _ in range(depth - standing)]  # not ECT, never marked
            standing = depth
            for _ in range(count):
                packets.append(udp(A, C, sport=depth, tos=2, size=958, at=slot * 1e-3 + 5e-4))
                slot += 1
        out, report = self.run_switch(
            {"ports": ["a", "c"], "forward": {"macs": [{"mac": C, "ports": ["c"]}]},
             "traffic_manager": {"rate": "8192kbps", "ecn": {"min": f"{kmin}kB", "max": f"{kmax}kB", "probability": f"{pmax:%}"}}}, a=packets)
        self.assertEqual(len(out["c"]), len(packets))
        marked = Counter(p[scapy.UDP].sport for p in out["c"] if p[scapy.IP].tos & 3 == 3)
        self.assertEqual(report["counters"]["ecn_marked_packets"], marked.total())
        self.assertEqual([marked[depth] for depth in (9, 10, 40, 44, 1000)], [0, 0, 100, 100, 0])
        line = {depth: pmax * (depth - kmin) / (kmax - kmin) for depth, count in depths.items() if count == each}
        for depth, share in line.items():
            self.assertAlmostEqual(marked[depth], each * share, delta=4.5 * math.sqrt(each * share * (1 - share)), msg=f"{depth} kB")
        # Together they tell an error of the whole line, of 15% and more, from chance.
        variance = sum(each * share * (1 - share) for share in line.values())
        self.assertAlmostEqual(sum(marked[depth] for depth in line), each * sum(line.values()), delta=4.5 * math.sqrt(variance))

    def departures(self, frames, packets):
        """When transmissions begin at a port of 10 Mbps, in ms, by UDP source port; `frames` come in by it."""
        out, report = self.run_switch(
            {"ports": ["a", "b", "c", "d"], "forward": {"learning": False, "macs": [{"mac": B, "ports": ["b"]}, {"mac": C, "ports": ["c"]}]},
             "traffic_manager": {"rates": [{"ports": ["b", "c"], "rate": "10Mbps"}], "class_of": "dscp"}},
            a=packets, c=frames)
        self.assertEqual(report["counters"]["rx_pause_frames"], len(frames))
        self.assertEqual((out["a"], out["d"]), ([], []), "pause frames go no further")
        begun = {}
        for packet in out["b"] + out["c"]:
            begun[packet[scapy.UDP].sport] = round((float(packet.time) - 1000 - (len(packet) + 24) * 8 / 10e6) * 1e3, 3)
        self.assertEqual(len(begun), len(packets))
        return begun

    def test_pfc_frames_hold_their_classes_for_their_quanta(self):
        """A quantum, 512 bits of 10 Mbps, is 51.2 us; a packet takes 0.1 ms."""
        def to(mac, sport, traffic_class, at):
            return udp(A, mac, sport=sport, tos=traffic_class << 5, size=59, at=at * 1e-3)

        packets = [to(C, 1, 3, 0.95), to(C, 2, 3, 0.96), to(C, 3, 5, 1.5), to(C, 4, 2, 2), to(B, 5, 3, 2), to(C, 6, 3, 2.5), to(C, 7, 3, 9)]
        self.assertEqual(self.departures([pause(1e-3, {3: 100})], packets),
                         {1: 0.95, 2: 6.12, 3: 1.5, 4: 2, 5: 2, 6: 6.22, 7: 9}, "what was being sent goes on, other classes and ports too")
        # Two classes for different times; then a frame that ends one of them.
        packets = [to(C, 1, 3, 1.5), to(C, 2, 5, 1.6), to(C, 3, 0, 1.7)]
        frames = [pause(1e-3, {3: 200, 5: 100}), pause(3e-3, {3: 0})]
        self.assertEqual(self.departures(frames, packets), {1: 3, 2: 6.12, 3: 1.7})
        # The last frame counts: a shorter time takes the place of a longer one, and a longer one of a shorter.
        frames = [pause(1e-3, {3: 200, 5: 20}), pause(2e-3, {3: 20, 5: 200})]
        self.assertEqual(self.departures(frames, packets), {1: 3.024, 2: 12.24, 3: 1.7})

    def test_802_3x_frames_hold_the_whole_port(self):
        packets = [udp(A, C, sport=1 + i, tos=i << 5, size=59, at=2e-3) for i in range(8)] + [udp(A, B, sport=9, size=59, at=2e-3)]
        # The highest class first, 0.1 ms each.
        for frames, begin in (([pause(1e-3, 100)], 6.12), ([pause(1e-3, 0xFFFF), pause(4e-3, 0)], 4)):
            self.assertEqual(self.departures(frames, packets), {**{1 + i: round(begin + (7 - i) * 0.1, 3) for i in range(8)}, 9: 2})

    def test_our_pause_is_repeated_while_the_congestion_lasts(self):
        """Packets of 1 s each: the queue is above xoff from the fifth on, and down at xon 10 s later."""
        packets = [udp(A, C, tos=0x60, size=958, at=0.01 * i) for i in range(12)]
        out, report = self.run_switch(
            {"ports": ["a", "c"], "forward": {"macs": [{"mac": C, "ports": ["c"]}]},
             "traffic_manager": {"rates": [{"ports": ["a"], "rate": "10Mbps"}, {"ports": ["c"], "rate": "8192bps"}], "class_of": "dscp",
                                 "pfc": {"classes": [3], "xoff": "3000B", "xon": "1000B"}}}, top={"drain": "15s"}, a=packets)
        self.assertEqual(len(out["c"]), len(packets))
        quanta = [int.from_bytes(bytes(p)[24:26], "big") for p in out["a"]]
        times = [float(p.time) - 1000 for p in out["a"]]
        self.assertEqual(quanta, [0xFFFF] * (len(quanta) - 1) + [0], "and it is ended once")
        self.assertAlmostEqual(times[0], 0.04, delta=1e-3)
        self.assertAlmostEqual(times[-1], 10, delta=1e-3)
        lasts = 0xFFFF * 512 / 10e6
        for before, after in zip(times, times[1:-1]):
            self.assertLess(after - before, lasts, "the neighbour never begins again")
            self.assertGreater(after - before, lasts / 4, "nor is it flooded")
        self.assertLess(times[-1] - times[-2], lasts)
        self.assertEqual(report["counters"]["tx_pause_frames"], len(quanta))

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
        config = self.config("devices: {s: {switch: {ports: [a, b], profile: {sram_pages: 24, map_ram: 12, stages: 6}}}}\n")
        out, _ = self.rocebox("check", config, "--strict", "--resources")
        self.assertIn("mac_last_seen", out)
        self.assertIn("no access that the hardware could not do", out)
        # A bridge alone: its router's tables can meet no packet, its own did.
        self.assertIn("program forward: not in use, since there is no `router_mac`: ipv4_route, ipv6_route", out)
        self.assertNotIn("no trial packet", out)
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
