#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel `allgather` on captures, against a Python model over tshark's output: of packets that scapy makes, with
losses, copies, disorder and corruption, and of multicast that Linux's Soft-RoCE has sent."""
import random
import struct
import sys
import unittest

from common import CAPTURES, RoceboxTest, tshark
from oracle_allgather import model
from wire import icrc

try:
    import scapy.all as scapy
except ImportError:
    print("skipped: scapy is not installed")
    sys.exit(77)

CONFIG = "devices: {d: {path: a <-> allgather <-> b, kernels: {allgather: %s}}}\n"


def datagram(source, group, immediate, at, size, ipv6=False):
    """A UD SEND with immediate to a group, headers written by hand, ICRC by the model of tests/replay/wire.py."""
    bth = struct.pack(">BBHII", 0x65, (4 - size % 4) % 4 << 4, 0xffff, 0xffffff, immediate & 0xffffff)
    deth = struct.pack(">II", 0x11111111, 0x100 + source)
    payload = bytes(random.randrange(256) for _ in range(size)) + bytes((4 - size % 4) % 4)
    if ipv6:
        ip = scapy.IPv6(src="fd00::%d" % source, dst="ff05::%d" % group, hlim=64)
        mac = "33:33:00:00:00:%02x" % group
    else:
        ip = scapy.IP(src="10.0.0.%d" % source, dst="239.1.0.%d" % group, flags="DF")
        mac = "01:00:5e:01:00:%02x" % group
    body = bth + deth + struct.pack(">I", immediate) + payload + bytes(4)
    frame = bytearray(bytes(scapy.Ether(src="02:00:00:00:00:%02x" % source, dst=mac) / ip /
                            scapy.UDP(sport=0xc000, dport=4791, chksum=0) / scapy.Raw(body)))
    frame[-4:] = icrc(bytes(frame))
    packet = scapy.Ether(bytes(frame))
    packet.time = 1000 + at
    return packet


class AllgatherTest(RoceboxTest):
    def check(self, capture, options="{}", **words):
        """What the kernel says of a capture against the model; returns both."""
        config = self.config(CONFIG % options)
        report = self.replay(config, "--in", f"a={capture}")["devices"]["d"]["kernels"]["allgather"]
        streams, corrupt = model(capture, **words)
        self.assertGreater(len(streams), 0)
        got = {(r["group"], r["source"], r["source_qpn"], r["collective_number"], r["generation_number"]): r
               for r in report["streams"]}
        self.assertEqual(set(got), set(streams))
        for key, stream in streams.items():
            row = got[key]
            self.assertEqual([row[n] for n in ("lowest_number", "highest_number", "chunks", "missing", "duplicates",
                                               "out_of_order", "late", "bytes", "first_at_ns", "last_at_ns")],
                             [min(stream.came), max(stream.came), len(stream.came), stream.missing(), stream.duplicates,
                              stream.out_of_order, stream.late, stream.bytes, stream.times[0], stream.times[-1]], key)
            self.assertEqual([[g["chunk_number"], g["count"]] for g in row["gaps"]], stream.gaps()[:16], key)
        for row in report["collectives"]:
            mine = {k: s for k, s in streams.items() if k[3:] == (row["collective_number"], row["generation_number"])}
            self.assertEqual(row["chunks"], sum(len(s.came) for s in mine.values()))
            self.assertEqual(row["missing"], sum(s.missing() for s in mine.values()))
            self.assertEqual(row["duplicates"], sum(s.duplicates for s in mine.values()))
            self.assertEqual(row["sources"], len({k[1] for k in mine}))
            self.assertEqual(row["last_at_ns"], max(s.times[-1] for s in mine.values()))
        self.assertEqual(report["counters"]["rx_icrc_encapsulated"], corrupt)
        return report, streams

    def test_losses_copies_disorder_and_corruption(self):
        random.seed(5)
        packets, at = [], 0.0
        names = [(source, group, tag, chunk) for tag in (0, 1 << 3 | 5) for source in (1, 2, 3) for group in (1, 2)
                 for chunk in range(source * 64, source * 64 + 60)]
        for i in range(len(names) - 1):  # disorder within a few
            j = min(len(names) - 1, i + random.choice((0, 0, 0, 1, 7)))
            names[i], names[j] = names[j], names[i]
        for source, group, tag, chunk in names:
            fate = random.random()
            for _ in range(0 if fate < 0.08 else 2 if fate > 0.93 else 1):
                at += 1e-6
                packet = datagram(source, group, tag << 24 | chunk, at, random.choice((256, 255, 253)), group == 2)
                if random.random() < 0.03:
                    data = bytearray(bytes(packet))
                    data[-9] ^= 0x40
                    time, packet = packet.time, scapy.Ether(bytes(data))
                    packet.time = time
                packets.append(packet)
        capture = self.dir / "made.pcap"
        scapy.wrpcap(str(capture), packets)
        self.assertEqual({row[0] for row in tshark(capture, "infiniband.bth.opcode")}, {"101"}, "tshark sees datagrams")
        report, streams = self.check(capture, "{cutoff: 300us, events: 4096}", cutoff=300_000)
        self.assertEqual(len(report["collectives"]), 2)
        self.assertGreater(report["counters"]["rx_icrc_encapsulated"], 5)
        for what in ("duplicates", "out_of_order", "late"):
            self.assertGreater(sum(getattr(s, what) for s in streams.values()), 5, what)
        # Events: every copy and every chunk that was overtaken, in the order of time.
        times = [event["at_ns"] for event in report["events"]]
        self.assertEqual(times, sorted(times))
        listed = {kind: sum(e["chunks"] for e in report["events"] if e["what"] == kind)
                  for kind in ("duplicate", "out_of_order", "late")}
        self.assertEqual(report.get("events_unlisted", 0), 0)
        self.assertEqual(listed, {"duplicate": sum(s.duplicates for s in streams.values()),
                                  "out_of_order": sum(s.out_of_order for s in streams.values()),
                                  "late": sum(s.late for s in streams.values())})

    def test_a_real_soft_roce_multicast(self):
        report, streams = self.check(CAPTURES / "ud_mcast.pcap")
        self.assertEqual(sum(len(s.times) for s in streams.values()), 6)
        self.assertEqual([row["group"] for row in report["groups"]], ["239.1.1.1"])


if __name__ == "__main__":
    unittest.main()
