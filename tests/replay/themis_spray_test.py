#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Real RDMA WRITEs, sprayed over N paths of different delay and loss between two ToRs, in replay. The requests are those that
Soft-RoCE sent in the captures, byte by byte and at their times; its answers are left out, as it threw away what came out of
order. Instead a model of RNIC-SR answers what leaves the far ToR, in Soft-RoCE's own frames. An oracle that knows which copies
were lost says what becomes of each NACK, and the report and the trace of the packets must say so, too."""
import json
import random
import re
import sys
import unittest
from collections import Counter

sys.dont_write_bytecode = True
from common import CAPTURES, RoceboxTest  # noqa: E402
from themis_kit import ACKNOWLEDGE, COUNTS, NACK_SYNDROME, ACK_SYNDROME, PSNS, ROUNDS_MAX, Oracle, watch, write_pcap  # noqa: E402
from rnic_model import Receiver  # noqa: E402
from themis_truth import Truth  # noqa: E402
import wire  # noqa: E402

# Seen before any network reordered them; taken one after the other, so that their QPs differ and all fit into one replay.
# rc_write_corrupt_rx has packets with a wrong ICRC, the others of the second row have packets that were sent again.
NAMES = ["rc_write", "rc_write_psnwrap", "rc_write_imm", "rc_write_ipv6", "perftest_write", "multi_qp", "ecn_rx",
         "rc_write_corrupt_rx", "rc_write_dup_rx", "rc_write_ackloss_tx", "rc_write_reorder_tx"]
CORRUPT = "rc_write_corrupt_rx"
WRITES = range(6, 12)  # opcodes of RC, with and without immediate
EARLIER, RESENT_AFTER, ANSWER_AFTER = 1_000_000, 300_003, 2_311  # ns; see Qp and World
# NACKs that pass because nothing is known: none here.
DOUBTS = ["nack_unpaired", "nack_doubt", "nack_behind_window", "nack_before_state", "nack_ahead_of_data", "answer_bad_icrc", "answer_wrong_port"]


class Qp:
    """One QP of a capture. Its packets are counted from 0, its first; that one comes long before the others, since it makes the
    QP's state in both ToRs."""

    def __init__(self, name, first, answer):
        self.name, self.base, self.template = name, first["psn"], answer
        self.qpn, self.near, self.far = first["qpn"], wire.text_address(first["src"]), wire.text_address(first["dst"])
        self.requests = []  # (when, number, frame)
        self.asks = set()  # numbers that ask for an ACK

    def psn(self, number):
        return (self.base + number) % PSNS

    def number(self, psn):
        return (psn - self.base) % PSNS

    def answer(self, kind, number):
        """An ACK or NACK: a frame of the capture's receiver with another PSN and syndrome, and the ICRC that it then needs."""
        frame = bytearray(self.template)
        _, udp, end, _ = wire.find_udp(frame)
        frame[udp + 17:udp + 20] = self.psn(number).to_bytes(3, "big")
        frame[udp + 20] = NACK_SYNDROME if kind == "nack" else ACK_SYNDROME
        frame[end - 4:end] = wire.icrc(frame)
        return bytes(frame)


def load():
    """{QPN: Qp} of all captures, at times that differ: whole microseconds."""
    qps, taken = {}, set()
    for name in NAMES:
        packets = [(at, frame, wire.parse(frame)) for at, _, frame in wire.read_pcap(CAPTURES / f"{name}.pcap")[0]]
        answers = {packet["qpn"]: frame for _, frame, packet in packets if packet and packet["opcode"] == ACKNOWLEDGE}
        for at, frame, packet in packets:
            if not packet or packet["opcode"] not in WRITES:
                continue
            qp = qps.setdefault(packet["qpn"], Qp(name, packet, answers[packet["qpn"]]))  # both ends have the same QPN
            if qp.name != name:
                raise AssertionError(f"{name} and {qp.name} share QP {packet['qpn']}")
            at -= 0 if qp.requests else EARLIER
            while at in taken:
                at += 1000
            taken.add(at)
            qp.requests.append((at, qp.number(packet["psn"]), frame))
            if packet["ackreq"]:
                qp.asks.add(qp.number(packet["psn"]))
    start = min(taken)
    for qp in qps.values():
        qp.requests = [(at - start, number, frame) for at, number, frame in qp.requests]
    return qps


