#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""configs/wireshark/kernels/lowar.lua on packets that our encoder made: each field against the Python decoder's."""
import struct
import sys

sys.dont_write_bytecode = True
import lowar_decoder  # noqa: E402
import make_derived  # noqa: E402
import wire  # noqa: E402
from common import CAPTURES  # noqa: E402
from wireshark_test import BAD, GOOD, Wireshark, main  # noqa: E402

HEADER = ("opcode", "qpn", "type", "version", "flags", "r", "c", "bpsn")
REPAIR = ("isn", "sent", "packets", "last_length", "hop_sum", "set_sum", "covered", "coded")
PREFIX = ("length", "udp_srcport", "ip", "ttl", "tos", "udp_checksum")
NEGOTIATION = ("kind", "negotiation", "serial", "sent", "token")
FLAGS = ("has_first", "has_last", "responses", "anew")
CONFIG = "devices: {d: {path: host <-> lowar <-> wan, kernels: {lowar: {r: 6, c: 2}}}}\n"


def number(text):
    return int(text, 0)


class Lowar(Wireshark):
    def coded(self, name):
        """What a gateway sends to the link of a capture: (path, frames)."""
        out = self.dir / f"{name}.pcap"
        self.replay(self.config(CONFIG), "--in", f"d.host={CAPTURES / name}.pcap", "--out", f"d.wan={out}")
        return out, [bytes(frame) for _, _, frame in wire.read_pcap(str(out))[0]]

    def rows(self, path, names, *words):
        return self.fields(path, *words, fields=[f"lowar.{name}" for name in names])

    def test_every_field_of_what_the_encoder_makes(self):
        repairs = negotiations = 0
        for name in ("rc_write", "rc_write_ipv6", "rc_read_mtu4096", "rc_send_loss_tx", "uc_write_var"):
            with self.subTest(name):
                path, frames = self.coded(name)
                made = [packet for frame in frames if (packet := lowar_decoder.lowar(frame))]
                rows = self.rows(path, HEADER, "-Y", "lowar")
                self.assertEqual([[number(value) for value in row] for row in rows],
                                 [[0x1f, p["qpn"], p["type"], p["version"], p["flags"], p["r"], p["c"], p["base"]] for p in made])
                flags = self.rows(path, [f"flags.{flag}" for flag in FLAGS], "-Y", "lowar")
                self.assertEqual([[value in ("1", "True") for value in row] for row in flags],
                                 [[bool(p["flags"] & 1 << bit) for bit in range(4)] for p in made])
                wanted = [p for p in made if p["type"] == lowar_decoder.REPAIR]
                self.repairs(path, wanted)
                self.negotiations(path, [p for p in made if p["type"] == lowar_decoder.NEGOTIATION], frames)
                repairs, negotiations = repairs + len(wanted), negotiations + len(made) - len(wanted)
        self.assertGreater(repairs, 100)
        self.assertGreater(negotiations, 4)

    def repairs(self, path, wanted):
        names = REPAIR + tuple(f"coded.{name}" for name in PREFIX)
        rows = self.rows(path, names, "-Y", "lowar.type == 0x5a")
        for row, packet in zip(rows, wanted, strict=True):
            image = packet["image"]
            self.assertEqual([number(value) for value in row[:7]],
                             [packet["isn"], packet["sent"], packet["packets"], packet["last_bytes"], packet["hop_sum"],
                              packet["set_sum"], len(lowar_decoder.covers(packet))])
            self.assertEqual(row[7], image[lowar_decoder.PREFIX:].hex())
            self.assertEqual(tuple(map(number, row[8:])), struct.unpack_from(">HHIBBH", image))
        psns = self.rows(path, ["covered_psn"], "-Y", "lowar.type == 0x5a", "-E", "occurrence=a", "-E", "aggregator=,")
        self.assertEqual([[int(psn) for psn in row[0].split(",")] for row in psns], [lowar_decoder.covers(p) for p in wanted])

    def negotiations(self, path, wanted, frames):
        rows = self.rows(path, NEGOTIATION, "-Y", "lowar.type == 0xa5")
        tails = [frame[-14:-4] for frame in frames if (p := lowar_decoder.lowar(frame)) and p["type"] == lowar_decoder.NEGOTIATION]
        self.assertEqual([[int(row[0]), row[1], int(row[2]), int(row[3]), number(row[4])] for row in rows],
                         [[p["isn"], tail.hex(), int.from_bytes(tail[:2], "big"), p["sent"], int.from_bytes(tail[6:], "big")]
                          for p, tail in zip(wanted, tails, strict=True)])

    def test_flow_icrc_and_the_names_that_people_read(self):
        path, frames = self.coded("rc_write")
        names = ("rocebox.flow", "rocebox.icrc.status", "rocebox.kernel", "rocebox.psn_distance", "_ws.expert.message",
                 "_ws.lua.text")
        data = self.fields(path, "-Y", "!lowar", fields=names)
        rows = self.fields(path, "-Y", "lowar", fields=names)
        self.assertLessEqual({row[0] for row in rows}, {row[0] for row in data}, "the flow of the data it follows")
        self.assertEqual({tuple(row[1:4]) for row in rows}, {(GOOD, "lowar", "")})
        self.assertEqual({row[5] for row in rows}, {""})
        self.assertFalse([row[4] for row in rows if "lowar" in row[4].lower() or "field that no encoder" in row[4]])
        text, _ = self.tshark(path, "-Y", "lowar")
        self.assertRegex(text, r"\[lowar\] Announce r=6 c=2 from PSN \d+")
        self.assertRegex(text, r"\[lowar\] repair 2 of 2, 3 packets, PSN \d+ to \d+")

    def test_negotiation_of_every_kind(self):
        _, frames = self.coded("rc_write")
        announce = next(frame for frame in frames if (p := lowar_decoder.lowar(frame)) and p["type"] == lowar_decoder.NEGOTIATION)

        def make(kind, r, c, serial, token):
            body = bytearray(announce)
            struct.pack_into(">HB", body, 42 + 6, r, c)
            body[42 + 12] = kind
            struct.pack_into(">H", body, 42 + 14, serial)
            struct.pack_into(">I", body, 42 + 20, token)
            return make_derived.with_icrc(bytes(body))

        path = self.capture([make(1, 8, 1, 0, 0), make(2, 64, 8, 0xfffe, 0x89abcdef), make(3, 0, 0, 7, 1), make(9, 1, 1, 0, 0)])
        rows = self.rows(path, ("kind", "r", "c", "serial", "token"))
        self.assertEqual([list(map(number, row)) for row in rows],
                         [[1, 8, 1, 0, 0], [2, 64, 8, 0xfffe, 0x89abcdef], [3, 0, 0, 7, 1], [9, 1, 1, 0, 0]])
        messages = self.fields(path, fields=("_ws.expert.message", "rocebox.icrc.status"))
        self.assertEqual([("Unknown kind" in row[0], row[1]) for row in messages], [(False, GOOD)] * 3 + [(True, GOOD)])
        text, _ = self.tshark(path)
        for line, words in zip(text.splitlines(), ("Announce r=8 c=1", "Request r=64 c=8", "Status uncoded", "kind 9 r=1 c=1")):
            self.assertIn(f"[lowar] {words} from PSN ", line)

    def test_what_no_encoder_writes_is_marked(self):
        _, frames = self.coded("rc_write")
        made = [(frame, p) for frame in frames if (p := lowar_decoder.lowar(frame))]
        repair = next(frame for frame, p in made if p["type"] == lowar_decoder.REPAIR and not p["flags"] & 2)  # has_Last
        ends = next(frame for frame, p in made if p["type"] == lowar_decoder.REPAIR and p["flags"] & 2)
        covers, leaves_out = (next((frame, p) for frame, p in made if p["flags"] & 2 and p["type"] == lowar_decoder.REPAIR and
                                   ((p["packets"] - 1) % p["c"] == p["isn"]) == last) for last in (True, False))
        announce = next(frame for frame, p in made if p["type"] == lowar_decoder.NEGOTIATION)

        def edit(frame, *bytes_at):
            body = bytearray(frame)
            for at, value in bytes_at:
                body[42 + at] = value
            return make_derived.with_icrc(bytes(body))

        def of_length(frame, size):
            body = bytearray(frame[:42 + size] + bytes(4))
            struct.pack_into(">H", body, 14 + 2, len(body) - 14)
            struct.pack_into(">H", body, 14 + 20 + 4, len(body) - 14 - 20)
            return make_derived.with_icrc(bytes(body))

        def one_byte_beyond(frame, packet):
            length = len(packet["image"]) - lowar_decoder.PREFIX + 1
            return edit(frame, (16, length >> 8), (17, length & 255))

        edits = {"Unknown type": edit(repair, (4, 0x5b)), "Unknown version": edit(repair, (5, 0x10)),
                 "r must be": edit(repair, (6, 2)), "c must be": edit(repair, (8, 200)), "from 1 to r and 32": edit(repair, (7, 80), (8, 40)),
                 "ISN must": edit(repair, (12, 9)), "A block has 1 to r": edit(repair, (15, 200)),
                 "The last length is not 0": edit(repair, (17, 1)), "The last length is that of": edit(ends, (16, 0), (17, 15)),
                 "at most that of the coded": one_byte_beyond(*covers), "Too short for a coded": of_length(repair, 24 + 12 + 15),
                 "has no flag but": edit(announce, (5, 0x31)), "has 24 bytes": of_length(announce, 25), "Reserved must": edit(announce, (13, 1)),
                 "Reserved must be": edit(announce, (19, 1)), "A request counts": edit(announce, (12, 2), (17, 1)),
                 "r must be from": edit(announce, (7, 0))}
        bad = bytearray(repair)
        bad[-5] ^= 1
        short = make_derived.with_icrc(repair[:42 + 20] + bytes(4))
        path = self.capture([*edits.values(), bytes(bad), short, one_byte_beyond(*leaves_out)])
        rows = self.fields(path, fields=("_ws.expert.message", "rocebox.icrc.status", "_ws.lua.text"))
        for row, message in zip(rows, edits):
            self.assertIn(message, row[0])
        self.assertEqual(rows[len(edits)][1], BAD)
        self.assertEqual(rows[-1], ["", GOOD, ""], "the last packet is in another share, whose image may be longer")
        self.assertEqual({row[2] for row in rows}, {""}, "a packet too short for its header harms nobody")


if __name__ == "__main__":
    main()
