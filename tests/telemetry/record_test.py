#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox trace` and `rocebox capture`: what they write against what passed, and what they leave alone."""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import unittest

import kit

sys.path.insert(0, str(kit.ROOT / "tests" / "replay"))
from wire import read_pcap  # noqa: E402

# All packets are held for a while, so that who comes when the run has begun still sees every one of them pass.
HOLD = """devices:
  near: {path: a <-> link <-> b, kernels: {link: {delay: %ds}}}
  far: {path: c <-> link <-> d, kernels: {link: {forward: {loss: 10%%}}}}
links:
  haul: {between: [near.b, far.c], delay: 1ms}
"""
FLOOD = """devices: {bump: {path: a <-> link <-> z, kernels: {link: {forward: {loss: 10%}}}}}
ports: {a: {devargs: 'net_null0,size=64'}, z: {devargs: 'net_null1,size=64,no-rx=1'}}
pool: {small: 8192, large: 512, giant: 16}
"""
PACKETS = 900  # fewer than two shards can hand over in one burst


def frames(path):
    return [frame for _, _, frame in read_pcap(path)[0]]


def statistics_blocks(path):
    """What the statistics blocks of a pcapng say was dropped (isb_osdrop)."""
    data, at, dropped = path.read_bytes(), 0, []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 5:
            code, size = struct.unpack_from("<HH", data, at + 20)
            assert (code, size) == (7, 8)
            dropped.append(struct.unpack_from("<Q", data, at + 24)[0])
        at += length
    return dropped


class RecordTest(kit.RunTest):
    def setUp(self):
        super().setUp()
        records, whole, at = [], self.capture.read_bytes(), 24
        while at < len(whole) and len(records) < PACKETS:
            size = 16 + struct.unpack_from("<I", whole, at + 8)[0]
            records.append(whole[at:at + size])
            at += size
        self.capture.write_bytes(whole[:24] + b"".join(records))

    def flood(self, *words, text=FLOOD):
        config = self.dir / "flood.yaml"
        config.write_text(text)
        return self.start(config, "--name", "r", *words)[0]

    def hold(self, *words, seconds=3):
        return self.start(self.config(top=HOLD % seconds), "--name", "r", *words)[0]

    def record_all(self, *recordings, run_words=()):
        """A run, and its recorders, of which the last runs before a packet has passed. On a busy computer they take their time
        to come: then all begins anew, and packets are held for longer."""
        for seconds in (3, 10, 30, 90):
            run = self.hold(*run_words, seconds=seconds)
            children = [self.recorder(*words) for words in recordings]
            if self.all_are_held():
                return run, children
            self.stop(run)
            for child in children:
                child.communicate(timeout=60)
        self.fail("packets were gone before the recorders came")

    def all_are_held(self):
        """Whether all packets have come and none has passed, by numbers that each core has made after this was asked."""
        with kit.Client(self.folder("r") / kit.SOCKET) as client:
            def loops():
                return {number: shard["loops"] for number, shard in client.cmd("/rocebox/run")["shards"].items()}
            before = loops()
            self.wait_until(lambda: all(count > before[number] for number, count in loops().items()), "every core makes its numbers")
            counters = client.cmd("/rocebox/device", "near")["counters"]
            return counters["packets_in"] == counters["packets_held"] == PACKETS

    def recorder(self, *words):
        """A `rocebox trace` or `capture`, once it runs."""
        before = len(self.listed())
        child = self.child(kit.ROCEBOX, *words)
        self.wait_until(lambda: child.poll() is not None or len(self.listed()) > before, f"{words} did not begin")
        if child.poll():
            self.fail(child.stderr.read())
        return child

    def pipes(self):
        return [path.name for path in self.folder("r").iterdir() if path.is_fifo()]

    def listed(self):
        with kit.Client(self.folder("r") / kit.SOCKET) as client:
            rows = client.cmd("/rocebox/capture/list")
            return list(rows.values()) if isinstance(rows, dict) else rows

    def wait_until_passed(self):
        with kit.Client(self.folder("r") / kit.SOCKET) as client:
            self.wait_until(lambda: client.cmd("/rocebox/link", "haul")["counters"]["forward_delivered"] == PACKETS, "all pass")
            self.wait_until(kit.Rest(lambda: client.cmd("/rocebox/run")), "nothing moves")

    def end(self, child, how=signal.SIGINT, status=0):
        child.send_signal(how)
        out, error = child.communicate(timeout=60)
        self.assertEqual(child.returncode, status, error)
        return out, error

    def books(self, report, device):
        counters = report["devices"][device]["counters"]
        self.assertEqual(counters["packets_in"] + counters["packets_made"],
                         counters["packets_out"] + counters["packets_delivered"] + counters["packets_dropped"] + counters["packets_held"])
        return counters


