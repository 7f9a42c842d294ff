#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The man pages tell what the command takes, no less and no more, and are clean to the tools that read them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from command_help import ROCEBOX, ROOT, commands, options, values

PAGES = {section: ROOT / f"runtime/cli/man/rocebox.{section}" for section in (1, 5)}


def rendered(section):
    """The page as text, each paragraph one line."""
    done = subprocess.run(["man", "-P", "cat", "-l", str(PAGES[section])], check=True, capture_output=True, text=True,
                          env={**os.environ, "MANWIDTH": "2000", "LC_ALL": "C.UTF-8"})
    return done.stdout.replace("\N{HYPHEN}", "-")


def parts(text):
    """{heading: text} of a rendered page, sections and subsections alike."""
    pieces = re.split(r"^(?: {3})?(\S.*)\n", text, flags=re.M)
    return {heading.strip(): body for heading, body in zip(pieces[1::2], pieces[2::2])}


class Man(unittest.TestCase):
    def test_is_clean(self):
        for page in PAGES.values():
            done = subprocess.run(["groff", "-man", "-t", "-ww", "-z", "-K", "utf8", str(page)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l", str(page)], capture_output=True,
                                  text=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            done = subprocess.run(["lexgrog", str(page)], capture_output=True, text=True)  # what apropos and whatis find
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_tells_every_command_with_its_options_and_no_others(self):
        page = parts(rendered(1))
        self.assertGreater(len(commands()), 3)
        for command in commands():
            self.assertIn(f"rocebox {command} ", page["SYNOPSIS"])
            self.assertIn(command, page, "a section of its own")
            told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page[command]))
            self.assertEqual(told, set(options(command)) - {"--help"}, command)
        for option in options() + [o for c in commands() for o in options(c)]:
            self.assertRegex(page["Options of several commands"] + "".join(page[c] for c in commands()),
                             rf"(?m)^ +(-\w, )?{option}( |$)", "a paragraph of its own")

    def test_names_the_values_as_help_does(self):
        text = rendered(1)
        for command in commands():
            for option, value in values(command).items():
                self.assertIn(f"{option} {value}", text, command)

    def test_tells_every_exit_status(self):
        self.assertEqual(re.findall(r"^ {7}(\d)", parts(rendered(1))["EXIT STATUS"], re.M), ["0", "1", "2"])

    def test_tells_every_part_of_a_configuration(self):
        schema = json.loads(subprocess.run([ROCEBOX, "check", "--schema"], check=True, capture_output=True, text=True).stdout)
        told = parts(rendered(5))["OPTIONS"]
        self.assertEqual(set(re.findall(r"^ {7}(\w+):", told, re.M)), set(schema["properties"]))

    def test_tells_every_part_of_a_lab(self):
        schema = json.loads(subprocess.run([ROCEBOX, "lab", "schema"], check=True, capture_output=True, text=True).stdout)
        told = parts(rendered(5))["LABS"]
        self.assertEqual(set(re.findall(r"^ {7}(\w+):", told, re.M)), set(schema["properties"]))

    def test_has_an_example_that_is_good(self):
        block = re.search(r"\.SH EXAMPLE\n\.EX\n(.*?)\.EE", PAGES[5].read_text(), re.S).group(1).replace("\\-", "-")
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "example.yaml"
            config.write_text(block)
            shutil.copy(ROOT / "tests/replay/captures/rc_write.pcap", config.with_name("trace.pcap"))
            done = subprocess.run([ROCEBOX, "check", str(config)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    missing = [tool for tool in ("man", "groff", "lexgrog", "tbl") if not shutil.which(tool)]
    if missing:
        print("skipped: not installed:", *missing)
        sys.exit(77)
    unittest.main()
