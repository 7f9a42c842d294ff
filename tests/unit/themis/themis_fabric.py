# SPDX-License-Identifier: BSD-3-Clause
"""A fabric in virtual time: RNIC-SR sender, Themis-S, N paths that are FIFOs of different delay and loss, Themis-D, RNIC-SR
receiver, and the judge beside them. All randomness comes from one seed; time is counted in packet times.

Usage: themis_fabric.py [--events N | --runs N] [--seed N] [--without RULE,RULE] [--clean]; prints counts as JSON, exit 1 on
violations. With --runs, how many runs violate, and the timeouts of runs with a dead path and of others.
"""
import argparse
import heapq
import json
import random
import sys
from collections import Counter

sys.dont_write_bytecode = True
from rnic_model import Receiver, Sender  # noqa: E402
from themis_model import ALL, PSNS, Destination, Source  # noqa: E402
from themis_truth import Truth  # noqa: E402

STEPS_MAX = 400_000  # of one run
TRACE_MAX = 40  # events kept to explain a violation


class Run:
    """One QP from its first packet to the last ACK. Options are drawn from `seed`; `clean`: no failures of paths, no ageing,
    and the timer is so long that it never overtakes the network."""

    def __init__(self, seed, rules=ALL, clean=False):
        self.random = pick = random.Random(seed)
        self.paths = pick.choice([1, 2, 2, 3, 4, 5, 8, 16, 128])
        self.window = pick.choice([8, 16, 64, 512])
        self.total = pick.choice([self.window // 2, self.window * 3, self.window * pick.randrange(4, 12)])
        self.first_psn = pick.choice([0, 1, PSNS - 1, pick.randrange(PSNS), PSNS - pick.randrange(1, self.total + 2)])
        threshold = pick.choice([None, self.window // 2, self.window * 7 // 8])
        self.source = Source(self.paths, pick.randrange(self.paths), pick.choice([1, 20, 1000]), rules)
        self.destination = Destination(self.paths, self.window, self.first_psn, None if clean else threshold, rules)
        self.sender = Sender(self.window, go_back=not clean and pick.random() < 0.3)
        self.receiver = Receiver(pick.choice([1, 4, 16, self.window]))
        self.truth = Truth(self.psn, self.paths, self.destination.ooo_threshold)
        spread = pick.choice([0, 2, 20, self.window])
        self.delay = [5 + pick.random() * spread for _ in range(self.paths)]
        self.jitter = pick.choice([0, 0, 1, 10])
        self.loss = [pick.choice([0, 0, 0.001, 0.05]) for _ in range(self.paths)]
        if self.paths > 1 and pick.random() < 0.4:
            self.loss[pick.randrange(self.paths)] = pick.choice([0.3, 1.0])  # a bad path
        self.control_loss = pick.choice([0, 0, 0.02])
        self.last_hop, self.back = pick.choice([0.5, 3, 15]), pick.choice([5, 30])
        round_trip = 60 + 2 * spread + 2 * self.jitter + self.last_hop + self.back + self.window
        self.timeout = round_trip * (8 if clean else pick.choice([0.3, 4]))
        self.stash_time = None if clean or pick.random() < 0.7 else spread + 1
        self.forging = pick.random() < 0.3
        self.free = [0.0] * self.paths  # when the last packet of each path arrives
        self.now, self.heap, self.order, self.events = 0.0, [], 0, 0
        self.sending, self.armed, self.progress, self.steps, self.trace = False, False, 0.0, 0, []
        other = random.Random(f"{seed} paths")  # beside the other draws, which stay what they are without changes
        for _ in range(other.choice([0, 0, 1, 4]) if self.paths > 1 else 0):
            least = 2 if 1.0 in self.loss else 1  # a dead path is never the only one
            self.at(other.random() * 2 * self.total, self.change_paths, other.randint(least, self.paths))

    def psn(self, number):
        return (self.first_psn + number) % PSNS

    def number(self, psn):
        return (psn - self.first_psn) % PSNS

    def at(self, time, what, *values):
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, what, values))

    def run(self, events_max):
        """Until all is acknowledged or `events_max` events of Themis-D were judged."""
        self.at(0, self.post)
        while self.heap and self.sender.oldest < self.total and self.events < events_max and not self.truth.violations:
            self.steps += 1
            if self.steps > STEPS_MAX:
                self.truth.violation("the flow makes no progress")
            self.now, _, what, values = heapq.heappop(self.heap)
            what(*values)
        if self.sender.oldest < self.total and self.events < events_max and not self.truth.violations:
            self.truth.violation("nothing more happens, and not all is acknowledged")
        return self

    def change_paths(self, paths):
        """N from now on, at both ends; what is under way was sprayed by the N before."""
        self.paths = self.source.paths = paths
        self.source.base %= paths
        self.destination.set_paths(paths)
        self.truth.set_paths(paths)
        self.truth.counts["paths_changed"] += 1
        self.note("paths", paths)

    def post(self):
        """The application posts some packets, and later more."""
        self.sender.posted = min(self.total, self.sender.posted + self.random.choice([1, self.window // 2, self.total]))
        if self.sender.posted < self.total:
            self.at(self.now + self.random.choice([1, 50, self.timeout]), self.post)
        self.wake()

    def wake(self):
        if not self.sending:
            self.sending = True
            self.at(self.now, self.send)

    def send(self):
        """The sender's port is free."""
        if self.sender.oldest == self.sender.next:
            self.progress = self.now
        taken = self.sender.take()
        if taken is None:
            self.sending = False
            return
        if self.sender.next == self.sender.oldest + 1 and not taken[1]:
            self.progress = self.now
        self.arm()
        self.at(self.now + 1, self.send)
        self.spray(taken[0])

    def spray(self, number):
        """Themis-S, and the path that it chooses."""
        if self.truth.counts["undetermined_ooo_degree"] and any(self.source.avoidance):
            self.truth.rerouting = True
        path = self.source.data(self.psn(number), self.random.randrange(1 << 16))
        self.truth.sent(number)
        arrival = self.now + self.delay[path] + self.random.random() * self.jitter
        self.free[path] = arrival = max(arrival, self.free[path] + 1e-6)
        lost = self.random.random() < self.loss[path]
        self.at(arrival, self.vanish if lost else self.leave, number)

    def vanish(self, number):
        self.truth.lost(number)
        self.note("lost", number)

    def leave(self, number):
        """A data packet leaves Themis-D for the RNIC."""
        self.events += 1
        if self.forging and self.random.random() < 0.05:
            self.forge()
        stashed = self.number(self.destination.stash_psn) if self.destination.stash_valid else None
        self.truth.leaves(number)
        decisions = self.destination.data(self.psn(number))
        self.note("data", number, decisions)
        self.truth.judge_data(number, stashed, decisions)
        self.act(decisions)
        request = number == self.sender.posted - 1
        self.at(self.now + self.last_hop, self.receive, number, request)

    def forge(self):
        """Somebody else's packets with PSNs that no packet of the QP explains: they pass, and change nothing that is judged."""
        model, far = self.destination, self.random.randrange(4 * self.window, PSNS // 4)
        held = model.start, model.stash_valid, model.stash_psn, model.highest, list(model.bases)
        for psn in ((model.highest + far) % PSNS, (model.start - far) % PSNS):
            decision = model.nack(psn)[0]
            more = model.ack(psn) + (model.data(psn) if model.far < 8 else [])
            if decision.action != "forward" or more or held != (model.start, model.stash_valid, model.stash_psn, model.highest, list(model.bases)):
                self.truth.violation(f"a forged PSN {psn}: {decision}, {more}")
        self.truth.counts["forged"] += 1

    def receive(self, number, request):
        answer = self.receiver.packet(number, request)
        if answer and answer[1] >= 0:
            self.at(self.now + self.last_hop, self.answer, *answer)

    def answer(self, kind, number):
        """An ACK or NACK of the RNIC at Themis-D."""
        self.events += 1
        if kind == "ack":
            decisions = self.destination.ack(self.psn(number))
            self.note("ack", number, decisions)
            self.act(decisions)
            self.control("ack", number)
            return
        decisions = self.destination.nack(self.psn(number))
        self.note("nack", number, decisions)
        self.truth.judge_nack(number, decisions[0])
        if decisions[0].action == "forward":
            self.control("nack", number)
        elif decisions[0].action == "stash" and self.stash_time is not None:
            self.at(self.now + self.stash_time, self.age, number)

    def age(self, number):
        if self.destination.stash_valid and self.number(self.destination.stash_psn) == number:
            decisions = self.destination.age()
            self.note("age", number, decisions)
            self.act(decisions)

    def act(self, decisions):
        """What became of the stash."""
        for decision in decisions:
            number = self.number(decision.epsn)
            self.truth.judge_stash(number, decision)
            if decision.action == "generate":
                self.control("nack", number, decision.avoid)

    def control(self, kind, number, avoid=False):
        if self.random.random() >= self.control_loss:
            self.at(self.now + self.back, self.arrive, kind, number, avoid)

    def arrive(self, kind, number, avoid):
        """An answer at Themis-S, then at the sender."""
        before = self.sender.oldest
        if kind == "ack":
            self.sender.ack(number)
        else:
            self.source.nack(self.psn(number), avoid)
            self.sender.nack(number)
        if self.sender.oldest > before:
            self.progress = self.now
        self.wake()

    def arm(self):
        if not self.armed:
            self.armed = True
            self.at(self.progress + self.timeout, self.timer)

    def timer(self):
        """One timer a sender; it looks again later when there was progress meanwhile."""
        self.armed = False
        if self.sender.oldest == self.sender.next:
            return
        if self.now < self.progress + self.timeout - 1e-6:
            self.arm()
            return
        self.note("timeout", self.sender.oldest)
        self.truth.judge_timeout(self.sender.oldest, self.receiver.nacked)
        again = self.sender.timeout()
        self.truth.excused.update(again)
        self.progress = self.now
        self.arm()
        self.wake()

    def note(self, what, number, decisions=()):
        self.trace.append((what, number, *decisions))
        del self.trace[:-TRACE_MAX]


def simulate(events, seed, rules=ALL, clean=False):
    """Runs of seed, seed + 1, ... until `events` events were judged or one violates; returns (counts, violations)."""
    counts, done, runs = Counter(), 0, 0
    while done < events:
        run = Run(seed + runs, rules, clean).run(min(events - done, 50_000))
        counts.update(run.truth.counts)
        done, runs = done + max(run.events, 1), runs + 1
        if run.truth.violations:
            where = f"seed {seed + runs - 1}, {run.paths} paths, window {run.window}, first PSN {run.first_psn}: "
            return counts, [where + run.truth.violations[0]] + [str(line) for line in run.trace]
    counts.update(events=done, runs=runs)
    return counts, []


def compare(runs, seed, rules, clean):
    """What `runs` runs come to, those that violate with them."""
    counts, violations = Counter(), []
    for each in range(seed, seed + runs):
        run = Run(each, rules, clean).run(10_000)
        dead = "with" if 1.0 in run.loss else "without"
        counts[f"runs_{dead}_dead_path"] += 1
        if run.truth.violations:
            counts[f"violating_{dead}_dead_path"] += 1
            violations.append(f"seed {each}: {run.truth.violations[0]}")
            continue
        counts.update(run.truth.counts)
        counts[f"timeouts_{dead}_dead_path"] += sum(times for name, times in run.truth.counts.items() if name.startswith("timeout_"))
    return counts, violations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="rules to leave out, by commas; all: the paper's letter")
    parser.add_argument("--clean", action="store_true", help="no failure handling, no ageing, a patient timer")
    words = parser.parse_args()
    left_out = ALL if words.without == "all" else frozenset(filter(None, words.without.split(",")))
    if left_out - ALL:
        parser.error(f"no such rule: {', '.join(sorted(left_out - ALL))}; there are {', '.join(sorted(ALL))}")
    if words.runs:
        counts, violations = compare(words.runs, words.seed, ALL - left_out, words.clean)
        print(json.dumps(dict(sorted(counts.items())), indent=1))
        print("\n".join(violations), file=sys.stderr)
        return 1 if violations else 0
    counts, violations = simulate(words.events, words.seed, ALL - left_out, words.clean)
    print(json.dumps(dict(sorted(counts.items())), indent=1))
    print("\n".join(violations), file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
