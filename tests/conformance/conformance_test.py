#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every case of cases.yaml: what stands there, what the model says of it and what the NIC does are the same."""
import argparse
import json
import pathlib
import subprocess
import sys
import unittest

import yaml

import model

HERE = pathlib.Path(__file__).resolve().parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
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


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([arguments.player, str(HERE / "cases.yaml")], capture_output=True, text=True, timeout=240)
        if done.returncode:
            raise RuntimeError(done.stderr)
        cls.seen = [json.loads(line) for line in done.stdout.splitlines()]

    def agree(self, said, seen, who):
        for queue, other in [(said.get("out", []), seen["out"]),
                             *zip(split(said.get("completions", [])), split(seen["completions"]))]:
            good = len(queue) == len(other) and all(map(same, queue, other))
            self.assertTrue(good, f"{who}\n  the case: {queue}\n  {who}: {other}")
        self.assertEqual(said.get("state", "RTS"), seen["state"], who)

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
                self.assertEqual(row["packets_left"], 0)

    def test_the_nic_does_what_the_model_says(self):
        for case, row in zip(CASES, self.seen):
            with self.subTest(case["name"]):
                said = model.run(case)
                self.agree(said, row, "the NIC")
                for what in ("memory", "received"):  # where which bytes are, and nowhere else
                    self.assertEqual(said[what], row[what], what)

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--player", required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
