# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of Themis in replay share: small captures, and the oracle with the judge beside it."""
import pathlib
import struct
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit/themis"))
from themis_model import Decision  # noqa: E402

PSNS = 1 << 24
ACKNOWLEDGE, ACK_SYNDROME, NACK_SYNDROME = 17, 0x1F, 0x60
ROUNDS_MAX = 12
# What a report says of NACKs, by the names of its counters.
COUNTS = ["drop_nack_invalid", "nack_valid", "drop_nack_undetermined", "undetermined_valid", "undetermined_invalid",
          "undetermined_acknowledged"]


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


def watch(oracle, truth, events, lost):
    """The oracle over all that happened to one QP at the far ToR; the truth, which knows the copies that were lost or under way,
    holds its decisions against it. events: (when, what, number), what is "0 sent", "1 data", "2 nack" or "2 ack"; `lost`: numbers
    whose first copy is. Returns each NACK's fate: (when, reason, number), and "made" when one was."""
    sent, fates = set(), []
    for at, what, number in sorted(events):
        stashed = oracle.stash
        if what == "0 sent":
            truth.sent(number)
            if number in sent:
                # Sent again it takes any path: it may be under way, and overtake others whose place it does not prove.
                path = oracle.path(number)
                truth.excused |= {other for other, copies in truth.flying.items()
                                  if copies and other <= number and oracle.path(other) == path} | {number}
            elif number in lost:
                truth.lost(number)
            sent.add(number)
        elif what == "1 data":
            truth.leaves(number)
            decision = oracle.data(number)
            truth.judge_data(number, stashed, [decision] if decision else [])
            if decision:
                truth.judge_stash(stashed, decision)
                if decision.action == "generate":
                    fates.append((at, "made", stashed))
        elif what == "2 nack":
            decision = oracle.nack(number)
            truth.judge_nack(number, decision)
            fates.append((at, decision.reason, number))
        elif decision := oracle.ack(number):
            truth.judge_stash(stashed, decision)
    return fates
