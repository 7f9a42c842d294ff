#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""configs/wireshark/kernels/rtt.lua: probes of the round-trip time, written here from nic_model/rate/README.md alone."""
import struct
import sys

sys.dont_write_bytecode = True
from wireshark_test import Wireshark, main  # noqa: E402

PORT, OWN_PORT = 49791, 50123
FIELDS = ("udp.srcport", *(f"rocebox_rtt.{name}" for name in ("kind", "destination_qp", "source_qp", "serial", "request_sent",
                                                               "request_received", "response_sent", "payload")), "_ws.expert")


def frame(payload, source, destination):
    udp = struct.pack(">4H", source, destination, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return bytes(6) + bytes(6) + b"\x08\x00" + ip + udp


def probe(kind, version=1, times=(0, 0), payload=bytes(32)):
    queue_pairs = (0x22, 0x11) if kind == 1 else (0x11, 0x22)
    return b"RBRT" + struct.pack(">BBH4I3Q", version, kind, 0, *queue_pairs, 7, 0, 123456789012, *times) + payload


class Rtt(Wireshark):
    def test_requests_and_responses(self):
        written = bytes(range(32))
        path = self.capture([frame(probe(1), OWN_PORT, PORT), frame(probe(2, times=(5, 6), payload=written), PORT, OWN_PORT)])
        self.assertEqual(self.fields(path, fields=FIELDS),
                         [[str(OWN_PORT), "1", "0x00000022", "0x00000011", "7", "123456789012", "", "", "", ""],
                          [str(PORT), "2", "0x00000011", "0x00000022", "7", "123456789012", "5", "6", written.hex(), ""]])

    def test_what_no_nic_sends_is_a_warning_and_other_datagrams_are_not_touched(self):
        odd = [probe(1, version=2), probe(3), probe(1)[:60]]
        rows = self.fields(self.capture([frame(one, OWN_PORT, PORT) for one in (*odd, b"something else")]),
                           fields=("rocebox_rtt.impossible", "rocebox_rtt"))
        self.assertEqual([bool(row[0]) for row in rows], [True, True, True, False])
        self.assertEqual([bool(row[1]) for row in rows], [True, True, True, False])


if __name__ == "__main__":
    main()
