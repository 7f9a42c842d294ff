#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory does not grow with packets: each shipped replay, of a capture and of ten times as much of it."""
import os
import re
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from common import HERE, ROCEBOX, RoceboxTest  # noqa: E402

CONFIGS = sorted((HERE.parent.parent / "configs/replay").glob("*.yaml"))
INPUT = re.compile(r"^  ([\w.]+): \{pcap: \{in: ([^,}]+)(?:, filter: ([^}]+))?", re.M)
GROWTH_MAX_KIB = 1024  # what a run touches later than another one by chance
FEWER_PACKETS = 50000  # behind which nothing is touched for the first time


def records(path):
    """(pcap header, [(nanoseconds or microseconds since the epoch, captured bytes, wire bytes)])"""
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    parts = 1_000_000_000 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1_000_000
    rows, at = [], 24
    while at < len(data):
        seconds, fraction, held, wire = struct.unpack_from(order + "IIII", data, at)
        rows.append((seconds * parts + fraction, data[at + 16:at + 16 + held], wire))
        at += 16 + held
    return data[:24], order, parts, rows


def repeat(path, packets, to):
    """Writes the capture again and again, each time behind the last, until there are so many packets."""
    header, order, parts, rows = records(path)
    span = rows[-1][0] - rows[0][0] + parts // 1000
    with to.open("wb") as file:
        file.write(header)
        for turn in range(-(-packets // len(rows))):
            for at, held, wire in rows:
                at += turn * span
                file.write(struct.pack(order + "IIII", at // parts, at % parts, len(held), wire) + held)
    return to


class Growth(RoceboxTest):
    def peak_kib(self, config, packets):
        words = [ROCEBOX, "replay", str(config), "-q"]
        for port, path, chosen in INPUT.findall(config.read_text()):
            source = (config.parent / path.strip()).resolve()
            to = self.dir / f"{source.stem}.{packets}.pcap"
            words += ["--in", f"{port}={to if to.exists() else repeat(source, packets, to)}"]
            words += ["--filter", f"{port}={chosen}"] if chosen else []
        self.assertGreater(len(words), 4, f"{config} has no input that this test finds")
        done = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with done.stderr as stream:
            told = stream.read()
        _, status, used = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(done.returncode, (0, 1), told)  # 1: what it expects of the capture as it is
        return used.ru_maxrss

    def test_each_shipped_replay_takes_the_same_for_ten_times_the_packets(self):
        self.assertGreater(len(CONFIGS), 5)
        for config in CONFIGS:
            with self.subTest(config.name):
                # Pages of libraries count as the page cache has them: what grows with packets does so each time.
                for _ in range(3):
                    less, more = self.peak_kib(config, FEWER_PACKETS), self.peak_kib(config, 10 * FEWER_PACKETS)
                    if "-v" in sys.argv:
                        print(f"{config.name}: {less} KiB, {more} KiB")
                    if more < less + GROWTH_MAX_KIB:
                        break
                self.assertLess(more, less + GROWTH_MAX_KIB)


if __name__ == "__main__":
    unittest.main()
