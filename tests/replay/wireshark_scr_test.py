#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""configs/wireshark/kernels/scr.lua: messages of peers, written here from kernels/scr/README.md alone."""
import struct
import sys

sys.dont_write_bytecode = True
from wireshark_test import Wireshark, main  # noqa: E402

PORT, OWN_PORT = 49792, 50123
FIELDS = ("udp.srcport", *(f"rocebox_peer.{name}" for name in ("destination_qp", "source_qp", "sent", "kind", "value", "value2", "contents")),
          "_ws.expert")


def frame(payload):
    udp = struct.pack(">4H", OWN_PORT, PORT, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return bytes(6) + bytes(6) + b"\x08\x00" + ip + udp


def message(contents, version=1):
    return b"RBPM" + struct.pack(">B3xIIQ8x", version, 0x22, 0x11, 123456789012) + contents


def contents(kind, value, value2=0, version=1):
    return b"SCRM" + struct.pack(">BB2xQQ", version, kind, value, value2) + bytes(72)


class Scr(Wireshark):
    def test_messages(self):
        other = bytes(range(96))
        path = self.capture([frame(message(contents(1, 40000000000, 7))), frame(message(other))])
        self.assertEqual(self.fields(path, fields=FIELDS),
                         [[str(OWN_PORT), "0x00000022", "0x00000011", "123456789012", "1", "40000000000", "7", "", ""],
                          [str(OWN_PORT), "0x00000022", "0x00000011", "123456789012", "", "", "", other.hex(), ""]])

    def test_what_no_nic_sends_is_a_warning_and_other_datagrams_are_not_touched(self):
        odd = [message(contents(1, 1), version=2), message(contents(0, 1)), message(contents(1, 1, version=9)),
               message(contents(1, 1))[:100]]
        rows = self.fields(self.capture([frame(one) for one in (*odd, b"something else")]),
                           fields=("rocebox_peer.impossible", "rocebox_peer"))
        self.assertEqual([bool(row[0]) for row in rows], [True, True, True, True, False])
        self.assertEqual([bool(row[1]) for row in rows], [True, True, True, True, False])


if __name__ == "__main__":
    main()
