#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opcode, PSN, QPN and ICRC of every packet of every capture: rocebox's parser against tshark, scapy and ten lines of
Python (oracle_wire.py); and the variants of captures that a user may bring."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import oracle_wire  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DUMP = os.environ["DUMP_WIRE"]


class Wire(unittest.TestCase):
    def compare(self, path):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as ours:
            subprocess.run([DUMP, path], stdout=ours, check=True)
            ours.flush()
            self.assertEqual(oracle_wire.check(str(path), ours.name)[1], [], path)
            return pathlib.Path(ours.name).read_text().count("\n")

    def test_captures(self):
        captures = sorted((HERE / "captures").glob("*.pcap"))
        self.assertGreater(len(captures), 30)
        packets = 0
        for path in captures:
            with self.subTest(path.name):
                packets += self.compare(path)
        self.assertGreater(packets, 4000)

    def test_variants(self):
        """Nanosecond and big-endian pcap, pcapng, VLAN, QinQ, IPv4 options, IPv6 extension headers, snapped, cut."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, HERE / "make_derived.py", folder], check=True, stdout=subprocess.DEVNULL)
            refused = {"garbage.bin", "linux_sll.pcap"}
            for path in sorted(pathlib.Path(folder).iterdir()):
                with self.subTest(path.name):
                    if path.name in refused:
                        done = subprocess.run([DUMP, path], capture_output=True, text=True)
                        self.assertEqual(done.returncode, 2, path)
                    else:
                        lines = self.compare(path)
                        self.assertEqual(lines > 0, path.name != "empty.pcap", path)


if __name__ == "__main__":
    unittest.main()
