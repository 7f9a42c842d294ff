#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command under ever lower limits on its address space: it does its work, or says in one line that memory is lacking."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import common

KIBIBYTES = (60_000, 75_000, 80_000, 100_000, 180_000, 250_000, 300_000, 400_000, 600_000, 2_000_000)


def limited(kibibytes, *words):
    return subprocess.run(["sh", "-c", f'ulimit -c 0; ulimit -v {kibibytes}; exec "$@"', "sh", common.ROCEBOX, *map(str, words)],
                          capture_output=True, text=True, timeout=300)


class Memory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rocebox-memory-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def config(self, path):
        config = self.folder / "m.yaml"
        config.write_text(f"devices: {{bump: {{path: {path}}}}}\npool: {{small: 8192, large: 512, giant: 8}}\n"
                          f"ports: {{a: {{pcap: {{in: {common.CAPTURES / 'rc_write.pcap'}}}}}, z: {{pcap: {{out: {self.folder}/out.pcap}}}}}}\n")
        return config

    def runs(self, kibibytes, *words):
        """Whether it does its work; else it says once what is lacking, and leaves nothing behind."""
        with self.subTest(f"{words[0]} {kibibytes}"):
            done = limited(kibibytes, *words)
            self.assertEqual([path.name for path in self.folder.iterdir() if "part" in path.name], [], done.stderr)
            if done.returncode == 0:
                return True
            self.assertIn(done.returncode, (1, 2), done.stderr)
            said = [line for line in done.stderr.splitlines() if "memory in ordinary pages" not in line]  # that it has begun
            self.assertEqual(len(said), 1, done.stderr)
            self.assertRegex(said[0], "memory|address space")
            self.assertNotIn("bad_alloc", done.stderr)
        return False

    def test_what_is_lacking_is_said_once(self):
        config = self.config("a <-> inspect <-> z")
        for words in (["check", config], ["replay", config], ["run", config], ["kernels"], ["kernels", "--json"], ["top", "--list"]):
            done = [self.runs(kibibytes, *words) for kibibytes in KIBIBYTES]
            self.assertTrue(done[-1], words)

    def test_up_to_the_last_mebibyte(self):
        """Between the limits that do and that do not, everything is what is lacking once."""
        config = self.config("a <-> inspect <-> z")
        for command in ("replay", "run"):
            low, high = 300_000, 2_000_000
            while high - low > 512:
                middle = (low + high) // 2
                low, high = (low, middle) if self.runs(middle, command, config) else (middle, high)

    def test_what_it_says_that_dpdk_needs_is_enough(self):
        """For who raises the limit by what is lacking; with kernels that keep nothing, on top of which nothing comes."""
        for path in ("a <-> z", "a <-> link <-> z"):
            config = self.config(path)
            for command in ("replay", "run"):
                for kibibytes in (80_000, 100_000, 180_000):
                    error = limited(kibibytes, command, config).stderr
                    told = re.search(r"leaves (\d+) MiB, and DPDK needs (\d+), ", error)
                    self.assertTrue(told, error)
                    left, needed = map(int, told.groups())
                    done = limited(kibibytes + (needed - left + 1) * 1024, command, config)
                    self.assertEqual(done.returncode, 0, f"{path} {command} {kibibytes}: {error} {done.stderr}")


if __name__ == "__main__":
    if limited(KIBIBYTES[0], "--version").returncode != 0:
        print("skipped: this build needs more address space to begin with (a sanitizer's)")
        sys.exit(77)
    unittest.main()
