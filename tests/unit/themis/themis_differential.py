#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The registers of Themis (C++) and the independent model (Python) must decide alike, on every event of random QPs.

Three kinds of QPs: those of the fabric (loss, reordering, wrap, retransmission, forged PSNs, N changed at run time, an RNIC at
both ends); wild ones, whose events obey no protocol at all: PSNs near every boundary, READ requests, other NAKs, N changed;
and old ones, which go through half a round of PSNs and more between changes of N.

Usage: themis_differential.py --tool themis_events [--events N] [--seed N]; exit 1 when one decision differs.
"""
import argparse
import pathlib
import random
import subprocess
import sys
from collections import Counter

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import themis_fabric  # noqa: E402
from themis_model import ALL, PSNS, Destination, Source  # noqa: E402

STRICT_SHARE = 0.3  # of the QPs
EVENTS_PER_RUN = 100_000  # handed to the tool at once


def text(decisions):
    return "".join(f"{d.action} {d.epsn} {d.reason}" + (" avoid" if d.avoid else "") for d in decisions)


class Log:
    """Event lines for the tool, and what the model says to each."""

    def __init__(self):
        self.lines, self.answers = [], []

    def qp(self, source, destination, strict):
        self.lines.append(f"qp {destination.paths} {destination.window} {destination.start} {destination.ooo_threshold or 0} "
                          f"{source.base} {source.avoidance_window} {int(strict)} {int('reroute_timeouts' in source.rules)}")
        self.answers.append(None)

    def event(self, line, answer):
        self.lines.append(line)
        self.answers.append(answer)


class LoggedDestination(Destination):
    """The model, whose events are written down. What the model calls of itself is no event."""
    log, inside, stale = None, False, 0

    def beyond(self, largest, psn):
        says = super().beyond(largest, psn)
        self.stale += largest is not None and says != self.ahead(largest, psn)  # one from half a round of PSNs ago
        return says

    def logged(self, line, call, *arguments):
        if self.log is None or self.inside:
            return call(*arguments)
        self.inside = True
        try:
            decisions = call(*arguments)
        finally:
            self.inside = False
        self.log.event(line, text(decisions))
        return decisions

    def data(self, psn, sprayed=True, width=1):
        return self.logged(f"d {psn} {int(sprayed)} {width}", super().data, psn, sprayed, width)

    def nack(self, epsn):
        return self.logged(f"n {epsn}", super().nack, epsn)

    def ack(self, psn):
        return self.logged(f"a {psn}", super().ack, psn)

    def other_nak(self, psn):
        return self.logged(f"o {psn}", super().other_nak, psn)

    def age(self):
        return self.logged("g", super().age)

    def set_paths(self, paths):
        super().set_paths(paths)
        self.log.event(f"p {paths}", "")


class LoggedSource(Source):
    log = None

    def data(self, psn, draw=0):
        path = super().data(psn, draw)
        self.log.event(f"sd {psn} {draw}", f"path {path}")
        return path

    def nack(self, epsn, avoid=False):
        super().nack(epsn, avoid)
        self.log.event(f"sn {epsn} {int(avoid)}", "")


def fabric_qp(seed, log, events):
    """A QP between two RNICs over lossy paths."""
    run = themis_fabric.Run(seed)
    run.source.__class__, run.destination.__class__ = LoggedSource, LoggedDestination
    run.source.log = run.destination.log = log
    log.qp(run.source, run.destination, random.Random(seed).random() < STRICT_SHARE)
    run.run(events)
    return run.truth.violations


def wild_psn(pick, model, width):
    """A PSN near something that matters."""
    near = pick.choice([model.start, model.highest, model.stash_psn, model.start + model.window, model.start + 2 * model.window,
                        model.start - model.window, model.start + PSNS // 2, pick.randrange(PSNS)])
    return (near + pick.choice([0, 0, 1, -1, pick.randrange(-width, width + 1)])) % PSNS


def wild_qp(seed, log, events):
    """Events that obey nothing."""
    pick = random.Random(seed)
    paths, window = pick.choice([1, 2, 3, 4, 7, 16]), pick.choice([1, 2, 4, 8, 32])
    first = pick.choice([0, 1, PSNS - 1, PSNS - window, pick.randrange(PSNS)])
    model = LoggedDestination(paths, window, first, pick.choice([None, window // 2 or None, 2 * window]))
    rules = ALL if random.Random(f"{seed} timeouts").random() < 0.7 else ALL - {"reroute_timeouts"}
    source = LoggedSource(paths, pick.randrange(paths), pick.choice([1, 3]), rules)
    log.qp(source, model, pick.random() < STRICT_SHARE)
    model.log = source.log = log
    calm = pick.choice([0, 0.5, 0.95])  # how often the next PSN is simply the one behind the highest
    most = paths
    for _ in range(events):
        psn = (model.highest + 1) % PSNS if pick.random() < calm else wild_psn(pick, model, 2 * window)
        kind = pick.random()
        if kind < 0.5:
            model.data(psn, pick.random() < 0.9, pick.choice([1] * 20 + [2, window, 3 * window]))
        elif kind < 0.65:
            model.ack(psn if pick.random() < 0.3 else (model.start + pick.randrange(window)) % PSNS)
        elif kind < 0.8:
            model.nack(psn if pick.random() < 0.3 else (model.start + pick.randrange(window + 1)) % PSNS)
        elif kind < 0.81:
            model.other_nak(psn)
        elif kind < 0.83:
            model.age()
        elif kind < 0.95:
            source.data(psn, pick.randrange(1 << 16))
        elif kind < 0.999:
            source.nack(psn, pick.random() < 0.3)
        else:
            source.paths = pick.randint(1, most)
            source.base %= source.paths
            model.set_paths(source.paths)


def old_qp(seed, log):
    """Events in order and a little out of it, long ways through the PSNs, and N changed between: how often a PathMaxPSN of
    another N was old enough to lie."""
    pick = random.Random(seed)
    paths, window = pick.choice([2, 3, 4, 8]), 1 << 16
    model = LoggedDestination(paths, window, pick.choice([0, PSNS - 5, pick.randrange(PSNS)]))
    log.qp(LoggedSource(paths), model, pick.random() < STRICT_SHARE)
    model.log = log
    for _ in range(12):
        model.set_paths(pick.choice([1, paths, pick.randint(1, paths)]))
        for _ in range(pick.choice([0, 1, 126, 127, 128, 129, 130, 200])):
            psn = (model.start + window - 1) % PSNS
            model.data(psn)
            model.ack(psn)
        model.set_paths(pick.choice([1, paths, pick.randint(1, paths)]))
        for _ in range(30):
            psn = (model.start + pick.randrange(12)) % PSNS
            pick.choice([model.data, model.data, model.nack])(psn)
    return model.stale


def compare(tool, log, place):
    """Counts of the answers; leaves with 1 on a difference."""
    done = subprocess.run([tool], input="\n".join(log.lines) + "\n", capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{place}: the tool gave {done.returncode}: {done.stderr.strip()}")
    said, counts, begin = iter(done.stdout.split("\n")), Counter(), 0
    for index, expected in enumerate(log.answers):
        if expected is None:
            begin = index
            continue
        got = next(said)
        if got != expected:
            last = "\n".join(f"  {line} -> {answer}" for line, answer in zip(log.lines[max(begin + 1, index - 20):index + 1],
                                                                             log.answers[max(begin + 1, index - 20):index + 1]))
            sys.exit(f"{place}, event {index - begin}: the model says `{expected}`, the registers `{got}`\n{log.lines[begin]}\n{last}")
        words = expected.split()
        counts[" ".join(words[::2]) if len(words) > 2 else words[0] if words else "nothing"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    counts, seed, done, stale = Counter(), words.seed, 0, 0
    while done < words.events:
        log, first = Log(), seed
        while len(log.lines) < EVENTS_PER_RUN and done + len(log.lines) < words.events:
            if seed % 16 == 3:
                stale += old_qp(seed, log)
            elif seed % 2:
                wild_qp(seed, log, 2000)
            elif violations := fabric_qp(seed, log, 5000):
                sys.exit(f"seed {seed}: {violations[0]}")
            seed += 1
        counts += compare(words.tool, log, f"seeds {first} to {seed - 1}")
        done += len(log.lines)
    print(f"{done} events of {seed - words.seed} QPs: {dict(sorted(counts.items()))}, {stale} old PathMaxPSNs")
    needed = ["block invalid", "forward valid", "forward behind_window", "forward before_state", "forward ahead_of_data", "forward doubt", "forward other_nak",
              "stash undetermined", "generate valid", "generate ooo_degree", "generate aged", "discard invalid", "discard acknowledged",
              "path"]
    missing = [name for name in needed if not counts[name]] + ([] if stale else ["an old PathMaxPSN"])
    if missing:
        sys.exit(f"never seen: {', '.join(missing)}")


if __name__ == "__main__":
    main()
