#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every case of cases.yaml, and with direct placement of ahead.yaml: what stands there, what the model says of it and what the NIC does
are the same."""
import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import unittest

import yaml

import direct_model
import model

HERE = pathlib.Path(__file__).resolve().parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
AHEAD = yaml.safe_load((HERE / "ahead.yaml").read_text())
DIRECT = yaml.safe_load((HERE / "direct.yaml").read_text())
arguments = argparse.Namespace()


def words(line):
    """A line as its name and number, and what it says of them. `0x10` is 16."""
    head, values = [], {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            values[key] = int(value, 0)
        else:
            head.append(str(int(key, 0)) if key[0].isdigit() else key)
    return head, values


def same(said, seen):
    """Whether `seen` is all that was said; it may say more of a packet."""
    (head, values), (other_head, other_values) = words(said), words(seen)
    return head == other_head and values.items() <= other_values.items()


def split(completions):
    """Of send and receive queue: the order between the two is nobody's."""
    return [[line for line in completions if line.startswith(queue)] for queue in ("send", "receive")]


def play(file, recovery):
    """What the NIC does, a case each."""
    done = subprocess.run([arguments.player, str(HERE / file), recovery], capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Judge(unittest.TestCase):
    def agree(self, said, seen, who):
        for queue, other in [(said.get("out", []), seen["out"]),
                             *zip(split(said.get("completions", [])), split(seen["completions"]))]:
            good = len(queue) == len(other) and all(map(same, queue, other))
            self.assertTrue(good, f"{who}\n  the case: {queue}\n  {who}: {other}")
        self.assertEqual(said.get("state", "RTS"), seen["state"], who)

    def agree_in_all(self, said, row):
        self.agree(said, row, "the NIC")
        for what in ("memory", "received"):  # where which bytes are, and nowhere else
            self.assertEqual(said[what], row[what], what)
        self.assertEqual(row["packets_left"], 0)


class Conformance(Judge):
    @classmethod
    def setUpClass(cls):
        cls.seen = play("cases.yaml", "go_back_n")

    def test_the_model_says_what_the_cases_say(self):
        for case in CASES:
            with self.subTest(case["name"]):
                said = model.run(case)
                self.agree(case, said, "the model")
                self.agree(said, {"out": case.get("out", []), "completions": case.get("completions", []),
                                  "state": case.get("state", "RTS")}, "the case, of what the model says")

    def test_the_nic_does_what_the_cases_say(self):
        self.assertEqual([case["name"] for case in CASES], [row["name"] for row in self.seen])
        for case, row in zip(CASES, self.seen):
            with self.subTest(case["name"]):
                self.agree(case, row, "the NIC")

    def test_the_nic_does_what_the_model_says(self):
        for case, row in zip(CASES, self.seen):
            with self.subTest(case["name"]):
                self.agree_in_all(model.run(case), row)

    def test_memory_is_compared(self):
        """Most cases leave something there, in the region and where messages are received."""
        for what in ("memory", "received"):
            self.assertGreater(sum(bool(row[what]) for row in self.seen), 10, what)

    def test_a_case_that_is_wrong_is_found(self):
        """What the comparison is worth: other PSNs, codes, counts and completions do not pass."""
        case = {"out": ["ACK 0 msn=1"], "completions": ["receive 0 SUCCESS bytes=10"]}
        good = {"out": ["ACK 0 msn=1"], "completions": ["receive 0 SUCCESS bytes=10"], "state": "RTS"}
        self.agree(case, good, "good")
        for key, value in [("out", ["ACK 1 msn=1"]), ("out", ["ACK 0 msn=2"]), ("out", ["NAK_PSN 0 msn=1"]), ("out", []),
                           ("completions", []), ("completions", ["receive 0 SUCCESS bytes=11"]), ("state", "ERR")]:
            with self.assertRaises(AssertionError):
                self.agree(case, {**good, key: value}, "bad")


class DirectPlacement(Judge):
    """The other recoveries, which place WRITEs as they come; direct.yaml says of which cases that changes what must come of them."""

    @classmethod
    def setUpClass(cls):
        cls.seen = {(file, recovery): play(file, recovery) for file in ("cases.yaml", "ahead.yaml")
                    for recovery in direct_model.RECOVERIES}

    def rows(self, file, cases):
        for recovery in direct_model.RECOVERIES:
            rows = self.seen[file, recovery]
            self.assertEqual([case["name"] for case in cases], [row["name"] for row in rows])
            for case, row in zip(cases, rows):
                yield recovery, case, row

    def test_only_cases_are_named(self):
        names = [case["name"] for case in CASES]
        self.assertEqual([name for name in DIRECT["differs"] if name not in names], [])

    def test_the_nic_does_what_the_model_says_of_the_specifications_cases(self):
        for recovery, case, row in self.rows("cases.yaml", CASES):
            with self.subTest(case["name"], recovery=recovery):
                self.agree_in_all(direct_model.run_with(recovery, case), row)

    def test_what_is_not_named_is_as_the_case_has_it(self):
        for case in CASES:
            with self.subTest(case["name"]):
                wrong = []
                for recovery in direct_model.RECOVERIES:
                    try:
                        self.agree(case, direct_model.run_with(recovery, case), f"the model of {recovery}")
                    except AssertionError as error:
                        wrong.append(str(error))
                self.assertEqual(bool(wrong), case["name"] in DIRECT["differs"], wrong)

    def test_case_model_and_nic_say_the_same_of_what_comes_ahead(self):
        for recovery, case, row in self.rows("ahead.yaml", AHEAD):
            case = {**case, **case.get(recovery, {})}
            with self.subTest(case["name"], recovery=recovery):
                said = direct_model.run_with(recovery, case)
                self.agree(case, said, "the model")
                self.agree_in_all(said, row)

    def test_recoveries_differ(self):
        """Most of these cases say something else of each."""
        for one, other in itertools.combinations(direct_model.RECOVERIES, 2):
            unlike = sum(a["out"] != b["out"] for a, b in zip(self.seen["ahead.yaml", one], self.seen["ahead.yaml", other]))
            self.assertGreater(unlike, len(AHEAD) / 2, (one, other))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--player", required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