class World:
    """N paths, their delays, and which packets they lose. No two packets of the far ToR fall into one instant: requests are sent
    at whole microseconds and paths differ in what they add below one, packets that are sent again and answers besides."""

    def __init__(self, qps, paths, seed):
        self.qps, self.paths, pick = qps, paths, random.Random(f"{paths} paths, {seed}")
        rests = pick.sample(range(0, 1000, 10), paths)
        self.delays = [1000 * pick.randrange(5, 80) + rest for rest in rests]
        self.losses = [0] + [pick.choice([0, 0.05, 0.1]) for _ in range(paths - 2)] + [0.08]
        self.pick, self.path_of = pick, {}  # (QPN, number) -> path of the first copy
        self.lost = {qpn: set() for qpn in qps}

    def lose(self, arrivals):
        """Draws which first copies are lost, once it is known what path each takes."""
        for (qpn, number), took in sorted(arrivals.items()):
            path = self.path_of[qpn, number] = self.delays.index(took)
            if number and self.pick.random() < self.losses[path]:
                self.lost[qpn].add(number)

    def requests(self, qp):
        """[(when, number, frame)]: those of the capture, and the lost ones once more, as if a timer had run out."""
        again, seen = [], set()
        for at, number, frame in qp.requests:
            if number in self.lost[qp.qpn] and number not in seen:
                again.append((at + RESENT_AFTER, number, frame))
            seen.add(number)
        return qp.requests + again

    def yaml(self):
        ports = [f"s{i}" for i in range(self.paths)]
        first = next(iter(self.qps.values())).requests[0][2]
        far_mac, near_mac = first[0:6].hex(":"), first[6:12].hex(":")

        def tor(local_mac, remote_mac, near):
            connections = [{"local": qp.near if near else qp.far, "local_qpn": qp.qpn, "remote": qp.far if near else qp.near,
                            "remote_qpn": qp.qpn} for qp in self.qps.values()]
            return {"switch": {"ports": ["h", *ports], "strict": True, "programs": ["forward", "themis"],
                               "forward": {"macs": [{"mac": local_mac, "ports": ["h"]}, {"mac": remote_mac, "ports": ports}]},
                               "themis": {"hosts": ["h"], "paths": self.paths, "ooo_threshold": 0, "stash_timeout": "0ns", "qps": 64,
                                          "qp_timeout": "3600s", "learning": False, "connections": connections}}}

        links = {}
        for i, port in enumerate(ports):
            links[f"path{i}"] = {"between": [f"near.{port}", f"far.{port}"], "delay": f"{self.delays[i]}ns"}
            events = [{"do": "drop", "qpn": qpn, "psn": self.qps[qpn].psn(number), "occurrence": 1}
                      for qpn, numbers in self.lost.items() for number in sorted(numbers) if self.path_of[qpn, number] == i]
            if events:
                links[f"path{i}"]["forward"] = {"events": events}
        return json.dumps({
            "devices": {"near": tor(near_mac, far_mac, True), "far": tor(far_mac, near_mac, False)}, "links": links,
            "ports": {"near.h": {"pcap": {"in": "requests.pcap", "out": "answered.pcap"}},
                      "far.h": {"pcap": {"in": "answers.pcap", "out": "delivered.pcap"}}}})


