#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every run ends by one signal, whatever it is doing or waiting for, and by a second one at once."""
import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.dont_write_bytecode = True
from common import ROCEBOX, finish  # noqa: E402
from files_test import CAPTURE, FilesTest, listens, pcapng, state, wait_for, worked  # noqa: E402

# Packets without end, each of which takes no input: one per microsecond.
GENERATOR = """devices: {s: {switch: {ports: [a, b], packet_generator: [{port: a, every: 1us}],
  forward: {learning: false, macs: [{mac: '02:00:00:00:00:02', ports: [b]}]}}}}
"""
# Two switches joined twice: what is flooded goes round for ever, once in 20 ns.
STORM = """drain: 3600s
devices:
  x: {switch: {ports: [h, p, q]}}
  y: {switch: {ports: [p, q]}}
links: {p: {between: [x.p, y.p], delay: 10ns}, q: {between: [x.q, y.q], delay: 10ns}}
"""


class Inner:
    """The only child of a process."""

    def __init__(self, outer):
        self.pid = int(pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text())

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class EveryRunEnds(FilesTest):
    """One signal ends a run, whatever it is doing; a second one of either kind ends the process."""

    def start(self, *words, ready=None, stdin=subprocess.DEVNULL):
        process = subprocess.Popen([ROCEBOX, *map(str, words)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_for(lambda: process.poll() is not None or (listens(process, signal.SIGTERM) and (not ready or ready(process))))
        self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
        return process

    def ends(self, process, number, status):
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, stderr)
        return stdout, stderr

    def computing(self, seconds=0.5):
        return lambda process: worked(process) > seconds * os.sysconf("SC_CLK_TCK")

    def years_apart(self):
        path = self.dir / "years.pcapng"
        path.write_bytes(pcapng([(1, 0, struct.pack("<HHB3x", 9, 1, 0))], [(0, 0, bytes(60)), (0, 10**9, bytes(60))]))
        return path

    def test_time_that_goes_on_without_input(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = self.start("replay", self.config(GENERATOR), "--in", f"s.a={self.years_apart()}", ready=self.computing())
            self.assertIn("interrupted yes", self.ends(run, number, 1)[0])

    def test_packets_that_go_round_while_the_run_drains(self):
        broadcast = self.dir / "one.pcapng"
        broadcast.write_bytes(pcapng([(1, 0, b"")], [(0, 0, b"\xff" * 6 + bytes(54))]))
        run = self.start("replay", self.config(STORM), "--in", f"x.h={broadcast}", ready=self.computing())
        self.assertIn("interrupted yes", self.ends(run, signal.SIGTERM, 1)[0])

    def test_and_when_the_signal_came_before(self):
        broadcast = self.dir / "one.pcapng"
        broadcast.write_bytes(pcapng([(1, 0, struct.pack("<HHB3x", 9, 1, 0))], [(0, 0, b"\xff" * 6 + bytes(54)), (0, 10**9, bytes(60))]))
        run = self.start("replay", self.config(STORM), "--in", f"x.h={broadcast}", ready=self.computing(2))
        stdout, stderr = self.ends(run, signal.SIGINT, 1)
        self.assertIn("interrupted yes", stdout)
        self.assertIn("were still held when the run was interrupted", stderr)

    def test_a_pipe_that_nobody_reads(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        before = sorted(self.dir.iterdir())
        for words in (["--out", f"b={fifo}"], ["--json", fifo], ["--trace", "all", "--trace-out", fifo]):
            run = self.start(*self.feed, *words)
            self.assertIn("fifo: cannot be written: nobody came to read", self.ends(run, signal.SIGTERM, 1)[1])
            self.assertEqual(sorted(self.dir.iterdir()), before)
        live = self.config("devices: {d: {path: a <-> b}}\nports: {a: {net_null: {}}, b: {net_null: {}}}\n", "live.yaml")
        run = self.start("run", live, "--json", fifo, "--", "--no-telemetry")
        self.assertIn("fifo: cannot be written: nobody came to read", self.ends(run, signal.SIGINT, 1)[1])

    def test_a_reader_that_has_stopped(self):
        fifo, big = self.dir / "fifo", self.dir / "big.pcap"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        data = CAPTURE.read_bytes()
        big.write_bytes(data[:24] + data[24:] * (1 + (4 << 20) // len(data)))
        room = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
        run = self.start("replay", self.bump, "--in", f"a={big}", "--out", f"b={fifo}",
                         ready=lambda _: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0] == room)
        self.assertIn("fifo: cannot be written: its reader has stopped reading", self.ends(run, signal.SIGTERM, 1)[1])

    def test_a_second_signal_of_the_other_kind_ends_at_once(self):
        """The live run's packets would leave in minutes."""
        config = self.config(f"""drain: 3600s
devices: {{d: {{path: a <-> link <-> b, kernels: {{link: {{rate: 10kbps}}}}}}}}
ports: {{a: {{pcap: {{in: {self.capture}, pace: max}}}}, b: {{pcap: {{out: {self.dir}/held.pcap}}}}}}
""")
        for first, second in ((signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
            run = self.start("run", config, "--", "--no-telemetry")
            while "shard(s)" not in run.stderr.readline():
                self.assertIsNone(run.poll())
            run.send_signal(first)
            wait_for(lambda: not int(state(run)["ShdPnd"], 16))
            time.sleep(0.25)  # sooner it would be the same wish
            self.ends(run, second, -second)

    def test_a_second_signal_ends_the_first_process_of_a_container(self):
        """Which no signal kills that it does not handle."""
        ways = (["unshare", "-pf", "--mount-proc"], ["unshare", "-Urpf", "--mount-proc"])
        container = next((way for way in ways if subprocess.run([*way, "true"], capture_output=True).returncode == 0), None)
        if not container:
            self.skipTest("no PID namespace can be made here (`unshare -pf`)")
        config = self.config(f"""drain: 3600s
devices: {{d: {{path: a <-> link <-> b, kernels: {{link: {{rate: 10kbps}}}}}}}}
ports: {{a: {{pcap: {{in: {self.capture}, pace: max}}}}, b: {{pcap: {{out: {self.dir}/held.pcap}}}}}}
""")
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
            outer = subprocess.Popen([*container, ROCEBOX, "run", config, "--", "--no-telemetry"], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(outer.communicate)
            self.addCleanup(outer.kill)
            while "shard(s)" not in (line := outer.stderr.readline()):
                self.assertTrue(line, "the run has ended")
            inner = Inner(outer)
            self.addCleanup(inner.kill)  # the outer one goes with it
            self.assertEqual(state(inner)["NSpid"].split()[-1], "1")
            os.kill(inner.pid, first)
            wait_for(lambda: not int(state(inner)["ShdPnd"], 16))
            time.sleep(0.25)
            self.assertIsNone(outer.poll(), "what is held leaves in minutes")
            os.kill(inner.pid, second)
            outer.communicate(timeout=60)
            self.assertEqual(outer.returncode, 128 + second)

    def test_a_standard_input_that_is_closed(self):
        done = subprocess.run(["bash", "-c", '"$@" <&-', "-", ROCEBOX, "replay", self.bump, "--in", "a=-"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("Bad file descriptor", done.stderr)
        done = subprocess.run(["bash", "-c", '"$@" >&-', "-", ROCEBOX, *map(str, self.feed)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        done = subprocess.run(["bash", "-c", '"$@" <&- 2>&-', "-", ROCEBOX, *map(str, self.feed)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0)

    def test_what_a_killed_run_left_is_named(self):
        out, fifo = self.dir / "o.pcap", self.dir / "in"
        os.mkfifo(fifo)
        run = self.start("replay", self.bump, "--in", f"a={fifo}", "--out", f"b={out}",
                         ready=lambda p: (self.dir / "o.pcap.part").exists())
        _, errors = self.rocebox(*self.feed, "--out", f"b={out}")
        self.assertNotIn(".part", errors, "it is being written")
        self.ends(run, signal.SIGKILL, -signal.SIGKILL)
        _, errors = self.rocebox(*self.feed, "--out", f"b={out}")
        self.assertIn(f"{out}.part: was left by a run that was killed", errors)
        self.assertIn("it may be removed", errors)


if __name__ == "__main__":
    finish.main()
