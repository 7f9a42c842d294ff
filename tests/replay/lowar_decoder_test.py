#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the encoder makes of real captures, for a decoder written from the README alone: whatever can be repaired is rebuilt, byte
for byte; and the far gateway hands over the same."""
import collections
import random
import struct
import sys
import unittest

sys.dont_write_bytecode = True
import lowar_decoder  # noqa: E402
import make_derived  # noqa: E402
import wire  # noqa: E402
from common import CAPTURES, RoceboxTest  # noqa: E402
from lowar_captures import MAD_QPN, RC_UC, by_stream, frames, is_coded, parse, stream  # noqa: E402

CODINGS = ((8, 2), (5, 1), (64, 8))
PATIENT = "hold_min: 1s, hold_max: 1s"  # time is no reason to give up
CE, HOPS = 3, 3


class Blocks:
    """The shares of what went onto a link: `shares` are places in it, of a repair packet and then of what it covers;
    `firsts` and `lasts` those of packets that begin and end messages of more than one."""

    def __init__(self, coded):
        self.shares, self.firsts, self.lasts = [], set(), set()
        latest = {}
        for place, frame in enumerate(coded):
            packet, fields = lowar_decoder.lowar(frame), parse(frame)
            if packet is None:
                if is_coded(frame):
                    latest[stream(frame), fields["psn"]] = place
                    self.firsts |= {place} if fields["op"] in lowar_decoder.STARTS - lowar_decoder.ALONE else set()
                    self.lasts |= {place} if fields["op"] in lowar_decoder.ENDS - lowar_decoder.ALONE else set()
            elif packet["type"] == lowar_decoder.REPAIR:
                key = fields["src"], fields["dst"], packet["qpn"], bool(packet["flags"] & lowar_decoder.RESPONSES)
                self.shares.append([place, *(latest[key, psn] for psn in lowar_decoder.covers(packet))])

    def one_of_each(self, draw, often):
        """One loss in most shares: as many as can be repaired."""
        return {draw.choice(share) for share in self.shares if draw.random() < often}

    def one_of_each_among(self, wanted):
        """Of each share a packet of those, where it has one; never two."""
        return {min(found) for found in (wanted & set(share[1:]) for share in self.shares) if found}


def hopped(frame, marked):
    """The frame three hops later, marked CE or not; the ICRC does not see it."""
    ip, udp, _, version = wire.find_udp(frame)
    changed = bytearray(frame)
    if version == 4:
        changed[ip + 8] -= HOPS
        changed[ip + 1] = changed[ip + 1] & 0xfc | (CE if marked else changed[ip + 1] & 3)
        changed[ip + 10:ip + 12] = bytes(2)
        struct.pack_into(">H", changed, ip + 10, lowar_decoder.ipv4_checksum(bytes(changed[ip:udp])))
    else:
        changed[ip + 7] -= HOPS
        changed[ip + 1] |= CE << 4 if marked else 0
    return bytes(changed)


def as_repair_says(frame, repair):
    """The frame with the TTL and ToS, hop limit, traffic class and flow label of a repair packet."""
    ip, udp, _, version = wire.find_udp(frame)
    changed = bytearray(frame)
    if version == 4:
        changed[ip + 8], changed[ip + 1] = repair[ip + 8], repair[ip + 1]
        changed[ip + 10:ip + 12] = bytes(2)
        struct.pack_into(">H", changed, ip + 10, lowar_decoder.ipv4_checksum(bytes(changed[ip:udp])))
    else:
        changed[ip:ip + 4], changed[ip + 7] = repair[ip:ip + 4], repair[ip + 7]
    changed[udp + 6:udp + 8] = repair[udp + 6:udp + 8]
    return bytes(changed)


class LowarDecoder(RoceboxTest):
    def pairs(self, name, rows, port, more=""):
        """A gateway for each coding, with frames of its own by `port`: the names of what leaves by the other one."""
        other = {"host": "wan", "wan": "host"}[port]
        devices, ports = [], []
        for r, c in CODINGS:
            device = f"d{r}_{c}"
            devices.append(f"  {device}: {{path: host <-> lowar <-> wan, kernels: {{lowar: {{r: {r}, c: {c}, {PATIENT}}}}}}}\n")
            (self.dir / f"{name}_{device}.in").write_bytes(make_derived.pcap(rows[r, c]))
            ports.append(f"  {device}.{port}: {{pcap: {{in: {name}_{device}.in}}}}\n"
                         f"  {device}.{other}: {{pcap: {{out: {name}_{device}.out}}}}\n")
        report = self.replay(self.config("".join(("devices:\n", *devices, "ports:\n", *ports))))
        return {(r, c): (frames(self.dir / f"{name}_d{r}_{c}.out"), report["devices"][f"d{r}_{c}"]["kernels"]["lowar"]["counters"])
                for r, c in CODINGS}

    def encoded(self, capture):
        records = make_derived.load(capture.name)
        return self.pairs("near", dict.fromkeys(CODINGS, records), "host")

    def decoded(self, coded, lost):
        """What our second decoder hands over without the lost places, each stream in order."""
        decoder = lowar_decoder.Decoder()
        for place, frame in enumerate(coded):
            if place not in lost and (lowar_decoder.lowar(frame) or is_coded(frame)):
                decoder.take(frame)
        return {key: [frame for _, frame in rows] for key, rows in decoder.streams.items() if key[2] != MAD_QPN}, decoder.rebuilt

    def test_it_rebuilds_every_pattern_that_can_be_repaired(self):
        """One loss in each share at random, all Firsts, all Lasts, both; what the gateway hands over without some of them."""
        rebuilt = collections.Counter()
        for number, capture in enumerate(RC_UC):
            links, lost_of = {}, {}
            encoded = self.encoded(capture)
            for (r, c), (coded, _) in encoded.items():
                blocks, draw = Blocks(coded), random.Random(100 * number + r)
                patterns = {"firsts": blocks.one_of_each_among(blocks.firsts), "lasts": blocks.one_of_each_among(blocks.lasts),
                            "firsts and lasts": blocks.one_of_each_among(blocks.firsts | blocks.lasts),
                            "some": blocks.one_of_each(draw, 0.5), "most": blocks.one_of_each(draw, 0.9),
                            "all": blocks.one_of_each(draw, 1)}
                wanted = by_stream(frame for frame in coded if lowar_decoder.lowar(frame) is None and is_coded(frame))
                for title, lost in patterns.items():
                    with self.subTest(capture=capture.stem, r=r, c=c, lost=title):
                        got, count = self.decoded(coded, lost)
                        self.assertEqual(got, wanted)
                        self.assertEqual(count, sum(lowar_decoder.lowar(coded[place]) is None for place in lost))
                        rebuilt[title] += count
                lost_of[r, c] = patterns["all"]
                links[r, c] = [(place * 1000, 0, frame) for place, frame in enumerate(coded) if place not in patterns["all"]]
            for coding, (came, counters) in self.pairs("far", links, "wan").items():
                with self.subTest(capture=capture.stem, coding=coding, decoder="the gateway's"):
                    sent = by_stream(frame for frame in encoded[coding][0] if lowar_decoder.lowar(frame) is None
                                     and (parse(frame) or {"icrc_ok": True})["icrc_ok"])
                    self.assertEqual(by_stream(came), sent)
                    self.assertEqual(counters["decode_recovered"], sum(lowar_decoder.lowar(encoded[coding][0][place]) is None
                                                                       for place in lost_of[coding]))
        for title in ("firsts", "lasts", "firsts and lasts"):
            self.assertGreater(rebuilt[title], 300, title)
        self.assertGreater(rebuilt["all"], 2000)

    def test_what_hops_change_is_taken_from_the_repair_packet(self):
        """TTLs are lower behind the link, and some packets marked: both decoders take the repair packet's."""
        for name in ("ecn_rx", "rc_write_ipv6", "rc_read_pipelined"):
            links, wanted, fallen_back = {}, {}, collections.Counter()
            for coding, (coded, _) in self.encoded(CAPTURES / f"{name}.pcap").items():
                blocks, draw = Blocks(coded), random.Random(7)
                link = [hopped(frame, lowar_decoder.lowar(frame) is None and draw.random() < 0.3) for frame in coded]
                lost = {draw.choice(share[1:]) for share in blocks.shares}
                due = list(link)
                for share in blocks.shares:
                    for place in lost & set(share):  # of a share of one packet nothing has changed: the packet is in it as it was
                        due[place] = as_repair_says(link[place], link[share[0]]) if len(share) > 2 else coded[place]
                        fallen_back[coding] += len(share) > 2
                wanted[coding] = by_stream(frame for frame in due if lowar_decoder.lowar(frame) is None and is_coded(frame))
                with self.subTest(capture=name, coding=coding):
                    self.assertEqual(self.decoded(link, lost)[0], wanted[coding])
                links[coding] = [(place * 1000, 0, frame) for place, frame in enumerate(link) if place not in lost]
            self.assertGreater(fallen_back[8, 2], 0)
            for coding, (came, counters) in self.pairs("far", links, "wan").items():
                with self.subTest(capture=name, coding=coding, decoder="the gateway's"):
                    self.assertEqual(by_stream(frame for frame in came if is_coded(frame)), wanted[coding])
                    self.assertEqual(counters["decode_recovered_hops"], fallen_back[coding])

    def test_each_packet_from_the_others_of_its_share(self):
        """Single losses, exhaustively; and what the headers and announcements count."""
        rebuilt = 0
        for capture in RC_UC:
            for (r, c), (coded, counters) in self.encoded(capture).items():
                with self.subTest(capture=capture.stem, r=r, c=c):
                    made = [frame for frame in coded if lowar_decoder.lowar(frame)]
                    self.assertEqual(len(made), counters["encode_repairs"] + counters["encode_announcements"])
                    rebuilt += self.rebuild_each(coded, r, c)
        self.assertGreater(rebuilt, 5000)

    def rebuild_each(self, rows, r, c):
        """Every packet that a repair packet covers, from the others that it covers; how many there were."""
        latest, sent, count = {}, collections.Counter(), 0
        for frame in rows:
            packet, fields = lowar_decoder.lowar(frame), parse(frame)
            if packet is None:
                if is_coded(frame):
                    latest[stream(frame), fields["psn"]] = frame
                    sent[stream(frame)] += 1
                continue
            key = fields["src"], fields["dst"], packet["qpn"], bool(packet["flags"] & lowar_decoder.RESPONSES)
            if packet["type"] == lowar_decoder.NEGOTIATION:
                self.assertEqual(packet["sent"], sent[key] % (1 << 16))
                continue
            self.assertEqual((packet["r"], packet["c"]), (r, c))
            self.assertEqual(packet["sent"], (sent[key] - packet["packets"]) % (1 << 8))
            covered = [latest[key, psn] for psn in lowar_decoder.covers(packet)]
            for lost, original in enumerate(covered):
                self.assertEqual(lowar_decoder.rebuild(packet, covered[:lost] + covered[lost + 1:]), original)
                lowar_decoder.proves_right(packet, original, lowar_decoder.covers(packet)[lost])
                count += 1
            if len(covered) > 3:  # a right ICRC alone does not prove which packets went in
                with self.assertRaises(ValueError):
                    lowar_decoder.rebuild(packet, covered[3:])
        return count

    def test_scapy_makes_the_same_bytes_of_what_the_encoder_made(self):
        """ICRC, IPv4 checksum and lengths of LoWAR's packets, and ICRCs of rebuilt ones, by code that is not ours."""
        from scapy.contrib.roce import BTH
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        checked = collections.Counter()
        for name in ("rc_write", "rc_read_mtu4096", "uc_write_var"):
            coded, _ = self.encoded(CAPTURES / f"{name}.pcap")[8, 2]
            latest = {}
            for frame in coded:
                packet = lowar_decoder.lowar(frame)
                if packet is None:
                    latest.update({parse(frame)["psn"]: frame} if is_coded(frame) else {})
                    continue
                if checked[name, packet["type"]] == 20:
                    continue
                checked[name, packet["type"]] += 1
                dissected = Ether(frame)
                self.assertEqual((dissected[BTH].opcode, dissected[UDP].dport, dissected[UDP].chksum), (0x1f, 4791, 0))
                for layer, field in ((IP, "chksum"), (IP, "len"), (UDP, "len"), (BTH, "icrc")):
                    delattr(dissected[layer], field)
                self.assertEqual(bytes(dissected), frame)
                if packet["type"] == lowar_decoder.REPAIR:
                    first, *others = lowar_decoder.covers(packet)
                    lost = Ether(lowar_decoder.rebuild(packet, [latest[psn] for psn in others]))
                    self.assertEqual(lost[BTH].psn, first)
                    self.assertEqual(lost[BTH].compute_icrc(b""), struct.pack("!I", lost[BTH].icrc))
                    checked["rebuilt"] += 1
        self.assertEqual(checked["rc_write", lowar_decoder.REPAIR], 20)
        self.assertGreater(checked["rc_write", lowar_decoder.NEGOTIATION], 0)
        self.assertGreater(checked["rebuilt"], 3)


if __name__ == "__main__":
    unittest.main()
