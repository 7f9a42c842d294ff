#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox model sdr` against a model of its own, written from the paper's sections 4.2 and 5.1: chunk by chunk, no code
shared. The statements of the paper's text that hold with it must hold in the figures."""
import json
import math
import os
import random
import subprocess
import sys
import unittest

ROCEBOX = os.environ["ROCEBOX"]
RATE, RTT, CHUNK = 400e9, 25e-3, 4096
INJECTION = CHUNK * 8 / RATE


def sr_time(chunks, drop, rto, draw):
    """max over chunks of i T_INJ + O (Y_i - 1), and an RTT; only chunks that are lost are looked at."""
    latest, chunk = chunks * INJECTION, 0
    while True:
        chunk += 1 + int(math.log(1 - draw.random()) / math.log1p(-drop))  # the next one whose first copy is lost
        if chunk > chunks:
            return latest + RTT
        losses = 1
        while draw.random() < drop:
            losses += 1
        latest = max(latest, chunk * INJECTION + losses * (rto + INJECTION))


def recovered(kind, lost, data, parity):
    """Whether a submessage is, of the set of its chunks that are lost: data chunks first."""
    if kind == "MDS":
        return len(lost) <= parity
    groups = [chunk % parity if chunk < data else chunk - data for chunk in lost]
    return len(groups) == len(set(groups))


def ec_time(chunks, drop, kind, draw, data=32, parity=8, beta=1.0):
    """A message of whole submessages."""
    failed, chunk, lost = 0, -1, {}
    while True:
        chunk += 1 + int(math.log(1 - draw.random()) / math.log1p(-drop))
        if chunk >= chunks // data * (data + parity):
            break
        lost.setdefault(chunk // (data + parity), set()).add(chunk % (data + parity))
    failed = sum(not recovered(kind, some, data, parity) for some in lost.values())
    base = (chunks + math.ceil(chunks * parity / data)) * INJECTION
    if not failed:
        return base + RTT
    return base + RTT + beta * RTT + sr_time(failed * data, drop, 3 * RTT, draw)


def mean(samples, time):
    return sum(time() for _ in range(samples)) / samples


class Model(unittest.TestCase):
    def model(self, *words, status=0):
        done = subprocess.run([ROCEBOX, "model", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def figures(self, figure, *words):
        return json.loads(self.model("sdr", "--set", f"figure={figure}", *words, "--json", "-"))["figures"]

    def test_means_are_those_of_the_oracle(self):
        draw = random.Random(5)
        rows = {row["drop"]: row for row in self.figures(10)["figure_10b"]["points"]}
        slow = {row["drop"]: row for row in self.figures(10)["figure_10c"]["points"]}
        chunks = (128 << 20) // CHUNK
        for drop in (1e-5, 1e-4, 1e-3, 1e-2, 3e-2):
            samples = max(40, min(1000, int(4 / drop)))
            for curve, time in (("SR RTO", lambda: sr_time(chunks, drop, 3 * RTT, draw)),
                                ("SR NACK", lambda: sr_time(chunks, drop, RTT, draw))):
                self.assertAlmostEqual(mean(samples, time) / slow[drop][curve], 1, delta=0.08, msg=f"{curve} {drop}")
            for kind in ("MDS", "XOR"):
                ours = rows[drop][f"EC {kind}"]
                self.assertAlmostEqual(mean(samples, lambda: ec_time(chunks, drop, kind, draw)) / ours, 1, delta=0.08,
                                       msg=f"EC {kind} {drop}")

    def test_ring_speedups_are_those_of_the_oracle(self):
        draw = random.Random(6)
        nodes, chunks = 4, (128 << 20) // CHUNK // 4

        def ring(time):
            done = [0.0] * nodes
            for _ in range(2 * nodes - 2):
                done = [max(done[node], done[node - 1]) + time() for node in range(nodes)]
            return max(done)

        rows = {row["drop"]: row for row in self.figures(13)["figure_13_left"]["points"]}
        for drop in (1e-4, 1e-3):
            def tail(time):
                return sorted(ring(time) for _ in range(2000))[1997]
            speedup = tail(lambda: sr_time(chunks, drop, 3 * RTT, draw)) / tail(lambda: ec_time(chunks, drop, "MDS", draw))
            self.assertAlmostEqual(rows[drop]["4 datacenters"] / speedup, 1, delta=0.12, msg=drop)

    def test_equal_seeds_give_equal_figures(self):
        words = ("--set", "figure=13", "--set", "tail_samples=1000", "--json", "-")
        self.assertEqual(self.model("sdr", *words), self.model("sdr", *words))
        self.assertNotEqual(self.model("sdr", *words), self.model("sdr", *words, "--seed", "2"))

    def test_options_change_what_is_computed_and_are_checked(self):
        near = self.figures(3, "--set", "rtt=1ms")["figure_3a"]["points"]
        far = self.figures(3)["figure_3a"]["points"]
        self.assertNotEqual([row["SR RTO"] for row in near], [row["SR RTO"] for row in far])
        self.assertIn("rtt", self.model("sdr", "--options"))
        self.assertIn("sdr", self.model())
        for words, said in ((("sdr", "--set", "rt=1ms"), "rtt"), (("sdr", "--set", "parity=64"), "data"),
                            (("sd",), "sdr"), (("--options",), "name a model"), (("sdr", "--set", "rtt"), "KEY=VALUE")):
            self.assertIn(said, self.model(*words, status=2), words)

    def test_statements_are_told_with_what_the_paper_says(self):
        told = [one for name in (3, 10) for figure in self.figures(name).values() for one in figure["statements"]]
        self.assertGreater(len(told), 8)
        for one in told:
            self.assertTrue(one["published"] and one["ours"], one)


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
