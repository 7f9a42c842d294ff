#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command under ever lower limits on its address space: it does its work, or says in one line that memory is lacking."""
import pathlib
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
    def test_what_is_lacking_is_said_once(self):
        with tempfile.TemporaryDirectory(prefix="rocebox-memory-") as folder:
            folder = pathlib.Path(folder)
            config = folder / "m.yaml"
            config.write_text("devices: {bump: {path: a <-> inspect <-> z}}\npool: {small: 8192, large: 512, giant: 8}\n"
                              f"ports: {{a: {{pcap: {{in: {common.CAPTURES / 'rc_write.pcap'}}}}}, z: {{pcap: {{out: {folder}/out.pcap}}}}}}\n")
            for words in (["check", config], ["replay", config], ["run", config], ["kernels"], ["kernels", "--json"], ["top", "--list"]):
                done = None
                for kibibytes in KIBIBYTES:
                    with self.subTest(f"{words[0]} {kibibytes}"):
                        done = limited(kibibytes, *words)
                        if done.returncode == 0:
                            continue
                        self.assertIn(done.returncode, (1, 2), done.stderr)
                        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                        self.assertRegex(done.stderr, "memory|address space")
                        self.assertNotIn("bad_alloc", done.stderr)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([path.name for path in folder.iterdir() if "part" in path.name], [])


if __name__ == "__main__":
    if limited(KIBIBYTES[0], "--version").returncode != 0:
        print("skipped: this build needs more address space to begin with (a sanitizer's)")
        sys.exit(77)
    unittest.main()
