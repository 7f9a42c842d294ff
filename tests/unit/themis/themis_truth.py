# SPDX-License-Identifier: BSD-3-Clause
"""The judge of a simulated QP. It knows the truth (which copies of a packet are lost, which still under way), in plain numbers
without registers, windows or wrap, and holds each decision of Themis-D against it."""
from collections import Counter


class Truth:
    """One QP. `number` counts packets from 0. Violations are sentences; the counts say what was seen."""

    def __init__(self, psn_of, paths, ooo_threshold):
        self.psn_of, self.paths, self.ooo_threshold = psn_of, paths, ooo_threshold
        self.flying, self.delivered = Counter(), {}  # number -> copies under way; -> when its first copy left for the RNIC
        self.left = 0  # packets that left for the RNIC
        self.class_max = {}  # PSN mod N -> largest number that left
        self.class_left = {}  # class -> [(when, number)]
        self.excused = set()  # numbers that may be under way though a later one of their class came: RTO
        self.rerouting = False  # the failure handling has sent packets elsewhere
        self.crossing = set()  # numbers that were under way when N changed
        self.fate = {}  # number of a NACK -> "blocked", "passed", ("stashed", when)
        self.counts, self.violations = Counter(), []

    def sent(self, number):
        self.flying[number] += 1

    def lost(self, number):
        self.flying[number] -= 1

    def set_paths(self, paths):
        """N from now on, at both ends. Largest numbers stay with the index of the path where they came."""
        self.paths, self.class_left = paths, {}
        self.crossing |= {number for number, copies in self.flying.items() if copies}

    def leaves(self, number):
        """A copy leaves for the RNIC; call this before Themis-D sees it."""
        self.flying[number] -= 1
        self.left += 1
        self.delivered.setdefault(number, self.left)
        index = self.psn_of(number) % self.paths
        self.class_max[index] = max(number, self.class_max.get(index, -1))
        self.class_left.setdefault(index, []).append((self.left, number))

    def violation(self, text):
        self.violations.append(text)

    def expected_class(self, number):
        """What algorithm 1 says in plain numbers."""
        if number in self.delivered:
            return "invalid"
        return "valid" if self.class_max.get(self.psn_of(number) % self.paths, -1) > number else "undetermined"

    def judge_nack(self, number, decision):
        """The decision on a NACK that came."""
        self.counts[decision.reason] += 1
        expected = self.expected_class(number)
        if decision.reason != expected:
            self.violation(f"NACK of {number}: {decision.reason}, should be {expected}")
        if decision.action == "block":
            self.fate[number] = "blocked"
            if number not in self.delivered:
                self.violation(f"NACK of {number} blocked, but no copy of it came: it stalls until the timeout")
        elif decision.action == "stash":
            self.fate[number] = ("stashed", self.left)
        else:
            self.passes(number)

    def judge_data(self, number, stashed, decisions):
        """What Themis-D did when `number` left while the NACK of `stashed` (None: none) was waiting."""
        same = stashed is not None and (self.psn_of(number) - self.psn_of(stashed)) % self.paths == 0
        if same and number > stashed and not any(d.action == "generate" for d in decisions):
            self.violation(f"{number} proves that {stashed} is lost, and no NACK was made")
        if stashed is None and decisions:
            self.violation(f"{decisions} of nothing")

    def judge_stash(self, number, decision):
        """What became of the stash when a packet left, an ACK came, or time passed."""
        self.counts[f"undetermined_{decision.reason}"] += 1
        if not isinstance(self.fate.get(number), tuple):
            self.violation(f"{decision} for {number}, which is not stashed")
        if decision.action == "generate":
            self.passes(number, decision.avoid or decision.reason == "aged")
        else:
            self.fate[number] = "blocked"
            if number not in self.delivered:
                self.violation(f"stash of {number} given up ({decision.reason}), but no copy of it came")

    def passes(self, number, guess=False):
        """A NACK goes to the sender: is the packet really lost? guess: the paper claims no certainty."""
        self.fate[number] = "passed"
        if number in self.delivered:
            self.violation(f"NACK of {number} passed, which has left for the RNIC")
        elif not self.flying[number]:
            self.counts["passed_truly_lost"] += 1
        elif guess:
            self.counts["passed_early_by_guess"] += 1
        elif self.rerouting:
            self.counts["passed_early_failure_handling"] += 1
        elif number in self.excused:
            self.counts["passed_early_after_timeout"] += 1
        elif number in self.crossing:
            self.counts["passed_early_paths_changed"] += 1
        else:
            self.violation(f"NACK of {number} passed as valid, but a copy is under way and nothing was rerouted")

    def judge_timeout(self, number, receiver_nacked):
        """The sender's timer runs out for `number`, its oldest packet. Was Themis to blame?"""
        if number in self.delivered or self.flying[number]:
            self.counts["timeout_answer_lost_or_early"] += 1
            return
        fate = self.fate.get(number)
        if receiver_nacked != number or fate is None:
            self.counts["timeout_without_nack"] += 1
        elif fate == "passed":
            self.counts["timeout_after_passed_nack"] += 1
        elif fate == "blocked":
            self.violation(f"timeout of {number}: its NACK was blocked")
        else:
            self.judge_stall(number, fate[1])

    def judge_stall(self, number, since):
        """The NACK of a lost packet is still stashed: there must have been nothing to confirm it."""
        self.counts["timeout_stashed_tail"] += 1
        for when, other in reversed(self.class_left.get(self.psn_of(number) % self.paths, ())):
            if when <= since:
                break
            if other > number:
                self.violation(f"timeout of {number}: {other} came over its path and did not confirm it")
        if self.ooo_threshold is not None:
            for other in range(number + self.ooo_threshold + 1, number + self.ooo_threshold + 8192):
                if self.delivered.get(other, 0) > since:
                    self.violation(f"timeout of {number}: {other} exceeds the OOO threshold and made no NACK")
                    break