class What(RecordTest):
    def check_against_what_passed(self, *words):
        port, middle, drops = (self.dir / name for name in ("port.pcapng", "middle.pcap", "drops.pcapng"))
        run, children = self.record_all(("capture", "r", "--port", "far.d:tx", "-w", port),
                                        ("capture", "r", "--port", "near.b", "-w", middle),
                                        ("capture", "r", "--drop", "far.link.forward_drop_loss", "-w", drops), run_words=words)
        self.wait_until_passed()
        for child in children:
            self.assertRegex(self.end(child)[1], r"^rocebox capture: \d+ packets, 0 lost\n$")
        report = self.stop(run)
        lost = report["devices"]["far"]["kernels"]["link"]["counters"]["forward_drop_loss"]
        self.assertGreater(lost, PACKETS // 20)
        sent, there = frames(self.capture), frames(self.dir / "run.yaml.there.pcap")
        self.assertEqual(len(sent), PACKETS)
        self.assertEqual(collections.Counter(frames(middle)), collections.Counter(sent))
        self.assertEqual(collections.Counter(frames(port)), collections.Counter(there))
        self.assertEqual(len(frames(drops)), lost)
        self.assertEqual(collections.Counter(frames(drops)) + collections.Counter(there), collections.Counter(sent))
        for file in (port, middle, drops):
            times = [at for at, _, _ in read_pcap(file)[0]]
            self.assertEqual(times, sorted(times))
        self.assertEqual(statistics_blocks(port), [0])
        self.books(report, "near")
        self.books(report, "far")
        self.assertEqual(report["run"]["pool_in_use"], report["run"]["pool_idle"], "every packet is back")
        return port, drops, sent, there

    def test_captures_have_what_passed_and_what_was_dropped_byte_for_byte(self):
        port, drops, sent, there = self.check_against_what_passed()
        self.assertEqual(frames(port), there, "in order")
        place = iter(sent)
        self.assertTrue(all(frame in place for frame in frames(drops)), "in order")
        if not shutil.which("tshark"):
            self.skipTest("tshark is not installed: interfaces, comments and directions were not read")
        for file, interface, direction, comment in ((port, "far.d", "0x00000002", r"far +leave d "),
                                                    (drops, "far.c", "", r"far\.link +drop forward_drop_loss ")):
            rows = subprocess.run(["tshark", "-r", str(file), "-T", "fields", "-e", "frame.interface_name", "-e",
                                   "frame.packet_flags_direction", "-e", "frame.comment"], capture_output=True, text=True, check=True)
            for row in rows.stdout.splitlines():
                name, flag, text = row.split("\t")
                self.assertEqual((name, flag), (interface, direction))
                self.assertRegex(text, comment)

    def test_and_over_two_shards(self):
        self.check_against_what_passed("--cores", "0,1")

    def test_filter_snap_and_count(self):
        qpn = struct.unpack(">I", b"\0" + next(f for f in frames(self.capture) if f[36:38] == b"\x12\xb7")[47:50])[0]
        file, few = self.dir / "filtered.pcapng", self.dir / "few.pcapng"
        run, children = self.record_all(("capture", "r", "--port", "far.c", "--filter", f"qpn={qpn}", "--snap", "60", "-w", file),
                                        ("capture", "r", "--port", "far.c:rx", "--count", "7", "-w", few))
        self.wait_until_passed()
        self.assertEqual(children[1].communicate(timeout=60)[1], "rocebox capture: 7 packets, 0 lost\n")
        self.end(children[0])
        self.stop(run)
        wanted = [f for f in frames(self.capture) if f[36:38] == b"\x12\xb7" and f[47:50] == struct.pack(">I", qpn)[1:]]
        self.assertGreater(len(wanted), 10)
        self.assertEqual(frames(file), [f[:60] for f in wanted])
        self.assertEqual([length for _, length, _ in read_pcap(file)[0]], [len(f) for f in wanted])
        self.assertEqual(frames(few), frames(self.capture)[:7])

    def test_the_trace_of_the_command_line_has_every_packet_from_the_first(self):
        text, packets = self.dir / "t.txt", self.dir / "t.pcapng"
        run = self.hold("--trace", "all", "--trace-out", text, "--trace-out", packets)
        self.wait_until_passed()
        report = self.stop(run)
        lines = text.read_text().splitlines()
        self.assertEqual(report["recordings"], [{"id": 1, "is": "trace", "of": "trace", "filter": "all", "files": f"{text}, {packets}",
                                                 "state": "done", "written": len(lines), "lost": 0}])
        self.assertEqual(sum(bool(re.search(r" near +arrive a ", line)) for line in lines), PACKETS)
        self.assertEqual(sum(bool(re.search(r" far\.link +drop forward_drop_loss ", line)) for line in lines),
                         report["devices"]["far"]["kernels"]["link"]["counters"]["forward_drop_loss"])
        self.assertEqual(len(frames(packets)), len(lines))


class OnAndOff(RecordTest):
    def test_a_trace_sees_what_passes_while_it_is_on(self):
        run = self.flood()
        first = self.rocebox("trace", "r", "--filter", "all", "--duration", "100ms").stdout.splitlines()
        second = self.rocebox("trace", "r", "--filter", "all", "--count", "10").stdout.splitlines()
        times = [float(line.split()[0]) for line in first]
        self.assertTrue(times)
        self.assertEqual(len(second), 10)
        self.assertGreater(float(second[0].split()[0]), times[-1], "the trace ended, and with it its lines")
        self.assertEqual([row["state"] for row in self.listed()], ["done", "done"], self.listed())
        self.books(self.stop(run), "bump")

    def test_more_than_can_be_written_is_lost_and_counted_and_packets_pass(self):
        run = self.flood()
        file = self.dir / "all.pcapng"
        children = [self.recorder("trace", "r", "--filter", "all", "-w", self.dir / f"{i}.txt") for i in range(2)]
        capture = self.recorder("capture", "r", "--port", "bump.a", "--drop", "all", "-w", file)
        with kit.Client(self.folder("r") / kit.SOCKET) as client:
            def passed():
                return client.cmd("/rocebox/port", "bump.z")["device"]["tx_packets"]
            before = passed()
            self.wait_until(lambda: self.listed()[2]["lost"] > 0, "nothing was lost")
            self.wait_until(lambda: passed() > before, "packets pass")
        for child in [capture] + children:
            said = self.end(child)[1]
            self.assertRegex(said, r"\d+ (packets|events), [1-9]\d* lost")
        row = next(row for row in self.listed() if row["is"] == "capture")
        self.assertEqual(len(frames(file)), row["written"])
        self.assertEqual(statistics_blocks(file), [row["lost"]])
        report = self.stop(run)
        self.books(report, "bump")

    def test_a_reader_that_sleeps_or_dies_ends_its_own_recording(self):
        run = self.flood()
        sleeper = self.recorder("capture", "r", "--port", "bump.a", "-w", self.dir / "sleeper.pcapng")
        sleeper.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: self.listed()[0]["state"] == "failed", "it does not read")
        self.assertIn("stopped reading", self.listed()[0]["error"])
        sleeper.send_signal(signal.SIGCONT)
        sleeper.communicate(timeout=60)
        self.assertEqual(sleeper.returncode, 1)
        dead = self.recorder("capture", "r", "--drop", "all", "-w", self.dir / "dead.pcapng")
        self.wait_until(lambda: not self.pipes(), "both sides have it open")
        dead.kill()
        self.wait_until(lambda: self.listed()[1]["state"] == "failed", "nobody reads")
        self.rocebox("capture", "r", "--port", "bump.z", "--count", "3", "-w", self.dir / "good.pcapng")
        self.assertEqual(len(frames(self.dir / "good.pcapng")), 3)
        self.assertEqual(self.pipes(), [], "no pipe is left")
        self.books(self.stop(run), "bump")

    def test_packets_of_a_wire_are_looked_at_while_a_capture_runs(self):
        run = self.flood(text=FLOOD.replace("a <-> link <-> z, kernels: {link: {forward: {loss: 10%}}}", "a <-> z"))
        client = self.client("r")

        def seen():
            return client.cmd("/rocebox/device", "bump")["counters"]["rx_not_ip"]
        self.assertEqual(seen(), 0, "a wire parses nothing")
        self.rocebox("capture", "r", "--port", "bump.z:tx", "--count", "500", "-w", self.dir / "z.pcapng")
        self.assertEqual(frames(self.dir / "z.pcapng"), [bytes(64)] * 500)
        self.wait_until(lambda: self.listed()[0]["state"] == "done", "the capture has ended")

        def more_pass():
            before = client.cmd("/rocebox/device", "bump")["counters"]["packets_in"]
            self.wait_until(lambda: client.cmd("/rocebox/device", "bump")["counters"]["packets_in"] > before + 10_000, "packets pass")
        more_pass()  # the numbers are made every now and then: these are of the time after the capture
        after = seen()
        self.assertGreaterEqual(after, 500)
        more_pass()
        self.assertEqual(seen(), after, "and it is a wire again")
        counters = self.books(self.stop(run), "bump")
        self.assertGreater(counters["packets_in"], after)

    def test_the_end_of_the_run_completes_what_is_being_captured(self):
        run = self.flood()
        file = self.dir / "c.pcapng"
        capture = self.recorder("capture", "r", "--drop", "all", "-w", file)
        self.stop(run)
        error = capture.communicate(timeout=60)[1]
        self.assertEqual(capture.returncode, 0, error)
        records, cut = read_pcap(file)
        self.assertFalse(cut)
        self.assertEqual(len(statistics_blocks(file)), 1, "complete to its end")

    def test_what_leaves_while_the_run_drains_is_captured(self):
        file = self.dir / "c.pcapng"
        run, [capture] = self.record_all(("capture", "r", "--port", "far.d:tx", "-w", file))
        run.send_signal(signal.SIGINT)  # all packets are held still
        report = self.stop(run, signal.SIGCONT)
        left = next(port["tx_packets"] for port in report["ports"] if port["port"] == "far.d")
        self.assertGreater(left, 0)
        error = capture.communicate(timeout=60)[1]
        self.assertEqual(capture.returncode, 0, error)
        self.assertEqual(frames(file), frames(self.dir / "run.yaml.there.pcap"))
        self.assertEqual(len(frames(file)), left)


