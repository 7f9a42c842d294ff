# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the command share."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import finish  # noqa: E402, F401: scripts whose tests may be skipped end by it

CAPTURES = HERE / "captures"
ROCEBOX = os.environ.get("ROCEBOX", str(HERE.parent.parent / "build/release/rocebox"))


class RoceboxTest(unittest.TestCase):
    """A test with a folder of its own, which is removed at the end."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.dir = pathlib.Path(self._folder.name)

    def config(self, text, name="config.yaml"):
        path = self.dir / name
        path.write_text(text)
        return path

    def rocebox(self, *words, status=0, stdin=None, text=True, **more):
        """Runs the command; checks its exit status; returns (stdout, stderr)."""
        done = subprocess.run([ROCEBOX, *map(str, words)], input=stdin, capture_output=True, text=text, **more)
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def replay(self, config, *words, status=0):
        """Replays with --json; returns the report."""
        out = self.dir / "report.json"
        self.rocebox("replay", config, "--json", out, *words, status=status)
        return json.loads(out.read_text())


def tshark(path, *fields):
    """One list of field values a packet."""
    words = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    for field in fields:
        words += ["-e", field]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [line.split("|") for line in done.stdout.splitlines()]