class Spray(RoceboxTest):
    @classmethod
    def setUpClass(cls):
        cls.qps = load()
        cls.corrupt = {frame for qp in cls.qps.values() for _, _, frame in qp.requests if not wire.parse(frame)["icrc_ok"]}

    def read(self, name):
        """[(when, QPN, number, frame)]; the switches change no byte of a request, and its QPN is that of its answers."""
        packets = []
        for at, _, frame in wire.read_pcap(self.dir / name)[0]:
            packet = wire.parse(frame)
            packets.append((at - 1000 * 10**9, packet["qpn"], self.qps[packet["qpn"]].number(packet["psn"]), frame))
        return packets

    def answers(self, delivered):
        """{(when, QPN): (kind, number)} of a NIC with selective repeat. What is corrupt it does not see."""
        receivers, answers = {qpn: Receiver(ack_every=16) for qpn in self.qps}, {}
        for at, qpn, number, frame in delivered:
            if frame in self.corrupt:
                continue
            answer = receivers[qpn].packet(number, number in self.qps[qpn].asks)
            if answer and answer[1] >= 0:
                answers[at + ANSWER_AFTER, qpn] = answer
        self.assertEqual({qpn: r.expected for qpn, r in receivers.items() if r.out_of_order}, {}, "all came at last")
        return answers

    def settle(self, world):
        """Replays until the NIC's answers no longer change what is delivered: the report, answers, and what was delivered."""
        firsts = {}
        for qp in self.qps.values():
            for at, number, frame in qp.requests:
                firsts.setdefault((qp.qpn, number), (at, frame))
        write_pcap(self.dir / "requests.pcap", firsts.values())
        write_pcap(self.dir / "answers.pcap", [])
        self.replay(self.config(world.yaml()))
        world.lose({(qpn, number): at - firsts[qpn, number][0] for at, qpn, number, _ in self.read("delivered.pcap")})
        write_pcap(self.dir / "requests.pcap", [(at, frame) for qp in self.qps.values() for at, _, frame in world.requests(qp)])
        config, answers = self.config(world.yaml()), {}
        for _ in range(ROUNDS_MAX):
            report = self.replay(config, "--trace", f"opcode={ACKNOWLEDGE}", "--trace-out", self.dir / "trace.txt")
            delivered = self.read("delivered.pcap")
            again = self.answers(delivered)
            if again == answers:
                return report, answers, delivered
            answers = again
            write_pcap(self.dir / "answers.pcap", [(at, self.qps[qpn].answer(*answer)) for (at, qpn), answer in answers.items()])
        self.fail("the answers do not settle")

    def traced(self):
        """What the far ToR did, {(when, QPN, reason, number)}: reasons of NACKs that came, and those that it made, which are first
        seen on a path."""
        fates, came = set(), set()
        for line in (self.dir / "trace.txt").read_text().splitlines():
            match = re.match(r" *(\d+)\.(\d{9}) +(far(?:\.switch)?|path\d+) +(.*?) +#\d+ RC Acknowledge qpn (0x[0-9a-f]+) psn (\d+)$", line)
            if not match:
                continue
            at, what, qpn = int(match[1]) * 10**9 + int(match[2]), match[4], int(match[5], 16)
            if what == "arrive h":
                came.add((at, qpn))
            elif match[3] == "far.switch" and what.startswith(("drop ", "valid")):
                fates.add((at, qpn, what.removeprefix("drop drop_nack_"), self.qps[qpn].number(int(match[6]))))
            elif what == "arrive b" and (at, qpn) not in came:
                fates.add((at, qpn, "made", self.qps[qpn].number(int(match[6]))))
        return fates

    def judge(self, paths, seed):
        """One N, with delays and losses: the oracle's counts of all QPs, and of which captures NACKs were judged."""
        world = World(self.qps, paths, seed)
        report, answers, delivered = self.settle(world)
        total, fates, passed, wrongly, judged = Counter(), set(), [], Counter(), Counter()
        for qpn, qp in self.qps.items():
            oracle, truth = Oracle(qp.psn, paths), Truth(qp.psn, paths, None)
            events = [(at, "0 sent", number) for at, number, _ in world.requests(qp)]
            events += [(at, "1 data", number) for at, of, number, _ in delivered if of == qpn]
            events += [(at, f"2 {kind}", number) for (at, of), (kind, number) in answers.items() if of == qpn]
            told = watch(oracle, truth, events, world.lost[qpn])
            place = f"{qp.name}, QP {qpn}, {paths} paths, delays {world.delays}"
            self.assertEqual(truth.violations, [], place)
            self.assertLessEqual(set(oracle.passed), world.lost[qpn] | truth.excused, f"{place}: a NACK passed whose packet was not lost")
            fates |= {(at, qpn, reason, number) for at, reason, number in told}
            passed += [(qpn, number) for number in oracle.passed]
            total += oracle.counts
            judged[qp.name] += len(told)
            wrongly[qp.name] += self.wrongly_blocked(qp, told, delivered)
        self.compare(world, report, total, fates, passed)
        # The ToR checks no ICRC of data (README of the kernel): what came corrupt has been seen, and its NACK is blocked.
        self.assertEqual([name for name, count in wrongly.items() if count], [CORRUPT], wrongly)
        return total, judged

    def wrongly_blocked(self, qp, told, delivered):
        """NACKs found invalid of packets that the NIC did not have."""
        has = {number: at for at, qpn, number, frame in reversed(delivered) if qpn == qp.qpn and frame not in self.corrupt}
        return sum(reason == "invalid" and has.get(number, at) >= at for at, reason, number in told)

    def compare(self, world, report, total, fates, passed):
        """The switches against the oracle: the counts, each NACK's fate, and what came back to the sender."""
        place = f"{world.paths} paths, delays {world.delays}"
        counters = report["devices"]["far"]["kernels"]["switch"]["counters"]
        self.assertEqual({name: counters[name] for name in COUNTS}, {name: total[name] for name in COUNTS}, place)
        self.assertEqual({name: counters[name] for name in DOUBTS}, dict.fromkeys(DOUBTS, 0), place)
        self.assertEqual(self.traced(), fates, place)
        for device in ("near", "far"):
            switch = report["devices"][device]["kernels"]["switch"]
            self.assertEqual(switch["violations"], [], place)
            self.assertEqual(switch["counters"]["qps_made"], len(self.qps), place)
        sent = sum(len(world.requests(qp)) for qp in self.qps.values())
        self.assertEqual(report["devices"]["near"]["kernels"]["switch"]["counters"]["sprayed"], sent - len(self.qps), place)
        back = self.read("answered.pcap")
        nacks = [(qpn, number) for _, qpn, number, frame in back if wire.parse(frame)["aeth"]["kind"] == wire.NAK_KIND]
        self.assertEqual(sorted(nacks), sorted(passed), place)
        self.assertTrue(all(wire.parse(frame)["icrc_ok"] for *_, frame in back), place)

    def test_every_nack_is_what_the_oracle_says(self):
        total, judged = Counter(), Counter()
        for paths in (2, 3, 4, 8):
            counts = Counter()
            for seed in (1, 2):
                more, of = self.judge(paths, seed)
                counts, judged = counts + more, judged + of
            print(f"{paths} paths: {dict(sorted(counts.items()))}")
            for name in ("drop_nack_invalid", "nack_valid", "undetermined_valid", "undetermined_invalid"):
                self.assertGreater(counts[name], 0, f"{name}, {paths} paths")
            total += counts
        print(f"NACKs of captures: {dict(judged)}")
        self.assertEqual({name for name, count in judged.items() if count}, set(NAMES))


if __name__ == "__main__":
    unittest.main()