class Refusals(RecordTest):
    def test_each_says_what_is_wrong_and_records_nothing(self):
        run = self.flood()
        for words, said in (
                (("capture", "r", "--port", "bump.q", "-w", "x"), "did you mean `bump.a`"),
                (("capture", "r", "--port", "bump.a:up", "-w", "x"), "`rx` or `tx`"),
                (("capture", "r", "--drop", "nosuch", "-w", "x"), "bump.link.forward_drop_burst_loss"),
                (("capture", "r", "--drop", "all"), "-w FILE is needed"),
                (("capture", "r", "-w", "x"), "--port DEVICE.PORT"),
                (("capture", "r", "--port", "bump.a", "-w", self.dir / "no" / "x"), "No such file"),
                (("capture", "r", "--port", "bump.a", "--filter", "frob", "-w", "x"), "unknown word `frob`"),
                (("capture", "r", "--port", "bump.a", "--duration", "soon", "-w", "x"), "--duration soon"),
                (("capture", "nosuch", "--port", "bump.a", "-w", "x"), "no run `nosuch`"),
                (("trace", "r"), "--filter is needed")):
            with self.subTest(words):
                done = self.rocebox(*words, status=2, cwd=self.dir)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertFalse((self.dir / "x").exists())
        self.assertEqual(self.listed(), [])
        self.stop(run)

    def test_what_the_run_is_made_from_is_no_output(self):
        run = self.flood("--trace", "qpn=0xfffff1", "--trace-out", self.dir / "trace.txt")
        config = self.dir / "flood.yaml"
        (self.dir / "hard").hardlink_to(config)
        text = config.read_text()
        for file, what in ((config, "the configuration"), (self.dir / "hard", "the configuration"),
                           (self.dir / "trace.txt", "a trace")):
            for words in (("capture", "r", "--drop", "all", "--count", "1", "-w", file),
                          ("trace", "r", "--filter", "all", "--count", "1", "-w", file)):
                self.assertIn(f"{file}: is {what} of the run", self.rocebox(*words, status=2).stderr)
            answer = self.client("r").cmd("/rocebox/capture/start", json.dumps({"drops": ["all"], "files": [str(file)]}))
            self.assertIn(f"is {what} of the run", "".join(answer["refused"]))
        self.assertEqual(len(self.listed()), 1, "the run's own")
        self.stop(run)
        self.assertEqual(config.read_text(), text)

    def test_a_pipe_that_nobody_reads_does_not_keep_the_command(self):
        run = self.flood()
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        child = self.child(kit.ROCEBOX, "capture", "r", "--drop", "all", "-w", fifo)
        self.wait_until(lambda: int(re.search(r"SigBlk:\s+(\w+)", pathlib.Path(f"/proc/{child.pid}/status").read_text()).group(1), 16)
                        >> (signal.SIGTERM - 1) & 1, "it listens")
        self.assertIn("nobody came to read", self.end(child, signal.SIGTERM, status=1)[1])
        self.stop(run)

    def test_there_is_a_bound(self):
        run = self.flood()
        children = [self.recorder("capture", "r", "--drop", "bump.drop_hop_limit", "-w", self.dir / f"{i}.pcapng") for i in range(8)]
        self.assertIn("8 traces and captures are running",
                      self.rocebox("capture", "r", "--drop", "all", "-w", self.dir / "x", status=2).stderr)
        self.assertEqual(self.rocebox("capture", "r", "--list").stdout.count("running"), 8)
        self.assertEqual([row["files"] for row in self.listed()], [str(self.dir / f"{i}.pcapng") for i in range(8)])
        self.rocebox("capture", "r", "--stop", self.listed()[3]["id"])
        self.assertEqual(children[3].communicate(timeout=60)[1], "rocebox capture: 0 packets, 0 lost\n")
        self.recorder("capture", "r", "--drop", "all", "--count", "1", "-w", self.dir / "x").communicate(timeout=60)
        for child in children[:3] + children[4:]:
            self.end(child)
        self.assertIn("no trace or capture number 77", self.rocebox("capture", "r", "--stop", "77", status=1).stderr)
        self.stop(run)

    def test_the_endpoints_want_an_object(self):
        run = self.flood()
        client = self.client("r")
        for parameters, said in (("7", "JSON object"), ('{"frob":1}', "unknown word `frob`"), ('{"count":-1}', "whole number"),
                                 ('{"drops":["all"]}', "a file is needed"),
                                 (json.dumps({"drops": ["all"], "files": [str(self.dir / "no" / "x")]}), "No such file")):
            answer = client.cmd("/rocebox/capture/start", parameters)
            self.assertIn(said, "".join(answer["refused"]))
        self.stop(run)


if __name__ == "__main__":
    kit.main()
