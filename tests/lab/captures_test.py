#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures as ports of `rocebox run`: complete, unchanged, in order, never early; and it ends with them."""
import json
import math
import pathlib
import random
import signal
import struct
import subprocess
import tempfile
import unittest

import bed
from bed import write_pcap
from wire_tool import read_pcap

WHY_NOT = bed.why_not()
MILLISECOND = 10**6


def frame(number, size=200):
    """An Ethernet frame of IPv4 between two of many hosts, with its number in it."""
    head = bytes.fromhex("020000000002020000000001" "0800" "45000000" "00000000" "40fd0000")
    return (head + bytes([10, 0, number % 7, 1, 10, 0, number % 5, 2]) + struct.pack(">I", number)).ljust(size, b"\xa5")


def numbered(count, gap, start=1_700_000_000 * 10**9):
    draw = random.Random(count)
    at, records = start, []
    for number in range(count):
        records.append((at, 200, frame(number)))
        at += draw.randrange(2 * gap)
    return records


class CaptureToCapture(unittest.TestCase):
    """Needs no privilege."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rocebox-captures-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def config(self, ports, path="a <-> z", more=""):
        file = self.dir / "run.yaml"
        file.write_text(f"devices: {{bump: {{path: {path}}}}}\nports:\n{ports}\npool: {{small: 16384, large: 2048}}\n{more}")
        return file

    def run_it(self, ports, *words, status=0, path="a <-> z", more="", stdin=None):
        report = self.dir / "report.json"
        done = subprocess.run([bed.ROCEBOX, "run", str(self.config(ports, path, more)), "--json", str(report), *words],
                              capture_output=True, text=True, timeout=bed.HANGS, stdin=stdin)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if status == 2:
            return done.stderr
        report = json.loads(report.read_text()) if report.exists() else {}
        if report:
            bed.check_books(self, report)
        return report if status == 0 else done.stderr

    def check_pace(self, pace, factor):
        records = numbered(400, 2 * MILLISECOND)
        write_pcap(self.dir / "in.pcap", records)
        report = self.run_it(f"  a: {{pcap: {{in: in.pcap, pace: {pace}}}}}\n  z: {{pcap: {{out: out.pcap}}}}")
        arrived, _ = read_pcap(self.dir / "out.pcap")
        self.assertEqual([held for _, _, held in arrived], [held for _, _, held in records])
        times = [at for at, _, _ in arrived]
        self.assertEqual(times, sorted(times))
        port = report["ports"][0]
        self.assertEqual(port["pacing_packets"], len(records))
        self.assertLessEqual(port["pacing_p50_ns"], port["pacing_p99_ns"])
        self.assertLessEqual(port["pacing_p999_ns"], port["pacing_max_ns"])
        # None is early by the absolute schedule, to the nanosecond: how late the machine let them be is not ours.
        for (sent, _, _), at in zip(records, times):
            due = (sent - records[0][0]) / factor
            self.assertGreaterEqual(at, report["run"]["started_ns"] + math.floor(due))
        schedule = (records[-1][0] - records[0][0]) / factor
        self.assertGreaterEqual(report["run"]["elapsed_ns"], schedule)
        return report

    def test_as_captured(self):
        self.check_pace("as_captured", 1)

    def test_ten_times_as_fast(self):
        self.check_pace("10x", 10)

    def test_half_as_fast(self):
        self.check_pace("0.5x", 0.5)

    def test_as_fast_as_possible_loses_nothing(self):
        for name in ("multi_qp.pcap", "rc_read_mtu4096.pcap"):
            with self.subTest(name):
                report = self.run_it(f"  a: {{pcap: {{in: {bed.CAPTURES / name}, pace: max, loop: 20}}}}\n"
                                     "  z: {pcap: {out: out.pcapng}}", path="a <-> inspect <-> z")
                sent = [held for _, _, held in read_pcap(bed.CAPTURES / name)[0]] * 20
                arrived, _ = read_pcap(self.dir / "out.pcapng")
                self.assertEqual([held for _, _, held in arrived], sent)
                self.assertEqual(sum(port["tx_full"] for port in report["ports"]), 0)
                self.assertNotIn("pacing_packets", report["ports"][0])
                self.assertEqual(report["inputs"][0]["packets"], len(sent))

    def test_two_shards_lose_nothing_and_keep_flows_in_order(self):
        records = [(number, 200, frame(number)) for number in range(30000)]
        write_pcap(self.dir / "in.pcap", records)
        report = self.run_it("  a: {pcap: {in: in.pcap, pace: max}}\n  z: {pcap: {out: out.pcap}}", "--cores", "0,1",
                             more="live: {idle: pause}\n")
        self.assertEqual(report["run"]["spread_by"], "software")
        arrived = [held for _, _, held in read_pcap(self.dir / "out.pcap")[0]]
        self.assertEqual(report["run"]["drop_handover_full"], 0)
        self.assertEqual(len(arrived), len(records))
        flows = {}
        for held in arrived:
            flows.setdefault(held[26:34], []).append(struct.unpack_from(">I", held, 34)[0])
        self.assertEqual(len(flows), 35)
        for numbers in flows.values():
            self.assertEqual(numbers, sorted(numbers))

    def test_a_loop_goes_on_in_time(self):
        records = numbered(20, 5 * MILLISECOND)
        write_pcap(self.dir / "in.pcap", records)
        report = self.run_it("  a: {pcap: {in: in.pcap, loop: 3}}\n  z: {pcap: {out: out.pcap}}")
        arrived, _ = read_pcap(self.dir / "out.pcap")
        self.assertEqual([held for _, _, held in arrived], [held for _, _, held in records] * 3)
        self.assertGreaterEqual(report["run"]["elapsed_ns"], 3 * (records[-1][0] - records[0][0]))

    def test_snapped_packets_keep_their_length_on_the_wire(self):
        records = [(number * MILLISECOND, 1500 + number, frame(number, 64)) for number in range(50)]
        write_pcap(self.dir / "in.pcap", records)
        for out in ("out.pcap", "out.pcapng"):
            report = self.run_it(f"  a: {{pcap: {{in: in.pcap}}}}\n  z: {{pcap: {{out: {out}}}}}")
            self.assertEqual([r[1:] for r in read_pcap(self.dir / out)[0]], [r[1:] for r in records])
        self.assertEqual(report["inputs"][0]["snapped"], len(records))

    def test_both_sides_of_one_trace_share_its_time(self):
        records = numbered(200, MILLISECOND)
        write_pcap(self.dir / "in.pcap", records)
        self.run_it("  a: {pcap: {in: in.pcap, filter: src net 10.0.0.0/24, out: both.pcapng}}\n"
                    "  z: {pcap: {in: in.pcap, filter: not src net 10.0.0.0/24, out: both.pcapng}}")
        arrived, _ = read_pcap(self.dir / "both.pcapng")
        self.assertEqual(sorted(held for _, _, held in arrived), sorted(held for _, _, held in records))
        for side in (True, False):
            pick = [h for _, _, h in records if (h[28] == 0) == side]
            self.assertEqual([h for _, _, h in arrived if (h[28] == 0) == side], pick)

    def test_what_a_link_holds_leaves_before_the_end(self):
        write_pcap(self.dir / "in.pcap", numbered(100, MILLISECOND // 10))
        report = self.run_it("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: out.pcap}}",
                             path="a <-> link <-> z, kernels: {link: {delay: 300ms}}")
        self.assertEqual(len(read_pcap(self.dir / "out.pcap")[0]), 100)
        self.assertEqual(report["run"]["packets_held"], 0)

    def test_an_interrupt_ends_it(self):
        write_pcap(self.dir / "in.pcap", numbered(3000, 10**9))
        config = self.config("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: out.pcap}}")
        run = subprocess.Popen([bed.ROCEBOX, "run", str(config), "--json", "-"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (run.kill(), run.communicate()) if run.poll() is None else None)
        self.assertIn("2 port(s)", run.stderr.readline())
        run.send_signal(signal.SIGINT)
        out, error = run.communicate(timeout=bed.HANGS)
        self.assertEqual(run.returncode, 0, error)
        report = json.loads(out)
        bed.check_books(self, report)
        port = report["ports"][0]
        self.assertGreater(port["rx_unsent"], 0, "read ahead and let go")
        self.assertEqual(len(read_pcap(self.dir / "out.pcap")[0]), port["rx_packets"])

    def test_standard_input(self):
        records = numbered(50, MILLISECOND)
        with open(write_pcap(self.dir / "in.pcap", records)) as stdin:
            cat = subprocess.Popen(["cat"], stdin=stdin, stdout=subprocess.PIPE)
            self.run_it("  a: {pcap: {in: '-', pace: max}}\n  z: {pcap: {out: out.pcap}}", stdin=cat.stdout)
            cat.communicate()
        self.assertEqual(len(read_pcap(self.dir / "out.pcap")[0]), 50)

    def test_a_broken_capture_ends_the_run_and_leaves_no_output(self):
        path = write_pcap(self.dir / "in.pcap", numbered(20, 1000))
        data = bytearray(path.read_bytes())
        struct.pack_into("=I", data, 24 + 10 * 216 + 8, 0x7FFFFFFF)  # the length of record 11
        path.write_bytes(data)
        said = self.run_it("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: out.pcap}}", status=1)
        self.assertIn("record 11", said)
        self.assertFalse((self.dir / "out.pcap").exists())
        self.assertEqual([p.name for p in self.dir.iterdir() if "part" in p.name], [])

    def test_a_full_disk_ends_the_run(self):
        write_pcap(self.dir / "in.pcap", numbered(2000, 1000))
        said = self.run_it("  a: {pcap: {in: in.pcap, loop: 0, pace: max}}\n  z: {pcap: {out: /dev/full}}", status=1)
        self.assertIn("/dev/full: cannot be written", said)

    def test_the_same_configuration_replays(self):
        records = numbered(100, MILLISECOND)
        write_pcap(self.dir / "in.pcap", records)
        config = self.config("  a: {pcap: {in: in.pcap, pace: 10x}}\n  z: {pcap: {out: out.pcap}}")
        subprocess.run([bed.ROCEBOX, "replay", str(config)], check=True, capture_output=True)
        self.assertEqual(read_pcap(self.dir / "out.pcap")[0], records)

    def test_refusals(self):
        write_pcap(self.dir / "in.pcap", numbered(5, 1000))
        out = "  z: {pcap: {out: out.pcap}}"
        for ports, *said in (
                ("  a: {pcap: {in: in.pcap, pace: fast}}\n" + out, "run.yaml:3:", "`as_captured`, `max`", "`fast`"),
                ("  a: {pcap: {in: in.pcap, pace: 0x}}\n" + out, "run.yaml:3:", "0.001x"),
                ("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: out.pcap, pace: max}}", "run.yaml:4:", "no `in:`"),
                ("  a: {pcap: {in: nosuch.pcap}}\n" + out, "run.yaml:3:", "nosuch.pcap", "No such file"),
                ("  a: {pcap: {in: '-', loop: 2}}\n" + out, "run.yaml:3:", "once only", "loop"),
                ("  a: {pcap: {in: in.pcap, pace: max}}\n  z: {pcap: {in: in.pcap, filter: tcp}}", "run.yaml:4:",
                 "share both"),
                ("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: in.pcap}}", "in.pcap", "an input of port"),
                ("  a: {pcap: {out: a.pcap}}\n" + out, "packets come from nowhere"),
                ("  a: {pcap: {in: in.pcap}}\n  z: {pcap: {out: nosuch/out.pcap}}", "nosuch/out.pcap")):
            with self.subTest(ports):
                error = self.run_it(ports, status=2)
                for word in said:
                    self.assertIn(word, error)
                self.assertLessEqual(error.count("\n"), 2, error)
                self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["in.pcap", "run.yaml"])


@unittest.skipIf(WHY_NOT, WHY_NOT)
class CaptureAndVeth(bed.BedTest):
    mtu = 4500

    def send(self, pace, name="rc_read_mtu4096.pcap"):
        """Sends a capture into the right host; returns what arrived there, and the run's report."""
        arrived = self.dir / "arrived.pcap"
        receiver = self.receiver(self.right, arrived)
        run = self.start_with(f"  a: {{pcap: {{in: {bed.CAPTURES / name}, pace: {pace}}}}}\n"
                              f"  z: {{af_packet: {self.right_end}}}\n")
        count = len(read_pcap(bed.CAPTURES / name)[0])
        self.until(lambda: self.ask(run, "/rocebox/port", "bump.a")["live"]["rx_packets"] == count, "the capture has come in")
        report = self.stop(run)
        self.finish(receiver)
        return bed.roce_frames(arrived), report

    def test_a_capture_arrives_at_a_host(self):
        for name in ("rc_read_mtu4096.pcap", "multi_qp.pcap"):
            sent = [held for _, _, held in read_pcap(bed.CAPTURES / name)[0]]
            for pace in ("as_captured", "10x", "max"):
                with self.subTest(f"{name} {pace}"):
                    arrived, report = self.send(pace, name)
                    self.assertEqual(arrived, sent)
                    self.assertEqual(report["ports"][0]["rx_packets"], len(sent))

    def test_what_a_host_sends_is_captured_with_whole_checksums(self):
        run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{pcap: {{out: {self.dir}/out.pcap}}}}\n")
        self.within(self.left, "ip", "neighbour", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:02", "dev", "eth")
        self.within(self.left, bed.PYTHON, "-c", "import socket\n"
                    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                    "for n in range(20): s.sendto(b'x' * (100 + n), ('10.99.0.2', 5000))\n")
        self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth", str(bed.CAPTURES / "rc_write.pcap"))
        self.settle(run)
        self.stop(run)
        arrived = [held for _, _, held in read_pcap(self.dir / "out.pcap")[0]]
        roce = bed.roce_frames(bed.CAPTURES / "rc_write.pcap")
        self.assertEqual([f for f in arrived if f in set(roce)], roce)
        datagrams = [f for f in arrived if f[12:14] == b"\x08\x00" and f[36:38] == struct.pack(">H", 5000)]
        self.assertEqual(len(datagrams), 20)
        for datagram in datagrams:
            pseudo = datagram[26:34] + bytes([0, 17]) + datagram[38:40]
            data = pseudo + datagram[34:] + bytes(len(datagram) % 2)
            total = sum(struct.unpack(f">{len(data) // 2}H", data))
            while total >> 16:
                total = (total & 0xFFFF) + (total >> 16)
            self.assertEqual(total, 0xFFFF)


if __name__ == "__main__":
    bed.finish.main()
