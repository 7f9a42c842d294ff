#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis in a closed loop: the order of the paper's schemes (figures 1, 2 and 12), at the smallest size that keeps it."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

FOLDER = HERE.parent.parent / "configs/sim/themis"
SCHEMES = {"Themis": ("all_reduce.yaml", ()), "SR-ECMP": ("without_themis.yaml", ()),
           "SR-AR": ("without_themis.yaml", ("balance=least_queue",)),
           "TO-AR": ("without_themis.yaml", ("balance=least_queue", "recovery=timeout_only"))}


class Themis(RoceboxTest):
    def run_scheme(self, scheme, loss):
        """Its tail completion time in nanoseconds, and the sums of its devices' counters."""
        file, settings = SCHEMES[scheme]
        out = self.dir / "report.json"
        words = [word for setting in (*settings, f"loss={loss}") for word in ("--set", setting)]
        self.rocebox("sim", FOLDER / file, "--quiet", "--json", out, *words)
        report = json.loads(out.read_text())
        sums = {}
        for device in report["devices"].values():
            for kernel in device["kernels"].values():
                for name, value in kernel["counters"].items():
                    sums[name] = sums.get(name, 0) + value
        details = report["workloads"]["all_reduce"]["details"]
        self.assertEqual((details["misplaced"], details["failed_queue_pairs"]), (0, 0))
        return details["completion_time_ns"], sums

    def test_without_loss_spraying_wins_and_spurious_nacks_cost(self):
        time = {scheme: self.run_scheme(scheme, "0") for scheme in SCHEMES}
        self.assertLess(time["Themis"][0], 1.1 * time["TO-AR"][0])
        self.assertLess(time["Themis"][0], 0.75 * time["SR-AR"][0])
        self.assertLess(time["SR-AR"][0], time["SR-ECMP"][0])
        self.assertLess(time["Themis"][0], 0.5 * time["SR-ECMP"][0])
        themis, spurious = time["Themis"][1], time["SR-AR"][1]
        self.assertEqual(themis["retransmitted_packets"], 0, "every NACK was kept back: none was for a loss")
        self.assertGreater(themis["drop_nack_invalid"] + themis["drop_nack_undetermined"], 100)
        self.assertGreater(spurious["retransmitted_packets"], 0)

    def test_with_loss_the_timeout_alone_is_slow_and_valid_nacks_pass(self):
        time = {scheme: self.run_scheme(scheme, "0.1%") for scheme in ("Themis", "SR-AR", "TO-AR")}
        self.assertLess(time["Themis"][0], time["SR-AR"][0])
        self.assertLess(time["SR-AR"][0], 0.5 * time["TO-AR"][0])
        themis = time["Themis"][1]
        self.assertGreater(themis["nack_valid"], 0)
        # Two for each: the packet that is expected, and the one last sent (paper, 2.3).
        self.assertEqual(themis["retransmitted_packets"], 2 * themis["packet_seq_err"])
        self.assertEqual(themis["local_ack_timeout_err"], 0)
        self.assertGreater(time["TO-AR"][1]["local_ack_timeout_err"], 0)


if __name__ == "__main__":
    unittest.main()
