#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verbs programs between two machines with Linux's Soft-RoCE through `rocebox run`, and the books of all three compared:
what Soft-RoCE sent and received, what `inspect` saw before and behind the link, and what the link dropped."""
import subprocess
import sys

import bed
from allgather_cases import AllgatherCases
from conformance_cases import ConformanceCases
from nic_cases import NicCases
from verbs_cases import VerbsCases

sys.path.insert(0, str(bed.ROOT / "tests" / "replay"))
from wire import parse, read_pcap  # noqa: E402

MESSAGE_BYTES, PINGPONG_BYTES = 65536, 8192
# RoCE packets alone: then every loss can be found again in Soft-RoCE's own counts.
LOSS = "loss: 1%, match: {kind: roce}"
# ibv_rc_pingpong's server goes when it has all: were its last ACK lost, the client would ask a QP that is no more.
LOSS_OF = {"ibv_rc_pingpong": "loss: 1%, match: {kind: data}"}
# program -> the side whose payload crosses (both: each in turn)
PROGRAMS = {"ibv_rc_pingpong": ("left", "right"), "ib_write_bw": ("right",), "ib_read_bw": ("left",), "ib_send_bw": ("right",)}
OPCODES = {"ibv_rc_pingpong": "rc_send_", "ib_write_bw": "rc_rdma_write_", "ib_read_bw": "rc_rdma_read_response_",
           "ib_send_bw": "rc_send_"}
IPV4_GID, IPV6_GID = 1, 2  # 0 is the link-local one


class SoftRoce(AllgatherCases, ConformanceCases, VerbsCases, NicCases, bed.BedTest):
    counts = None

    def words(self, program, messages, roce_mtu, gid):
        if program == "ibv_rc_pingpong":  # sleeps on events: a program that polls takes its machine's only CPU from Soft-RoCE
            return (program, "-d", "rxe0", "-g", gid, "-m", roce_mtu, "-s", PINGPONG_BYTES, "-n", messages, "-c", "-e")
        # 4.096 us * 2^16 to a timeout, and seven of them without progress before a QP fails: room for a busy host.
        return (program, "-d", "rxe0", "-x", gid, "-m", roce_mtu, "-s", MESSAGE_BYTES, "-n", messages, "-F", "-u", 16)

    def exchange(self, program, roce_mtu=1024, link="", gid=IPV4_GID):
        """Runs the program over a wire with these faults, and holds all books against each other. Returns the report."""
        messages = 300 if program == "ibv_rc_pingpong" else 100
        before, SoftRoce.counts = SoftRoce.counts or self.quiet_counters(), None  # nothing moved since the exchange before
        wire = self.start(link)
        try:
            self.pair(*self.words(program, messages, roce_mtu, gid))
        except AssertionError:
            self.end(wire)  # not to stand beside the next one
            raise
        after = SoftRoce.counts = self.quiet_counters()
        report = self.stop(wire)
        rxe = {side: {name: after[n][name] - before[n][name] for name in after[n]} for n, side in enumerate(("left", "right"))}
        self.payload_arrived(program, report, rxe, messages, roce_mtu, gid)
        self.books_agree(program, report, rxe, gid)
        return report, rxe

    def flow(self, report, place, sender, gid):
        """The one flow of RoCE packets from a side, as `inspect` saw it at the place."""
        inspect = report["devices"]["wire"]["kernels"][place]
        machine = {"left": self.left, "right": self.right}[sender]
        flows = [f for f in inspect["flows"] if f["source"] == (machine.address6 if gid == IPV6_GID else machine.address)]
        self.assertEqual(len(flows), 1, flows)
        self.assertEqual(len(inspect["flows"]), 2, "one QP and one QP")
        return flows[0]

    def payload_arrived(self, program, report, rxe, messages, roce_mtu, gid):
        """Each byte of each message passed the last `inspect` before its receiver, once counted, in packets of the MTU."""
        size = PINGPONG_BYTES if program == "ibv_rc_pingpong" else MESSAGE_BYTES
        asked = messages
        for sender in PROGRAMS[program]:
            flow = self.flow(report, "far" if sender == "left" else "near", sender, gid)
            space = flow["read_responses" if program == "ib_read_bw" else "requests"]
            messages = asked
            if program != "ib_read_bw":
                messages += self.sent_under_new_psns(flow, rxe[sender], asked, size, roce_mtu)
            self.assertEqual((space["missing"], space["unique"]), (0, messages * size // roce_mtu))
            self.assertEqual(space["goodput_bytes"], messages * size)
            self.assertEqual(flow["pmtu"], roce_mtu)
            data = sum(count for name, count in flow["opcodes"].items() if name.startswith(OPCODES[program]))
            self.assertGreaterEqual(data, messages * size // roce_mtu)

    def sent_under_new_psns(self, flow, rxe, asked, size, roce_mtu):
        """Messages that Soft-RoCE sent twice, each time under PSNs of its own; configs/lab/vm/README.md tells how it comes to.
        They are on the wire whole, and it takes two retries for each: what nobody retried was sent once."""
        more = flow["messages"] - asked
        if more:
            print(f"  Soft-RoCE sent {more} message(s) again under new PSNs; {rxe['completer_retry_err']} retries", flush=True)
        self.assertGreaterEqual(more, 0)
        self.assertLessEqual(2 * more, rxe["completer_retry_err"])
        whole = flow["message_bytes"]
        self.assertEqual((whole["count"], whole["min"], whole["max"]), (asked + more, size, size))
        self.assertEqual(flow["requests"]["unique"], (asked + more) * size // roce_mtu)
        return more

    def books_agree(self, program, report, rxe, gid):
        link = report["devices"]["wire"]["kernels"]["link"]["counters"]
        for place in ("near", "far"):
            inspect = report["devices"]["wire"]["kernels"][place]
            self.assertEqual((inspect["counters"]["rx_icrc_encapsulated"], inspect["counters"]["icrc_unverified"]), (0, 0))
            self.assertEqual([c["confirmed"] for c in inspect["connections"]], [True], "its ACKs paired both halves")
        for sender, receiver, before, behind, direction in (("left", "right", "near", "far", "forward"),
                                                            ("right", "left", "far", "near", "reverse")):
            sent, arrived = self.flow(report, before, sender, gid), self.flow(report, behind, sender, gid)
            self.assertEqual(sent["packets"], rxe[sender]["sent_pkts"])
            self.assertEqual(sent["packets"] - arrived["packets"], link[f"{direction}_drop_loss"])
            if program == "ibv_rc_pingpong":  # ends on its own: what comes after is for no QP, and not counted
                self.assertLessEqual(rxe[receiver]["rcvd_pkts"], arrived["packets"])
                continue
            self.assertEqual(arrived["packets"], rxe[receiver]["rcvd_pkts"])
            if "requests" in arrived:  # a go-back-N responder, and `inspect` in front of it
                self.assertEqual(arrived["requests"]["duplicate_request"], rxe[receiver]["duplicate_request"])

    def without_loss(self, programs, roce_mtu):
        for program in programs:
            with self.subTest(program, roce_mtu=roce_mtu):
                report, rxe = self.exchange(program, roce_mtu)
                for place in ("near", "far"):
                    totals = report["devices"]["wire"]["kernels"][place]["totals"]
                    self.assertEqual((totals["lost"], totals["out_of_order"], totals["duplicates"], totals["naks"]), (0, 0, 0, 0))
                self.assertEqual(rxe["left"]["out_of_seq_request"] + rxe["right"]["out_of_seq_request"], 0)
                self.assertEqual(report["devices"]["wire"]["counters"]["packets_dropped"], 0)

    def with_loss(self, programs, roce_mtu):
        for program in programs:
            with self.subTest(program, roce_mtu=roce_mtu):
                report, rxe = self.exchange(program, roce_mtu, LOSS_OF.get(program, LOSS))
                kernels = report["devices"]["wire"]["kernels"]
                drops = sum(kernels["link"]["counters"][f"{way}_drop_loss"] for way in ("forward", "reverse"))
                self.assertGreater(drops, 0)
                self.assertEqual(report["devices"]["wire"]["counters"]["packets_dropped"], drops)
                self.assertGreater(kernels["near"]["totals"]["retransmissions"] + kernels["far"]["totals"]["retransmissions"], 0)
                self.assertGreater(sum(rxe[side]["completer_retry_err"] + rxe[side]["rcvd_seq_err"] for side in rxe), 0)

    def test_1_agents_pass_on_what_a_command_does(self):
        done = subprocess.run(self.left.command(["sh", "-c", "echo said; echo 'not well' >&2; exit 3"]), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "said\n", "not well\n"))
        done = subprocess.run(self.left.command(["echo", "$HOME *", "a  b"]), capture_output=True, text=True)
        self.assertEqual(done.stdout, "$HOME * a  b\n", "words are words: no shell reads them")
        done = subprocess.run(self.left.command(["sh", "-c", "echo begun; sleep 60"], seconds=1), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (124, "begun\n"))
        talks = subprocess.Popen(self.left.command(["sh", "-c", "trap 'echo ended >&2; exit 5' TERM; printf begun; sleep 60 & wait"]),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(talks.stdout.read(5), "begun", "output comes as it is printed")
        talks.terminate()
        # Once or twice: timeout(1), which runs the command, tells it, and then its process group.
        self.assertIn(talks.communicate(timeout=30)[1], ("ended\n", "ended\nended\n"), "the command has the signal")
        self.assertEqual(talks.returncode, 5)
        asked = subprocess.Popen(self.left.command(["sh", "-c", "sleep 2; echo stale"], seconds=5), stdout=subprocess.DEVNULL)
        asked.kill()  # nobody waits for this answer any more
        asked.wait()
        self.assertEqual([self.left.run("echo", word) for word in "abc"], ["a\n", "b\n", "c\n"])
        size = 1 << 20
        self.assertEqual(len(self.left.run("sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")), size)

    def test_2_without_loss(self):
        self.without_loss([name for name in PROGRAMS if name != "ib_send_bw"], 1024)  # pingpong's are SENDs, too

    def test_3_with_loss(self):
        self.with_loss(PROGRAMS, 1024)

    def test_4_jumbo_frames(self):
        for machine in (self.left, self.right):
            machine.set_mtu(4200)
        self.without_loss(("ibv_rc_pingpong", "ib_read_bw"), 4096)
        self.with_loss(("ib_write_bw",), 4096)

    def test_5_a_capture_beside_the_wire_and_ipv6(self):
        tool = [sys.executable, str(bed.ROOT / "tests" / "lab" / "wire_tool.py"), "receive"]
        captures = {side: self.folder / f"{side}.pcap" for side in ("left", "right")}
        receivers = [subprocess.Popen(tool + [machine.tap, captures[machine.name]], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
                     for machine in (self.left, self.right)]
        for receiver in receivers:
            self.assertEqual(receiver.stdout.readline(), "ready\n")
        report, _ = self.exchange("ibv_rc_pingpong", gid=IPV6_GID)
        for receiver in receivers:
            receiver.communicate(timeout=60)  # its standard input ends: so does it
        for side, place in (("left", "near"), ("right", "far")):
            packets = [p for p in (parse(frame) for _, _, frame in read_pcap(captures[side])[0]) if p]
            self.assertEqual(len(packets), self.flow(report, place, side, IPV6_GID)["packets"])
            self.assertEqual({p["icrc_ok"] for p in packets}, {True})
            self.assertEqual({p["version"] for p in packets}, {6})


if __name__ == "__main__":
    bed.main()
