#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What two LoWAR gateways leave unrepaired agrees with the analytic expectation, for losses one by one and in bursts: the
reduced version of bench/figures/lowar_residual_loss.py."""
import json
import math
import random
import sys
import unittest

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import HERE, ROCEBOX, RoceboxTest  # noqa: E402

sys.path.insert(0, str(HERE.parent.parent / "bench" / "figures"))
import lowar_recovery_latency  # noqa: E402
from lowar_model import chain, residual_loss  # noqa: E402
from lowar_residual_loss import BURSTS, CODINGS, LOSSES, bound, measure, seeds_of, write_capture  # noqa: E402

ADAPT_PACKETS = 40_000
ADAPT = """seed: 5
devices:
  near: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
  far: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
links: {haul: {between: [near.wan, far.wan], delay: 20us, loss: 2%%}}
ports:
  near.host: {pcap: {in: %(capture)s}}
  far.host: {pcap: {out: far.pcap}}
"""
PACKETS, SEEDS = 12_800, 8
# (r, c), loss of the link, mean burst (None: one by one)
POINTS = (((8, 1), 0.03, None), ((32, 1), 0.01, None), ((32, 4), 0.03, None), ((8, 1), 0.02, 2), ((32, 4), 0.02, 4),
          ((64, 8), 0.03, 8), ((64, 8), 0.05, 12), ((128, 32), 0.1, 4))
# Of a mean over so many seeds: Student's t with 7 degrees of freedom, 99.9% two-sided, in units of the 95% value.
WIDER = 5.41 / 2.36


class Model(unittest.TestCase):
    """The model by itself, against what can be said otherwise."""

    def test_independent_losses_have_a_closed_form(self):
        for r, c, loss in ((8, 1, 0.01), (32, 1, 0.1), (5, 5, 0.2)):
            others = r // c  # the rest of the group: its data packets but one, and the repair packet
            self.assertAlmostEqual(residual_loss(r, c, *chain(loss)), loss * (1 - (1 - loss) ** others), 12)

    def test_against_a_simulation_of_the_words(self):
        draw = random.Random(3)
        for r, c, loss, burst in ((8, 1, 0.1, 3), (12, 4, 0.1, 4), (10, 3, 0.05, None)):
            enter, leave = chain(loss, burst)
            stays = total = 0
            bad = False
            for _ in range(20_000):
                lost = []
                for _ in range(r + c):
                    bad = draw.random() < (1 - leave if bad else enter)
                    lost.append(bad)
                for group in range(c):
                    members = [*range(group, r, c), r + group]
                    missing = sum(lost[at] for at in members)
                    stays += missing - lost[r + group] if missing > 1 else 0
                total += r
            expected = residual_loss(r, c, enter, leave)
            self.assertLess(abs(stays / total - expected), 0.1 * expected, (r, c, loss, burst))

    def test_limits(self):
        self.assertEqual(residual_loss(8, 1, 0.0, 1.0), 0)
        self.assertLess(residual_loss(8, 8, *chain(0.01)), residual_loss(8, 1, *chain(0.01)))
        enter, leave = chain(0.03, 8)
        self.assertAlmostEqual(enter / (enter + leave), 0.03)
        self.assertAlmostEqual(1 / leave, 8)


class Figure(unittest.TestCase):
    """What the figure says of points at which nothing stayed lost, and where its numbers come from."""

    def test_no_two_points_share_a_seed(self):
        seeds = [seed for burst in BURSTS for r, c in CODINGS for loss in LOSSES for seed in seeds_of(r, c, loss, burst, 6)]
        self.assertEqual(len(seeds), 6 * len(BURSTS) * len(CODINGS) * len(LOSSES))
        self.assertEqual(len(set(seeds)), len(seeds))

    def test_where_nothing_stays_lost_the_bound_holds(self):
        """On links that leave just more than the bound, no more than one run in twenty shows nothing."""
        draw = random.Random(8)
        packets, runs = 3200, 150
        for r, c, burst in ((8, 1, 2), (8, 1, 12), (32, 4, 4)):
            limit = bound({"packets": packets, "link_loss": 1.0, "burst": burst})
            self.assertLess(limit, 10 * burst / packets, "a bound that holds always says nothing")
            loss = next(loss for loss in (limit * 1.05 ** n for n in range(100)) if residual_loss(r, c, *chain(loss, burst)) > limit)
            enter, leave = chain(loss, burst)
            nothing = 0
            for _ in range(runs):
                bad, left = False, False
                for _ in range(packets // r):
                    lost = []
                    for _ in range(r + c):
                        bad = draw.random() < (1 - leave if bad else enter)
                        lost.append(bad)
                    left = left or any(sum(lost[at] for at in (*range(group, r, c), r + group)) > 1 for group in range(c))
                nothing += not left
            self.assertLessEqual(nothing, runs // 20, (r, c, burst, loss))


class Measured(RoceboxTest):
    def test_agreement_within_the_confidence_interval(self):
        capture = self.dir / "stream.pcap"
        write_capture(capture, PACKETS)
        for (r, c), loss, burst in POINTS:
            with self.subTest(r=r, c=c, loss=loss, burst=burst):
                row = measure(ROCEBOX, self.dir, capture, r, c, loss, burst, SEEDS)
                self.assertGreater(row["measured"], 0)
                self.assertLess(row["measured"], 0.8 * row["link_loss_measured"], "else nothing was repaired")
                width = row["half_width_95"] * WIDER
                self.assertLess(width, row["expected"], "an interval that holds anything proves nothing")
                self.assertLessEqual(abs(row["measured"] - row["expected"]), width, row)
                self.assertLess(abs(row["link_loss_measured"] - loss), 6 * math.sqrt(loss * (burst or 1) / PACKETS / SEEDS) * 2)

    def test_what_is_rebuilt_is_as_late_as_its_place_in_the_block_says(self):
        for r, c, kind in ((8, 1, "one"), (32, 1, "two blocks"), (32, 8, "one")):
            with self.subTest(r=r, c=c, losses=kind):
                row = lowar_recovery_latency.measure(ROCEBOX, self.dir, r, c, kind)
                self.assertAlmostEqual(row["mean_us"], row["expected_mean_us"], delta=0.02 * row["expected_mean_us"])
                if c == 1:  # c repair packets are over before the next packet comes; a negotiation packet begins the stream
                    self.assertLessEqual(row["clean_added_max_us"], 0.010)

    def test_adaptation_changes_the_setting_and_leaves_less_lost(self):
        capture = self.dir / "stream.pcap"
        write_capture(capture, ADAPT_PACKETS)
        left = {}
        for adapt in (False, True):
            lowar = {"r": 256, "c": 1, "adapt": adapt, "target_loss": 1e-3, "dwell": "1ms"}
            report = self.replay(self.config(ADAPT % {"lowar": json.dumps(lowar), "capture": json.dumps(str(capture))}))
            near, far = (report["devices"][device]["kernels"]["lowar"]["counters"] for device in ("near", "far"))
            psns = [wire.parse(bytes(frame))["psn"] for _, _, frame in wire.read_pcap(str(self.dir / "far.pcap"))[0]]
            self.assertEqual(psns, sorted(set(psns)), "out of order, or twice")
            sent, came = {bytes(frame) for _, _, frame in wire.read_pcap(str(capture))[0]}, \
                {bytes(frame) for _, _, frame in wire.read_pcap(str(self.dir / "far.pcap"))[0]}
            self.assertLessEqual(came, sent, "not what was sent")
            left[adapt] = 1 - len(psns) / ADAPT_PACKETS
            for counters, name in ((far, "adapt_changes"), (far, "adapt_requests"), (near, "encode_requests"), (near, "encode_changes")):
                (self.assertGreater if adapt else self.assertEqual)(counters[name], 0, name)
            self.assertEqual(far["adapt_unheeded"], 0)
        self.assertGreater(left[False], 0.015)  # what the link loses, nearly: two of a long block are lost nearly always
        self.assertLess(left[True], 0.5 * left[False])

    def test_the_stream_is_good_traffic(self):
        capture = self.dir / "stream.pcap"
        write_capture(capture, 200)
        rows = wire.read_pcap(str(capture))[0]
        self.assertEqual({wire.parse(bytes(frame))["icrc_ok"] for _, _, frame in rows}, {True})
        self.assertEqual([wire.parse(bytes(frame))["psn"] for _, _, frame in rows], list(range(200)))


if __name__ == "__main__":
    unittest.main()
