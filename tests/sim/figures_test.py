#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The scripts that make the papers' closed loops into tables (bench/figures), each at a size that takes seconds: they run, and each
row of each table is whole. Which scheme comes first is for themis_test.py and lowar_test.py."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["ROCEBOX"]).parent
SMALL = ("--leaves", "4", "--spines", "4", "--hosts", "4", "--scale", "0.0078125")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?%?$")
EMPTY = {"", "nan", "inf", "None"}


class Figures(unittest.TestCase):
    def rows(self, script, *words):
        """The cells of all tables' rows."""
        done = subprocess.run([sys.executable, ROOT / "bench/figures" / script, BUILD, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "", "each run has come to its end")
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        heads = {i - 1 for i, cells in enumerate(tables) if all(set(cell) <= set("-:") for cell in cells)}
        return [cells for i, cells in enumerate(tables) if i not in heads and i - 1 not in heads]

    def assert_whole(self, rows, count):
        """So many rows, each with something in every cell, and numbers."""
        self.assertEqual(len(rows), count)
        for row in rows:
            self.assertTrue(EMPTY.isdisjoint(row), row)
            self.assertTrue(any(NUMBER.match(cell) for cell in row[1:]), row)

    def test_themis_figure_1(self):
        rows = self.rows("themis_figure_1.py", "--scale", "0.0078125")
        self.assert_whole(rows, 4)
        for clean, lossy in zip(rows[0][1:], rows[-1][1:]):
            self.assertGreater(int(lossy), 2 * int(clean), "the time increases significantly with the loss, says the paper")

    def test_themis_figure_2(self):
        self.assert_whole(self.rows("themis_figure_2.py"), 10)

    def test_themis_figure_12(self):
        self.assert_whole(self.rows("themis_figure_12.py", *SMALL, "--losses", "0,1%"), 2 * (2 + 2))  # of each collective two tables

    def test_themis_figures_13_to_16(self):
        rows = self.rows("themis_figures_13_to_16.py", *SMALL)
        self.assertGreater(len(rows), 10)
        self.assert_whole(rows, len(rows))

    def test_lowar_figure_9(self):
        shorter = ("--set", "delay=1ms", "--set", "window=2500", "--set", "rto=10ms", "--set", "size=8KiB", "--time", "10ms")  # than 20 and 40 ms
        rows = self.rows("lowar_figure_9.py", "--jobs", "2", *shorter)
        self.assert_whole(rows, 2 * 2 * 4)

    def test_lowar_figure_10(self):
        self.assert_whole(self.rows("lowar_figure_10.py", "--messages", "5"), 5)

    def test_scr_table_2(self):
        self.assert_whole(self.rows("scr_table_2.py"), 2)


if __name__ == "__main__":
    unittest.main()
