#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis on two ToRs joined by paths of different delay and loss, in replay. The receiving NIC is a model of RNIC-SR that
answers what leaves the far ToR; a brute-force oracle, which knows what was lost, says what each of its NACKs must be."""
import json
import pathlib
import random
import struct
import sys
import unittest
import zlib
from collections import Counter

sys.dont_write_bytecode = True
from common import RoceboxTest  # noqa: E402
from themis_kit import ACKNOWLEDGE, COUNTS, PSNS, ROUNDS_MAX, Oracle, opcode_psn, read_pcap, watch, write_pcap  # noqa: E402
from rnic_model import Receiver  # noqa: E402
from themis_truth import Truth  # noqa: E402
import wire  # noqa: E402

NEAR_MAC, FAR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
NEAR_IP, FAR_IP, NEAR_QPN, FAR_QPN = "10.0.0.1", "10.0.1.1", 0x11, 0x12
WRITE_MIDDLE = 7


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return bytes(map(int, text.split(".")))


def frame(outward, opcode, psn, rest):
    """A RoCEv2 frame over IPv4; outward: from the near NIC to the far one."""
    ends = [(mac(NEAR_MAC), ip(NEAR_IP)), (mac(FAR_MAC), ip(FAR_IP))]
    (source_mac, source), (target_mac, target) = ends if outward else ends[::-1]
    bth = struct.pack("!BBHBBHI", opcode, 0x40, 0xFFFF, 0, 0, FAR_QPN if outward else NEAR_QPN, psn)
    udp = struct.pack("!HHHH", 0xC000, 4791, 8 + len(bth) + len(rest) + 4, 0)
    head = struct.pack("!BBHHHBBH", 0x45, 2, 20 + 8 + len(bth) + len(rest) + 4, 0, 0x4000, 64, 17, 0) + source + target
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    check = struct.pack("!H", 0xFFFF ^ ((total & 0xFFFF) + (total >> 16)))
    whole = target_mac + source_mac + b"\x08\x00" + head[:10] + check + head[12:] + udp + bth + rest
    return whole + icrc(whole)


def icrc(data):
    """Of a frame over IPv4 up to its ICRC."""
    head, udp, bth = data[14:34], data[34:42], data[42:54]
    masked = (b"\xff" * 8 + head[:1] + b"\xff" + head[2:8] + b"\xff" + head[9:10] + b"\xff\xff" + head[12:]
              + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + data[54:])
    return struct.pack("<I", zlib.crc32(masked))


class Themis(RoceboxTest):
    def world(self, seed):
        pick = random.Random(seed)
        self.paths = pick.choice([2, 3, 4, 5])
        self.delays = pick.sample(range(5_000, 60_000, 10), self.paths)  # ends in 0, resent ends in 3, answered in 1 or 4: no ties
        self.first_psn = pick.choice([0, PSNS - 700, pick.randrange(PSNS)])
        self.count = 2000
        self.lost = {number for number in range(1, self.count) if pick.random() < pick.choice([0, 0.02])}
        self.path_of = {}  # number -> the link that its first copy takes

    def psn(self, number):
        return (self.first_psn + number) % PSNS

    def yaml(self):
        ports = [f"s{i}" for i in range(self.paths)]

        def tor(local_mac, remote_mac, local, remote, first):
            connection = {"local": local[0], "local_qpn": local[1], "remote": remote[0], "remote_qpn": remote[1], **first}
            return {"switch": {"ports": ["h", *ports], "strict": True, "programs": ["forward", "themis"],
                               "forward": {"macs": [{"mac": local_mac, "ports": ["h"]}, {"mac": remote_mac, "ports": ports}]},
                               "themis": {"hosts": ["h"], "paths": self.paths, "ooo_threshold": 0, "stash_timeout": "0ns", "qps": 16,
                                          "connections": [connection]}}}

        near, far = (NEAR_IP, NEAR_QPN), (FAR_IP, FAR_QPN)
        links = {}
        for i, port in enumerate(ports):
            links[f"path{i}"] = {"between": [f"near.{port}", f"far.{port}"], "delay": f"{self.delays[i]}ns"}
            events = [{"do": "drop", "qpn": FAR_QPN, "psn": self.psn(n), "occurrence": 1} for n in sorted(self.lost) if self.path_of.get(n) == i]
            if events:
                links[f"path{i}"]["forward"] = {"events": events}
        return json.dumps({
            "devices": {"near": tor(NEAR_MAC, FAR_MAC, near, far, {}), "far": tor(FAR_MAC, NEAR_MAC, far, near, {"first_psn": self.first_psn})},
            "links": links,
            "ports": {"near.h": {"pcap": {"in": "requests.pcap", "out": "answered.pcap"}},
                      "far.h": {"pcap": {"in": "answers.pcap", "out": "delivered.pcap"}}}})

    def requests(self):
        """Each packet once; the lost ones a second time later, as if a timer had run out. The first comes long before the
        others: it makes the connection's state."""
        payload = bytes(64)
        times = [(0 if number == 0 else 1_000_000 + 1_000 * number, number) for number in range(self.count)]
        times += [(1_000_000 + 1_000 * number + 300_123, number) for number in sorted(self.lost)]
        return [(at, frame(True, WRITE_MIDDLE, self.psn(number), payload)) for at, number in times]

    def answers(self, delivered):
        """[(when, kind, number)] of an RNIC-SR receiver."""
        receiver, answers = Receiver(ack_every=16), []
        for at, data in delivered:
            number = (opcode_psn(data)[1] - self.first_psn) % PSNS
            answer = receiver.packet(number, number == self.count - 1)
            if answer and answer[1] >= 0:
                answers.append((at + 2_311, *answer))
        return answers

    def settle(self):
        """Replays until the NIC's answers no longer change what is delivered: the report, and answers and deliveries."""
        sent = [(at, data) for at, data in self.requests() if at < 1_000_000 + 1_000 * self.count]
        first_copies = {opcode_psn(data)[1]: at for at, data in sorted(sent, reverse=True)}
        write_pcap(self.dir / "requests.pcap", [(at, data) for at, data in sent if first_copies[opcode_psn(data)[1]] == at])
        write_pcap(self.dir / "answers.pcap", [])
        self.replay(self.config(self.yaml()))
        for at, data in read_pcap(self.dir / "delivered.pcap"):
            psn = opcode_psn(data)[1]
            self.path_of[(psn - self.first_psn) % PSNS] = self.delays.index(at - first_copies[psn])
        config, answers = self.config(self.yaml()), []
        write_pcap(self.dir / "requests.pcap", self.requests())
        for _ in range(ROUNDS_MAX):
            write_pcap(self.dir / "answers.pcap", [
                (at, frame(False, ACKNOWLEDGE, self.psn(number), bytes([0x60 if kind == "nack" else 0x1F, 0, 0, 1]))) for at, kind, number in answers])
            report = self.replay(config)
            delivered = read_pcap(self.dir / "delivered.pcap")
            again = self.answers(delivered)
            if again == answers:
                return report, answers, delivered
            answers = again
        self.fail("the answers do not settle")

    def watch(self, answers, delivered):
        """The oracle over all that happened at the far ToR; who knows which copies were lost or under way holds its decisions
        against the truth."""
        oracle, truth = Oracle(self.psn, self.paths), Truth(self.psn, self.paths, None)
        events = [(at, "0 sent", (opcode_psn(data)[1] - self.first_psn) % PSNS) for at, data in self.requests()]
        events += [(at, "1 data", (opcode_psn(data)[1] - self.first_psn) % PSNS) for at, data in delivered]
        events += [(at, f"2 {kind}", number) for at, kind, number in answers]
        watch(oracle, truth, events, self.lost)
        self.assertEqual(truth.violations, [])
        self.assertEqual(truth.counts["passed_truly_lost"] + truth.counts["passed_early_after_timeout"], len(oracle.passed))
        return oracle

    def judge(self, seed):
        self.world(seed)
        report, answers, delivered = self.settle()
        oracle = self.watch(answers, delivered)
        counters = report["devices"]["far"]["kernels"]["switch"]["counters"]
        place = f"seed {seed}, {self.paths} paths"
        self.assertEqual({name: counters[name] for name in COUNTS}, {name: oracle.counts[name] for name in COUNTS}, place)
        for device in ("near", "far"):
            switch = report["devices"][device]["kernels"]["switch"]
            self.assertEqual(switch["violations"], [], place)
            self.assertEqual(switch["counters"]["qps_made"], 1, place)
        came_back = [data for _, data in read_pcap(self.dir / "answered.pcap")]
        nacks = [(opcode_psn(data)[1] - self.first_psn) % PSNS for data in came_back if data[54] == 0x60]
        self.assertEqual(sorted(nacks), sorted(oracle.passed), place)
        self.assertLessEqual(set(nacks), self.lost, f"{place}: a NACK passed whose packet was not lost")
        for data in came_back:
            self.assertEqual(data[-4:], icrc(data[:-4]), place)
        return oracle.counts

    def test_every_nack_is_what_the_oracle_says(self):
        total = Counter()
        for seed in range(1, 9):
            total += self.judge(seed)
        print(dict(total))
        for name in ("drop_nack_invalid", "nack_valid", "undetermined_valid", "undetermined_invalid"):
            self.assertGreater(total[name], 0, name)


