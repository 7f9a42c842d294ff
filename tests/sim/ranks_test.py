#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox sim --sweep` under mpirun: two ranks give the table that one process gives."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
from common import ROCEBOX, RoceboxTest, finish

FABRIC = """
parameters: {recovery: go_back_n, loss: 1%}
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}
  hosts: {nic: {header_only: true, recovery: $recovery}}
  switches: {switch: {}}
  links: {loss: $loss}
workloads: {permutation: {size: 500KB}}
"""


@unittest.skipUnless(shutil.which("mpirun"), "no Open MPI: apt install openmpi-bin")
class Ranks(RoceboxTest):
    def both(self, *more):
        """Two ranks of the command: status, output and errors of the run, as mpirun tells them."""
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "ASAN_OPTIONS": "detect_leaks=0"}  # the library's own
        words = [ROCEBOX, *map(str, more)]
        done = subprocess.run(["mpirun", "-np", "2", "--oversubscribe", *words], env=environment, capture_output=True,
                              text=True, timeout=240, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_a_sweep_under_mpirun_gives_the_same_table(self):
        config = self.config(FABRIC)
        words = ["sim", config, "--sweep", "recovery=go_back_n,rnic_sr", "--seeds", "2", "--quiet"]
        self.rocebox(*words, "--json", self.dir / "alone.json", "--csv", self.dir / "alone")
        status, out, error = self.both(*words, "--json", self.dir / "both.json", "--csv", self.dir / "both")
        self.assertEqual((status, out), (0, ""), error)
        for name in ("{}.json", "{}/sweep.csv"):
            self.assertEqual((self.dir / name.format("alone")).read_bytes(), (self.dir / name.format("both")).read_bytes())
        runs = json.loads((self.dir / "both.json").read_text())["runs"]
        self.assertEqual((len(runs), len({row["hash"] for row in runs})), (4, 4))
        self.assertTrue(all(row["finished"] for row in runs), runs)
        status, _, error = self.both("sim", config, "--sweep", "loss=0,200%")
        self.assertEqual(status, 2, error)
        self.assertEqual(error.count("`loss` must be from"), 1, error)
        status, _, error = self.both("sim", config)
        self.assertEqual(status, 2, error)
        self.assertIn("mpirun deals out the runs of a sweep", error)


if __name__ == "__main__":
    finish.main()
