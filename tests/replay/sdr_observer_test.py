#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel sdr on captures that scapy makes of a sender as the paper describes it, over a network that loses, doubles, delays and
reorders. What is expected is computed from what tshark shows of the capture and from what the sender meant."""
import json
import random
import re
import struct
import subprocess
import unittest

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

import wire
from common import CAPTURES, HERE, ROCEBOX, RoceboxTest, tshark

ROOT = HERE.parent.parent
UC_WRITE_ONLY_IMM, RC_WRITE_ONLY_IMM = 0x2B, 0x0B
MTU = 256


class Sender:
    """One connection of SDR: message n has ID n mod IDS, and goes by the queue pairs of generation n / IDS mod GENERATIONS."""

    def __init__(self, seed, ids, generations, channels, split, opcode=UC_WRITE_ONLY_IMM, source="10.0.0.1"):
        self.random = random.Random(seed)
        self.ids, self.generations, self.channels, self.split, self.opcode, self.source = ids, generations, channels, split, opcode, source
        self.psn = {}
        self.sent = []  # (time, number, offset, bytes, immediate, qpn)

    def message(self, number, size, user, at):
        message_bits, offset_bits, fragment_bits = self.split
        packets = -(-size // MTU)
        fragments = 32 // fragment_bits if fragment_bits else 0
        for offset in range(max(packets, fragments if user is not None else 0)):
            fragment = user >> offset % fragments * fragment_bits & (1 << fragment_bits) - 1 if user is not None and fragments else 0
            immediate = number % self.ids << offset_bits + fragment_bits | offset << fragment_bits | fragment
            payload = max(0, min(MTU, size - offset * MTU))
            qpn = 0x200 + number // self.ids % self.generations * self.channels + offset % self.channels
            self.sent.append((at + offset, number, offset, payload, immediate, qpn))

    def through_the_network(self, loss, doubled, late, late_by):
        arriving, known = [], set()
        for at, *packet in self.sent:
            if self.random.random() < loss:
                continue
            # The first packet of a queue pair comes in time: by it the generation is learnt.
            is_first = packet[-1] not in known
            known.add(packet[-1])
            delay = self.random.randrange(late_by) if not is_first and self.random.random() < late else self.random.randrange(3)
            arriving.append((at + delay, *packet))
            if self.random.random() < doubled:
                arriving.append((at + delay + self.random.randrange(1, 40), *packet))
        return sorted(arriving, key=lambda row: row[0])

    def frame(self, packet):
        _, _, offset, size, immediate, qpn = packet
        psn = self.psn[qpn] = self.psn.get(qpn, -1) + 1
        pad = -size % 4
        bth = struct.pack(">BBHII", self.opcode, 0x40 | pad << 4, 0xFFFF, qpn, psn)
        reth = struct.pack(">QII", offset * MTU, 0x77, size)
        frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=self.source, dst="10.0.0.2", tos=2, ttl=64) /
                      UDP(sport=0xC000, dport=4791, chksum=0) / Raw(bth + reth + struct.pack(">I", immediate) + bytes(size + pad) + bytes(4)))
        return frame[:-4] + wire.icrc(frame)


def runs_of(missing):
    """`3, 7-9` of a sorted list; the first eight runs."""
    runs = []
    for packet in missing:
        if runs and runs[-1][1] == packet - 1:
            runs[-1][1] = packet
        else:
            runs.append([packet, packet])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:8])
    return text + (", ..." if len(runs) > 8 else "")


class Message:
    def __init__(self):
        self.packets, self.duplicates, self.empty, self.first, self.last, self.fragments, self.bytes = set(), 0, set(), None, None, {}, 0
        self.end = 0


class SdrObserver(RoceboxTest):
    def setUp(self):
        super().setUp()
        self.capture = self.dir / "sdr.pcap"

    def record(self, sender, arriving):
        frames = []
        for row in arriving:
            packet = Ether(sender.frame(row))
            packet.time = 1_700_000_000 + row[0] * 1e-5
            frames.append(packet)
        wrpcap(str(self.capture), frames)

    def check(self, sender, arriving, chunk, *options):
        self.record(sender, arriving)
        # The capture is what was meant, as tshark reads it.
        rows = tshark(self.capture, "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.immdt", "infiniband.reth.dmalen",
                      "frame.time_epoch")
        self.assertEqual([(int(op), int(qp, 16), int(imm.split(",")[0], 16), int(size)) for op, qp, imm, size, _ in rows],
                         [(sender.opcode, qpn, immediate, size) for _, _, _, size, immediate, qpn in arriving])
        times = [round(float(row[4]) * 1e6) for row in rows]
        # What has come of each message.
        messages, holder, late = {}, {}, 0
        fragment_bits = sender.split[2]
        for at, (_, number, offset, size, immediate, _) in zip(times, arriving):
            if holder.get(number % sender.ids, number) > number:
                late += 1
                continue
            holder[number % sender.ids] = number
            message = messages.setdefault(number, Message())
            message.first = at if message.first is None else message.first
            message.last = at
            if fragment_bits:
                message.fragments.setdefault(offset % (32 // fragment_bits), immediate & (1 << fragment_bits) - 1)
            if size == 0:
                message.empty.add(offset)
                continue
            if size < MTU:
                message.end = offset + 1
            message.duplicates += offset in message.packets
            message.bytes += 0 if offset in message.packets else size
            message.packets.add(offset)
        out = self.dir / "report.json"
        self.rocebox("replay", "--from", self.capture, "--json", out, "--full", "--", "sdr", f"chunk={chunk}", "bitmaps=true", "mtu=256", *options)
        said = json.loads(out.read_text())["devices"]["bump"]["kernels"]["sdr"]
        self.assertEqual(said["counters"]["late"], late)
        self.assertGreater(late, 0, "else it says little")
        self.assertEqual([row["what"] for row in said["events"]].count("late"), late)
        self.assertEqual(len(said["messages"]), len(messages))
        start = times[0]
        for row in said["messages"]:
            number = row["message_number"]
            with self.subTest(number):
                self.judge(row, messages[number], chunk, sender)
                self.assertEqual(row["id_number"], number % sender.ids)
                self.assertEqual(row["generation"], number // sender.ids % sender.generations)
                self.assertEqual(row["last_ns"] - row["first_ns"], (messages[number].last - messages[number].first) * 1000)
        per_qp = {}
        for row in arriving:
            per_qp[row[5]] = per_qp.get(row[5], 0) + 1
        self.assertEqual({row["qpn"]: row["packets"] for row in said["qps"]}, per_qp)
        for row in said["qps"]:
            self.assertEqual(row["generation"], (row["qpn"] - 0x200) // sender.channels)
        self.assertGreater(start, 0)
        return said

    def judge(self, row, message, chunk, sender):
        end = message.end or (min(message.empty) if message.empty else 0)
        high = max(message.packets, default=-1) + 1
        expected = end or high
        self.assertEqual(row["packets"], len(message.packets))
        self.assertEqual((row["end_known"], row["expected"]), (end != 0, expected))
        missing = [packet for packet in range(expected) if packet not in message.packets]
        self.assertEqual((row["missing"], row["missing_packets"]), (len(missing), runs_of(missing)))
        self.assertEqual(row["state"] == "complete", bool(end) and not missing)
        self.assertEqual((row["duplicates"], row["bytes"]), (message.duplicates, message.bytes))
        bits = ""
        for first in range(0, expected, chunk):
            last = min(first + chunk, end) if end else first + chunk
            bits += "1" if all(packet in message.packets for packet in range(first, last)) else "0"
        self.assertEqual(row["chunks_complete"], bits.count("1"))
        if "chunk_bitmap" in row:
            self.assertEqual(row["chunk_bitmap"], bits)
        if sender.split[2]:
            known = len(message.fragments) == 32 // sender.split[2]
            self.assertEqual(row["immediate_known"], known)
            value = sum(fragment << place * sender.split[2] for place, fragment in message.fragments.items())
            self.assertEqual(row["immediate"], value if known else 0)

    def test_all_is_learnt(self):
        sender = Sender(1, 32, 4, 3, (10, 18, 4))
        for number in range(150):
            sender.message(number, sender.random.randrange(1, 40) * MTU - sender.random.randrange(1, MTU),
                           sender.random.getrandbits(32) if number % 3 else None, number * 45)
        said = self.check(sender, sender.through_the_network(0.03, 0.02, 0.02, 100 * 45), 8)
        (connection,) = said["connections"]
        self.assertEqual((connection["message_ids"], connection["message_ids_known"]), (32, True))

    def test_another_split_over_rc_with_what_is_known(self):
        sender = Sender(2, 16, 2, 2, (8, 22, 2), RC_WRITE_ONLY_IMM)
        for number in range(60):
            sender.message(number, sender.random.randrange(1, 60 * MTU), sender.random.getrandbits(32), number * 70)
        rows = ", ".join(f"{{destination: 10.0.0.2, first_qpn: {0x200 + 2 * g}, channels: 2, generation: {g}}}" for g in (0, 1))
        self.check(sender, sender.through_the_network(0.05, 0.02, 0.02, 22 * 70), 16, "message_bits=8", "offset_bits=22",
                   "fragment_bits=2", "messages=16", "generations=2", "service=rc", f"queue_pairs=[{rows}]")

    def test_a_wrong_icrc_is_no_packet(self):
        sender = Sender(3, 16, 1, 1, (10, 18, 4))
        sender.message(0, 4 * MTU, None, 0)
        frames = [bytearray(sender.frame(row)) for row in sender.sent]
        frames[2][-1] ^= 1
        wrpcap(str(self.capture), [Ether(bytes(frame)) for frame in frames])
        said = self.replay(self.config(f"""
devices: {{d: {{path: a <-> sdr <-> b}}}}
ports: {{d.a: {{pcap: {{in: {self.capture}}}}}, d.b: {{pcap: {{out: {self.dir}/out.pcap}}}}}}
"""))["devices"]["d"]["kernels"]["sdr"]
        self.assertEqual(said["counters"]["rx_icrc_encapsulated"], 1)
        self.assertEqual(said["messages"][0]["missing_packets"], "2")
        self.assertEqual([bytes(row[2]) for row in wire.read_pcap(str(self.dir / "out.pcap"))[0]], [bytes(frame) for frame in frames])

    def test_the_commands_of_the_readme_run(self):
        (block,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "kernels/sdr/observer/README.md").read_text(), re.S | re.M)
        (self.dir / "trace.pcap").symlink_to(CAPTURES / "uc_write_imm.pcap")
        for command in [line.split("  #")[0].strip() for line in block.splitlines()]:
            done = subprocess.run(["bash", "-c", f"rocebox() {{ '{ROCEBOX}' \"$@\"; }}; {command}"], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)


if __name__ == "__main__":
    unittest.main()
