#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""configs/wireshark/kernels/themis.lua: the Path Avoidance Signal of a NACK, which the ICRC does not cover."""
import sys

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import CAPTURES  # noqa: E402
from wireshark_test import GOOD, Wireshark, main  # noqa: E402

BTH, ACKNOWLEDGE, SYNDROME, NAK_PSN_SEQUENCE = 42, 0x11, 54, 0x60


class Themis(Wireshark):
    def test_the_path_avoidance_signal(self):
        frames = [bytes(frame) for _, _, frame in wire.read_pcap(str(CAPTURES / "rc_send_loss_rx.pcap"))[0]]
        nack = next(f for f in frames if f[BTH] == ACKNOWLEDGE and f[SYNDROME] == NAK_PSN_SEQUENCE)
        marked = bytearray(nack)
        marked[BTH + 4] |= 0x01
        path = self.capture([nack, bytes(marked)])
        rows = self.fields(path, fields=("themis.path_avoidance", "rocebox.icrc.status"))
        self.assertEqual(rows, [["", GOOD], ["1", GOOD]])


if __name__ == "__main__":
    main()
