#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The simulations in configs/sim run, meet what they expect, twice with the same bytes."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

CONFIGS = sorted((HERE.parent.parent / "configs/sim").rglob("*.yaml"))


class Shipped(RoceboxTest):
    def test_each_runs_and_gives_the_same_bytes_again(self):
        self.assertGreater(len(CONFIGS), 3)
        for config in CONFIGS:
            with self.subTest(config.name):
                reports = []
                for run in (1, 2):
                    out = self.dir / f"{run}.json"
                    said = self.rocebox("sim", config, "--quiet", "--json", out)
                    self.assertEqual(said, ("", ""))
                    reports.append(out.read_bytes())
                self.assertEqual(reports[0], reports[1])
                report = json.loads(reports[0])
                self.assertEqual(report["run"]["held_at_end"], 0)
                self.rocebox("check", config)


if __name__ == "__main__":
    unittest.main()
