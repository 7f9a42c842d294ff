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
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit/themis"))
from common import RoceboxTest  # noqa: E402
from rnic_model import Receiver  # noqa: E402
from themis_model import Decision  # noqa: E402
from themis_truth import Truth  # noqa: E402
import wire  # noqa: E402

PSNS = 1 << 24
NEAR_MAC, FAR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
NEAR_IP, FAR_IP, NEAR_QPN, FAR_QPN = "10.0.0.1", "10.0.1.1", 0x11, 0x12
WRITE_MIDDLE, ACKNOWLEDGE = 7, 17
ROUNDS_MAX = 12


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


def write_pcap(path, packets):
    """packets: (nanoseconds, frame), in any order."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for at, data in sorted(packets, key=lambda packet: packet[0]):
            file.write(struct.pack("<IIII", 1000 + at // 10**9, at % 10**9, len(data), len(data)) + data)


def read_pcap(path):
    data = pathlib.Path(path).read_bytes()
    scale = {0xA1B23C4D: 1, 0xA1B2C3D4: 1000}[struct.unpack_from("<I", data)[0]]
    at, packets = 24, []
    while at < len(data):
        seconds, fraction, size, _ = struct.unpack_from("<IIII", data, at)
        packets.append(((seconds - 1000) * 10**9 + fraction * scale, data[at + 16:at + 16 + size]))
        at += 16 + size
    return packets


def opcode_psn(data):
    return data[42], int.from_bytes(data[51:54], "big")


class Oracle:
    """What each NACK is, in plain numbers: packets are counted from 0, and nothing is forgotten."""

    def __init__(self, psn_of, paths):
        self.psn_of, self.paths = psn_of, paths
        self.came, self.class_max, self.stash = set(), {}, None
        self.counts, self.passed = Counter(), []

    def path(self, number):
        return self.psn_of(number) % self.paths

    def data(self, number):
        """What becomes of the stash: a decision, or None."""
        self.came.add(number)
        self.class_max[self.path(number)] = max(number, self.class_max.get(self.path(number), -1))
        if self.stash is None:
            return None
        if number == self.stash:
            return self.resolved("discard", "invalid")
        if number > self.stash and self.path(number) == self.path(self.stash):
            self.passed.append(self.stash)
            return self.resolved("generate", "valid")
        return None

    def resolved(self, action, reason):
        self.counts[f"undetermined_{reason}"] += 1
        decision, self.stash = Decision(action, self.stash, reason), None
        return decision

    def ack(self, number):
        return self.resolved("discard", "acknowledged") if self.stash is not None and number >= self.stash else None

    def nack(self, number):
        if number in self.came:
            self.counts["drop_nack_invalid"] += 1
            return Decision("block", number, "invalid")
        if self.class_max.get(self.path(number), -1) > number:
            self.counts["nack_valid"] += 1
            self.passed.append(number)
            return Decision("forward", number, "valid")
        self.counts["drop_nack_undetermined"] += 1
        self.stash = number
        return Decision("stash", number, "undetermined")


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
        oracle, truth, sent = Oracle(self.psn, self.paths), Truth(self.psn, self.paths, None), set()
        events = [(at, "0 sent", (opcode_psn(data)[1] - self.first_psn) % PSNS) for at, data in self.requests()]
        events += [(at, "1 data", (opcode_psn(data)[1] - self.first_psn) % PSNS) for at, data in delivered]
        events += [(at, f"2 {kind}", number) for at, kind, number in answers]
        for _, what, number in sorted(events):
            stashed = oracle.stash
            if what == "0 sent":
                truth.sent(number)
                if number in sent:
                    truth.excused.add(number)  # a timer sent it again: it may be under way by any path
                elif number in self.lost:
                    truth.lost(number)
                sent.add(number)
            elif what == "1 data":
                truth.leaves(number)
                decision = oracle.data(number)
                truth.judge_data(number, stashed, [decision] if decision else [])
                if decision:
                    truth.judge_stash(stashed, decision)
            elif what == "2 nack":
                truth.judge_nack(number, oracle.nack(number))
            elif decision := oracle.ack(number):
                truth.judge_stash(stashed, decision)
        self.assertEqual(truth.violations, [])
        self.assertEqual(truth.counts["passed_truly_lost"] + truth.counts["passed_early_after_timeout"], len(oracle.passed))
        return oracle

    def judge(self, seed):
        self.world(seed)
        report, answers, delivered = self.settle()
        oracle = self.watch(answers, delivered)
        counters = report["devices"]["far"]["kernels"]["switch"]["counters"]
        names = ["drop_nack_invalid", "nack_valid", "drop_nack_undetermined", "undetermined_valid", "undetermined_invalid",
                 "undetermined_acknowledged"]
        place = f"seed {seed}, {self.paths} paths"
        self.assertEqual({name: counters[name] for name in names}, {name: oracle.counts[name] for name in names}, place)
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
        names = ["drop_nack_invalid", "nack_valid", "drop_nack_undetermined", "undetermined_valid", "undetermined_invalid",
                 "undetermined_acknowledged"]
        self.assertEqual({name: counters[name] for name in names}, {name: oracle.counts[name] for name in names}, place)
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


if __name__ == "__main__":
    unittest.main()
