#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bash offers for the words of a `rocebox` command line."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from command_help import ROCEBOX, ROOT, commands, options

SCRIPT = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_rocebox
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(folder, *words, command=ROCEBOX):
    """The words that bash offers for the last of `words`, parted as COMP_WORDBREAKS does (`=` is a word)."""
    done = subprocess.run(["bash", "--norc", "-uc", SCRIPT, "bash", str(ROOT / "runtime/cli/completion/rocebox"), command, *words],
                          capture_output=True, text=True, cwd=folder)
    assert done.stderr == "", done.stderr
    return sorted(done.stdout.split())


class Completion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("run.yaml", "more.yml", "trace.pcap", "trace.pcapng", "report.json", "kernel.so", "notes.md"):
            (self.folder / name).touch()
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "deep.yaml").touch()

    def offered(self, *words):
        return offered(self.folder, *words)

    def test_is_registered_for_the_command(self):
        done = subprocess.run(["bash", "--norc", "-c", 'source "$1"; complete -p rocebox', "bash",
                               str(ROOT / "runtime/cli/completion/rocebox")], capture_output=True, text=True, check=True)
        self.assertIn("-F _rocebox rocebox", done.stdout)

    def test_offers_every_command(self):
        self.assertEqual(self.offered(""), sorted({command.split()[0] for command in commands()}))
        self.assertEqual(self.offered("lab", ""), sorted(c.split()[1] for c in commands() if c.startswith("lab ")))
        self.assertEqual(self.offered("rep"), ["replay"])
        self.assertEqual(self.offered("-"), ["--help", "--version"])

    def test_offers_every_option_of_every_command(self):
        for command in commands():
            self.assertEqual(self.offered(*command.split(), "-"), sorted(options(command)), command)
        self.assertEqual(self.offered("replay", "run.yaml", "--tr"), ["--trace", "--trace-out"])

    def test_offers_configurations(self):
        for command in ("replay", "run", "check", "lab run", "lab up", "lab down"):
            self.assertEqual(self.offered(*command.split(), ""), ["more.yml", "run.yaml", "sub"])
        self.assertEqual(self.offered("check", "--plugin", "kernel.so", "r"), ["run.yaml"])
        self.assertEqual(self.offered("check", "--schema", "r"), ["run.yaml"])
        self.assertEqual(self.offered("check", "sub/"), ["sub/deep.yaml"])

    def test_offers_the_kernels(self):
        rows = json.loads(subprocess.run([ROCEBOX, "kernels", "--json"], capture_output=True, text=True, check=True).stdout)
        listed = [row["name"] for row in rows]
        for name in ("link", "switch", "themis", "acl"):
            self.assertIn(name, listed)
        self.assertEqual(self.offered("kernels", ""), sorted(listed))
        self.assertEqual(self.offered("kernels", "--json", "li"), ["link"])

    def test_offers_the_models(self):
        self.assertEqual(self.offered("model", "--json", "report.json", "sd"), ["sdr"] if (ROOT / "kernels/sdr").is_dir() else [])

    def test_offers_the_runs_that_are_going_on(self):
        stand_in = self.folder / "rocebox"
        stand_in.write_text(f'#!/bin/sh\n[ "$*" = "top --list" ] || exec {ROCEBOX} "$@"\nprintf "%s\\n" "bump  /a" "tor-2  /b"\n')
        stand_in.chmod(0o755)
        self.assertEqual(offered(self.folder, "top", "", command=str(stand_in)), ["bump", "tor-2"])
        self.assertEqual(offered(self.folder, "top", "--once", "t", command=str(stand_in)), ["tor-2"])
        for command in ("trace", "capture"):
            self.assertEqual(offered(self.folder, command, "", command=str(stand_in)), ["bump", "tor-2"])
        self.assertEqual(self.offered("capture", "--write", "t"), ["trace.pcapng"])

    def test_offers_files_of_the_kind_that_an_option_takes(self):
        self.assertEqual(self.offered("replay", "--in", "near.host", "=", ""), ["sub", "trace.pcap", "trace.pcapng"])
        self.assertEqual(self.offered("replay", "--out", "b", "="), ["sub", "trace.pcap", "trace.pcapng"])
        self.assertEqual(self.offered("replay", "run.yaml", "--in", "a", "=", "tr"), ["trace.pcap", "trace.pcapng"])
        self.assertEqual(self.offered("run", "--json", ""), ["report.json", "sub"])
        self.assertEqual(self.offered("kernels", "--plugin", "k"), ["kernel.so"])
        self.assertEqual(self.offered("replay", "--trace-out", "t"), ["trace.pcapng"])

    def test_offers_nothing_where_it_cannot_know(self):
        for words in (("replay", "--in", "po"), ("replay", "--filter", "a", "=", "i"), ("run", "--cores", ""), ("run", "--name", ""), ("run", "--metrics", ""),
                      ("run", "run.yaml", "--", "r"), ("=",), ("=", "x")):
            self.assertEqual(self.offered(*words), [], words)


if __name__ == "__main__":
    unittest.main()
