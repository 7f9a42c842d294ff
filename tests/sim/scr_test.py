#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Equal runs of Software-Controlled RDMA, whatever the number of threads: of the emulation, which `--jobs` gives to a sweep, and of the
DPAs that it models where handling takes no time there. Where it takes time their number is a part of what is modelled, and each has its hash."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
from common import RoceboxTest

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"
CONFIG = """parameters: {threads: 64, law: 0us, policy: fair}
topology:
  dumbbell: {hosts_per_side: 2, host_rate: 100Gbps, bottleneck_rate: 100Gbps, host_delay: 1us}
  hosts:
    nic:
      header_only: true
      congestion_control: scr_control
      scr_control: {policy: $policy, fabric_threads: $threads, timing: {law: $law, early: 0}}
  switches: {switch: {}}
workloads:
  many: {type: write_bw, hosts: [h0, h2], size: 32KB, tx_depth: 2, qp: 6, duration: 60us}
  small: {type: write_bw, hosts: [h0, h3], size: 4KB, tx_depth: 2, qp: 3, duration: 60us}
  reads: {type: read_bw, hosts: [h1, h2], size: 16KB, tx_depth: 2, qp: 2, duration: 60us}
"""
PROGRAM = CONFIG.replace("parameters: {threads: 64, law: 0us, policy: fair}", "parameters: {threads: 64}").replace("scr_control\n", "pcc\n").replace(
    "scr_control: {policy: $policy, fabric_threads: $threads, timing: {law: $law, early: 0}}", "pcc: {program: rtt_control, threads: $threads}")


class Threads(RoceboxTest):
    def sweep(self, config, jobs, *words):
        """Rows of the table, hashes among them."""
        (self.dir / "config.yaml").write_text(config)
        self.rocebox("sim", self.dir / "config.yaml", "--quiet", "--jobs", str(jobs), "--csv", self.dir / f"csv{jobs}", *words)
        return (self.dir / f"csv{jobs}/sweep.csv").read_text().splitlines()

    def hashes(self, rows):
        place = rows[0].split(",").index("hash")
        return [row.split(",")[place] for row in rows[1:]]

    def test_jobs_of_a_sweep(self):
        words = ("--sweep", "policy=fair,swift", "--sweep", "law=0us,4us")
        one, three = (self.sweep(CONFIG, jobs, *words) for jobs in (1, 3))
        self.assertEqual(one, three)
        self.assertEqual(len(set(self.hashes(one))), 4)

    def test_programs_for_pcc_share_a_bottleneck(self):
        """The file's expectations say how."""
        for program in "rtt_control", "swift_control":
            with self.subTest(program=program):
                self.rocebox("sim", CONFIGS / "sim/scr/rtt_control.yaml", "--quiet", "--set", f"program={program}")

    def test_water_filling_of_four_sizes_is_max_min_fair(self):
        """No queue pair asks for less than a fourth of the port, so each has that, of 92 Gbps of payload: within 10%."""
        out = self.dir / "12.json"
        self.rocebox("sim", CONFIGS / "sim/scr/figure_12.yaml", "--quiet", "--json", out)
        flows = json.loads(out.read_text())["workloads"]["flows"]["details"]
        rates = [row["in_duration_bits_per_second"] / 1e9 for row in flows["queue_pairs"]]
        self.assertEqual(len(rates), 4)
        self.assertGreater(len({row["bytes_of_a_message"] for row in flows["queue_pairs"]}), 1)
        self.assertGreater(sum(rates), 85)
        for rate in rates:
            self.assertLess(abs(rate / 23 - 1), 0.1, rates)

    def test_threads_of_the_dpa(self):
        threads = ("--sweep", "threads=1,256")
        for config, words in ((CONFIG, ()), (CONFIG, ("--set", "policy=swift")), (PROGRAM, ())):
            with self.subTest(words=words):
                self.assertEqual(len(set(self.hashes(self.sweep(config, 2, *threads, *words)))), 1)
        self.assertEqual(len(set(self.hashes(self.sweep(CONFIG, 2, *threads, "--set", "law=4us")))), 2, "one thread is busy where many are not")


if __name__ == "__main__":
    unittest.main()
