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

# What makes those small that have a paper's parameters.
SMALL = {"collectives.yaml": ("leaves=2", "spines=2", "hosts=2", "scale=0.001"), "nacks.yaml": ("time=200us",),
         "goodput.yaml": ("delay=2ms", "time=20ms", "window=5000", "rto=20ms"), "completion.yaml": ("messages=5", "loss=0.1%")}
CONFIGS = sorted((HERE.parent.parent / "configs/sim").rglob("*.yaml"))


class Shipped(RoceboxTest):
    def test_each_runs_and_gives_the_same_bytes_again(self):
        self.assertGreater(len(CONFIGS), 3)
        for config in CONFIGS:
            with self.subTest(config.name):
                reports = []
                small = [word for setting in SMALL.get(config.name, ()) for word in ("--set", setting)]
                for run in (1, 2):
                    out = self.dir / f"{run}.json"
                    said = self.rocebox("sim", config, "--quiet", "--json", out, *small)
                    self.assertEqual(said, ("", ""))
                    reports.append(out.read_bytes())
                self.assertEqual(reports[0], reports[1])
                report = json.loads(reports[0])
                self.assertEqual(report["run"]["held_at_end"], 0)
                self.rocebox("check", config)


if __name__ == "__main__":
    unittest.main()