class Captures(RoceboxTest):
    """Captures of a receiver that lost and reordered packets, as its ToR would have seen them: as if they had come over N paths."""
    # NACKs blocked although the NIC never had the packet: it came corrupt. The ToR, as on hardware, checks no ICRC of data, so that
    # it has seen the packet; such a packet costs its flow a timeout.
    WRONGLY_BLOCKED = {"rc_write_corrupt_rx.pcap": 2}

    def judge(self, name, paths):
        capture = pathlib.Path(__file__).resolve().parent / "captures" / name
        packets = [(at, data) for at, data in read_pcap(capture) if data[12:14] == b"\x08\x00" and data[36:38] == b"\x12\xb7"]
        first = next(data for _, data in packets if data[42] < 12)  # a request
        (far, near), to_near = (".".join(map(str, first[i:i + 4])) for i in (26, 30)), int.from_bytes(first[47:50], "big")
        to_far = next(int.from_bytes(d[47:50], "big") for _, d in packets if d[42] == ACKNOWLEDGE)
        mac_of = {"near": first[0:6].hex(":"), "far": first[6:12].hex(":")}
        config = self.config(json.dumps({
            "devices": {"tor": {"switch": {
                "ports": ["h", "s"], "strict": True, "programs": ["forward", "themis"],
                "forward": {"macs": [{"mac": mac_of["near"], "ports": ["h"]}, {"mac": mac_of["far"], "ports": ["s"]}]},
                "themis": {"hosts": ["h"], "paths": paths, "operations": ["write", "send"], "ooo_threshold": 0, "stash_timeout": "0ns",
                           "connections": [{"local": near, "local_qpn": to_near, "remote": far, "remote_qpn": to_far}]}}}},
            "ports": {"tor.h": {"pcap": {"in": str(capture), "filter": f"src host {near}"}},
                      "tor.s": {"pcap": {"in": str(capture), "filter": f"src host {far}", "out": "left.pcap"}}}}))
        switch = self.replay(config)["devices"]["tor"]["kernels"]["switch"]
        base = opcode_psn(first)[1]
        oracle, intact, wrongly_blocked = Oracle(lambda number: (base + number) % PSNS, paths), set(), []
        for _, data in packets:
            opcode, number = data[42], (opcode_psn(data)[1] - base) % PSNS
            decision = None
            if opcode < 12:
                if wire.parse(data)["icrc_ok"]:
                    intact.add(number)
                if number:  # of the first packet the switch knows only that there is a connection
                    decision = oracle.data(number)
            elif opcode == ACKNOWLEDGE:
                decision = (oracle.nack if data[54] == 0x60 else oracle.ack)(number)
            # Not so a stash that an ACK discards: the NIC itself says that it has the packet.
            if decision and decision.reason == "invalid" and decision.epsn not in intact:
                wrongly_blocked.append(decision.epsn)
        counters, place = switch["counters"], f"{name} over {paths} paths"
        self.assertEqual({name: counters[name] for name in COUNTS}, {name: oracle.counts[name] for name in COUNTS}, place)
        self.assertEqual(switch["violations"], [], place)
        left = [data for _, data in read_pcap(self.dir / "left.pcap") if data[42] == ACKNOWLEDGE and data[54] == 0x60]
        self.assertEqual([(opcode_psn(data)[1] - base) % PSNS for data in left], oracle.passed, place)
        self.assertEqual(len(wrongly_blocked), self.WRONGLY_BLOCKED.get(name, 0), f"{place}: {wrongly_blocked}")
        return oracle.counts

    def test_every_nack_is_what_the_oracle_says(self):
        total = Counter()
        for name in ("rc_send_loss_rx.pcap", "rc_write_reorder_rx.pcap", "rc_write_corrupt_rx.pcap", "rc_write_psnwrap.pcap"):
            for paths in (1, 2, 3, 7):
                total += self.judge(name, paths)
        print(dict(total))
        for name in ("drop_nack_invalid", "nack_valid", "undetermined_invalid"):
            self.assertGreater(total[name], 0, name)


class Shipped(RoceboxTest):
    def test_what_is_flooded_does_not_go_round(self):
        """Four equal paths between two bridges: a copy of one that is flooded comes back by each of the others."""
        config = pathlib.Path(__file__).resolve().parents[2] / "configs/replay/themis.yaml"
        arp = b"\xff" * 6 + mac("52:54:00:77:00:02") + b"\x08\x06" + bytes(46)
        stranger = mac("02:00:00:00:00:77") + mac("52:54:00:77:00:02") + b"\x08\x00" + bytes(46)
        words = []
        for port in ("near.h1", "far.h1"):
            write_pcap(self.dir / f"{port}.pcap", [(1000, arp), (2000, stranger)])
            words += ["--in", f"{port}={self.dir / port}.pcap"]
        devices = self.replay(config, *words, status=1)["devices"]  # no WRITE is sprayed, as it expects
        for name in ("near", "far"):
            counters = devices[name]["kernels"]["switch"]["counters"]
            self.assertEqual(counters["drop_unknown_mac"], 2, name)


if __name__ == "__main__":
    unittest.main()
