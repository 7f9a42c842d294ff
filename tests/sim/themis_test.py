#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis in a closed loop, at the smallest size that keeps the order: the paper's schemes (figures 1 and 12), what unnecessary NACKs
cost (figure 2), and what each part of the design is for (13 to 15)."""
import json
import pathlib
import statistics
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

CONFIG = HERE.parent.parent / "configs/sim/themis/collectives.yaml"
NACKS = CONFIG.with_name("nacks.yaml")
# A fourth of the paper's leaves, spines and hosts, and 8 MiB.
SMALL = ("leaves=4", "spines=4", "hosts=4", "scale=0.0078125")
# Four of its 16 racks, and a 32nd of the messages.
MEDIUM = ("leaves=4", "spines=16", "hosts=16", "scale=0.03125")
# The smallest in which rings that cross have the paper's order.
CROSSING = ("ranks=shuffled", "leaves=4", "spines=8", "hosts=8", "scale=0.015625")
SCHEMES = {"Themis": (), "SR-ECMP": ("without=[spraying]",), "SR-AR": ("without=[spraying]", "balance=least_queue"),
           "TO-AR": ("without=[spraying]", "balance=least_queue", "recovery=timeout_only")}
# By the paper's letter: stashes do not age, and what is sent again after a timeout keeps its path.
LETTER = ("reroute_timeouts=false", "topology.switches.switch.themis.stash_timeout=0")


class Themis(RoceboxTest):
    def run_scheme(self, scheme, loss, *more):
        """Its tail completion time in nanoseconds, and the sums of its devices' counters."""
        out = self.dir / "report.json"
        words = [word for setting in (*SMALL, *SCHEMES[scheme], f"loss={loss}", *more) for word in ("--set", setting)]
        self.rocebox("sim", CONFIG, "--quiet", "--json", out, *words)
        report = json.loads(out.read_text())
        sums = {}
        for device in report["devices"].values():
            for kernel in device["kernels"].values():
                for name, value in kernel["counters"].items():
                    sums[name] = sums.get(name, 0) + value
        collective = report["workloads"]["collective"]
        self.assertEqual(collective["details"]["misplaced"], 0)
        if "sim.time=80ms" not in more:
            self.assertEqual(collective["details"]["failed_queue_pairs"], 0)
        return collective["details"].get("completion_time_ns", collective["duration_ns"]), sums

    def typical(self, loss, *more, seeds=3):
        """By scheme, the median of some seeds: which flows share a path is chance, and so is whether a flow's last packet is lost,
        which costs a timeout."""
        return {scheme: statistics.median(self.run_scheme(scheme, loss, *more, f"seed={seed}")[0] for seed in range(1, seeds + 1))
                for scheme in SCHEMES}

    def assert_papers_order(self, time, loss, share_of_ecmp=0.75):
        """Themis, SR-AR, SR-ECMP (6.2); TO-AR as Themis without loss, and far behind where a loss costs a timeout."""
        self.assertLess(time["Themis"], 0.9 * time["SR-AR"], loss)
        self.assertLess(time["SR-AR"], share_of_ecmp * time["SR-ECMP"], loss)
        if loss == "0":
            self.assertAlmostEqual(time["Themis"] / time["TO-AR"], 1, delta=0.05, msg="similar performance, says the paper")
        else:
            self.assertLess(time["Themis"], 0.25 * time["TO-AR"], loss)

    def test_without_loss_spraying_wins_and_spurious_nacks_cost(self):
        time = {scheme: self.run_scheme(scheme, "0") for scheme in SCHEMES}
        self.assert_papers_order({scheme: one[0] for scheme, one in time.items()}, "0")
        self.assertLess(time["Themis"][0], 0.75 * time["SR-AR"][0])
        self.assertLess(time["Themis"][0], 0.5 * time["SR-ECMP"][0])
        themis, spurious = time["Themis"][1], time["SR-AR"][1]
        self.assertEqual(themis["retransmitted_packets"], 0, "every NACK was kept back: none was for a loss")
        self.assertGreater(themis["drop_nack_invalid"] + themis["drop_nack_undetermined"], 100)
        self.assertGreater(spurious["retransmitted_packets"], 0)

    def run_nacks(self, dcqcn, dropped):
        """Figure 2, of a sender: the share of its link that it transmits, and that of its packets which is not sent again."""
        out = self.dir / "report.json"
        self.rocebox("sim", NACKS, "--quiet", "--json", out, "--set", "time=1ms", "--set", f"dcqcn={dcqcn}", "--set", f"dropped={dropped}")
        report = json.loads(out.read_text())
        counters = next(iter(report["devices"]["h0"]["kernels"].values()))["counters"]
        rate = next(row["share"] for row in report["utilisation"] if row["from"].startswith("h0."))
        return rate, 1 - counters["retransmitted_packets"] / counters["tx_roce_packets"]

    def test_unnecessary_nacks_cost_rate_with_and_without_dcqcn(self):
        every, few, none = "0", "99.609375%", "100%"  # NACKs are dropped, of 256 all but one, all
        on = {dropped: self.run_nacks("true", dropped) for dropped in (every, few, none)}
        off = {dropped: self.run_nacks("false", dropped) for dropped in (every, none)}
        # Paper: 46.6% of the link, 81%, line rate.
        self.assertLess(on[every][0], 0.8 * on[few][0], "figure 2b")
        self.assertLess(on[few][0], 0.95 * on[none][0], "figure 2b")
        self.assertGreater(on[none][0], 0.9)
        # Paper: half of it, line rate; 93.5% is not sent again. `stall` is fitted to the first alone.
        self.assertAlmostEqual(off[every][0], 0.5, delta=0.05, msg="figure 2c")
        self.assertGreater(off[none][0], 0.9)
        self.assertAlmostEqual(off[every][1], 0.935, delta=0.03, msg="figure 2c")
        for its in on, off:
            self.assertEqual(its[none][1], 1, "nothing is sent again where no NACK comes")

    def test_by_the_papers_letter_both_collectives_are_in_its_order(self):
        """Without what this kernel adds, in packets of 1 KiB: each group's ring in an order of its own, so that packets of several racks
        meet at a spine's port; each to all others at once."""
        for more, seeds in ((CROSSING, 1), (("collective=all_to_all", "size=512MiB"), 3)):
            for loss in ("0", "0.1%", "1%"):
                time = self.typical(loss, *LETTER, "mtu=1024", *more, seeds=seeds)
                with self.subTest(collective=more[0], loss=loss, **time):
                    self.assertLess(time["Themis"], 0.75 * time["SR-AR"])
                    self.assertLess(time["Themis"], 0.65 * time["SR-ECMP"])
                    self.assertLess(time["SR-AR"], 0.85 * time["SR-ECMP"])
                    if loss == "0":
                        self.assertAlmostEqual(time["Themis"] / time["TO-AR"], 1, delta=0.1, msg="similar performance, says the paper")
                    else:
                        self.assertLess(time["Themis"], 0.1 * time["TO-AR"])

    def test_rings_that_cross_at_spines_are_reordered_without_themis(self):
        """Each group's ring in an order of its own: packets of several racks meet at a spine's port, and their queues differ."""
        time = {scheme: self.run_scheme(scheme, "1%", *CROSSING) for scheme in ("Themis", "SR-AR")}
        self.assertLess(time["Themis"][0], 0.75 * time["SR-AR"][0])
        self.assertGreater(time["SR-AR"][1]["packet_seq_err"], 10 * time["Themis"][1]["packet_seq_err"])

    def test_with_loss_the_timeout_alone_is_slow_and_valid_nacks_pass(self):
        time = {scheme: self.run_scheme(scheme, "0.1%") for scheme in ("Themis", "TO-AR")}
        themis = time["Themis"][1]
        self.assertGreater(themis["nack_valid"], 0)
        # Two for each: the packet that is expected, and the one last sent (paper, 2.3).
        self.assertEqual(themis["retransmitted_packets"], 2 * themis["packet_seq_err"])
        self.assertEqual(themis["local_ack_timeout_err"], 0)
        self.assertGreater(time["TO-AR"][1]["local_ack_timeout_err"], 0)

    def test_with_loss_all_reduces_are_in_the_papers_order(self):
        for loss in ("0.1%", "1%"):
            self.assert_papers_order(self.typical(loss), loss)

    def test_all_to_all_gains_most(self):
        more = ("collective=all_to_all", "size=512MiB")
        self.assert_papers_order(self.typical("1%", *more), "1%", 0.85)
        # In a network as small as SMALL SR-AR is behind SR-ECMP with less loss.
        for loss in ("0", "0.1%"):
            self.assert_papers_order({scheme: self.run_scheme(scheme, loss, *more, *MEDIUM)[0] for scheme in SCHEMES}, loss)

    def test_all_to_all_is_in_the_papers_order_with_one_peer_after_the_other(self):
        more = ("collective=all_to_all", "size=512MiB", "workloads.collective.algorithm=pairwise", "scale=0.03125")
        for loss in ("0", "0.1%"):
            self.assert_papers_order(self.typical(loss, *more), loss)

    def test_queue_pairs_that_switches_must_learn_of_are_sprayed_late(self):
        known, learnt = (self.run_scheme("Themis", "0", "collective=all_to_all", "size=512MiB", f"rdma_cm={cm}") for cm in ("true", "false"))
        self.assertEqual(known[1]["sprayed"], 16 * 3 * 256, "every packet of 1 MiB to each of three others")
        self.assertLess(learnt[1]["sprayed"], 0.9 * known[1]["sprayed"])
        self.assertLess(known[0], learnt[0])

    def run_seeds(self, *more):
        """The sums of tail completion times and of timeouts over four seeds, with 1% of loss."""
        runs = [self.run_scheme("Themis", "1%", *LETTER, f"seed={seed}", *more) for seed in range(1, 5)]
        return sum(time for time, _ in runs), sum(counters["local_ack_timeout_err"] for _, counters in runs)

    def test_each_part_of_the_design_is_missed_when_it_is_left_out(self):
        # What is not sprayed at first makes paths unequal, as they are not in so small a network where all is known.
        clean_time, clean = self.run_scheme("Themis", "0", *LETTER, "rdma_cm=false")
        time, parts = self.run_scheme("Themis", "0", *LETTER, "rdma_cm=false", "without=[path_check]")
        self.assertEqual(clean["packet_seq_err"], 0)
        self.assertGreater(parts["packet_seq_err"], 0, "NACKs of what was not lost pass (figure 13b)")
        self.assertGreater(time, clean_time)
        # Of four seeds together: whether what is sent again is lost again is chance, in a run with few losses.
        whole_time, whole = self.run_seeds()
        for part, figure in ("lazy_dropping", 14), ("rerouting", 15):
            time, timeouts = self.run_seeds(f"without=[{part}]")
            self.assertGreater(timeouts, whole, f"figure {figure}b")
            self.assertGreater(time, whole_time, f"figure {figure}a")

    def test_a_path_that_fails_is_avoided(self):
        # Data alone is lost: routing moves ACKs elsewhere, and what Themis sprays is for Themis to find out.
        cut = "schedule={cut: {at: 200us, links: {leaf0_spine0: {match: {kind: data}, loss: 100%}}}}"
        healthy = self.run_scheme("Themis", "0", *LETTER)[0]
        handled, counters = self.run_scheme("Themis", "0", *LETTER, cut)
        self.assertGreater(counters["avoidance_signals"], 0)
        self.assertGreater(handled, healthy)
        unhandled = self.run_scheme("Themis", "0", *LETTER, cut, "ooo_threshold=0", "sim.time=80ms", "expect=workloads.collective.failed == 1")[0]
        self.assertLess(handled, unhandled)


if __name__ == "__main__":
    unittest.main()
