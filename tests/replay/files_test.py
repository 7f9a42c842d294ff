#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a run reads and writes: pipes and interrupts, files that must not be harmed, captures that others have made."""
import fcntl
import gzip
import json
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time
import unittest

from common import CAPTURES, ROCEBOX, RoceboxTest, tshark

BUMP = "devices: {tap: {path: a <-> b}}\n"
CAPTURE = CAPTURES / "rc_write.pcap"  # 159 packets
PACKETS = 159


def records(path):
    """(seconds, microseconds, frame) of a little-endian pcap."""
    data, at = path.read_bytes(), 24
    while at < len(data):
        seconds, micros, held, _ = struct.unpack_from("<IIII", data, at)
        yield seconds, micros, data[at + 16:at + 16 + held]
        at += 16 + held


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(interfaces, packets):
    """interfaces: (link type, snap length, options); packets: (interface, ticks, frame)."""
    parts = [block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))]
    parts += [block(1, struct.pack("<HHI", link, 0, snap) + options) for link, snap, options in interfaces]
    for interface, ticks, frame in packets:
        parts.append(block(6, struct.pack("<5I", interface, ticks >> 32, ticks & 0xffffffff, len(frame), len(frame)) + frame))
    return b"".join(parts)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_waiting(process, number):
    """Whether it listens to the signal, has read all that its input holds, and sleeps."""
    left = struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)))[0]
    return listens(process, number) and left == 0 and state(process)["State"].split()[0] == "S"


def state(process):
    return dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())


def listens(process, number):
    """Whether its first thread has left the signal to the one that waits for it."""
    return int(state(process)["SigBlk"], 16) >> (number - 1) & 1


def worked(process):
    """Clock ticks that it has computed."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class FilesTest(RoceboxTest):
    def setUp(self):
        super().setUp()
        self.bump = self.config(BUMP)
        self.capture = self.dir / "in.pcap"
        shutil.copy(CAPTURE, self.capture)
        self.feed = ("replay", self.bump, "--in", f"a={self.capture}")

    def refused(self, *words, say=(), command="replay"):
        """Exit 2; nothing changed but what a failed open cannot change."""
        before = {p: p.read_bytes() for p in self.dir.iterdir() if p.is_file()}
        _, stderr = self.rocebox(command, *words, status=2)
        for word in [say] if isinstance(say, str) else say:
            self.assertIn(word, stderr)
        self.assertEqual({p: p.read_bytes() for p in self.dir.iterdir() if p.is_file()}, before)
        return stderr


class Interrupts(FilesTest):
    """Ctrl-C while a pipe is silent: the end of the input, not a failure."""

    def interrupted(self, number, data, *words):
        process = subprocess.Popen([ROCEBOX, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        with process:
            process.stdin.write(data)
            process.stdin.flush()
            wait_for(lambda: is_waiting(process, number))
            process.send_signal(number)
            stdout, stderr = process.stdout.read(), process.stderr.read()  # the writer keeps the pipe open
            self.assertEqual(process.wait(), 1, stderr)
        return stdout.decode(), stderr.decode()

    def test_drains_and_reports(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out, report, trace = self.dir / "out.pcap", self.dir / "r.json", self.dir / "t.txt"
            text, errors = self.interrupted(number, CAPTURE.read_bytes(), "replay", self.bump, "--in", "a=-", "--out",
                                            f"b={out}", "--json", report, "--trace", "all", "--trace-out", trace)
            self.assertEqual(errors, "")
            self.assertIn("interrupted yes", text)
            self.assertEqual(json.loads(report.read_text())["run"]["packets_out"], PACKETS)
            self.assertEqual(len(tshark(out, "frame.number")), PACKETS)
            self.assertGreater(len(trace.read_text().splitlines()), PACKETS)

    def test_inside_a_record_and_before_the_header(self):
        for size, packets in ((24 + 16 + 5, 0), (5, 0), (0, 0)):
            out = self.dir / "out.pcap"
            text, errors = self.interrupted(signal.SIGINT, CAPTURE.read_bytes()[:size], "replay", self.bump, "--in", "a=-",
                                            "--out", f"b={out}")
            self.assertEqual(errors, "", size)
            self.assertIn("interrupted yes", text)
            self.assertEqual(len(tshark(out, "frame.number")), packets)

    def test_a_fifo_without_a_writer(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        text, _ = self.interrupted(signal.SIGINT, b"", "replay", self.bump, "--in", f"a={fifo}")
        self.assertIn("interrupted yes", text)

    def test_packets_of_a_silent_pipe_have_left_by_pipe(self):
        """All but the last instant, which another packet could still join."""
        process = subprocess.Popen([ROCEBOX, "replay", self.bump, "--in", "a=-", "--out", "b=-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with process:
            process.stdin.write(CAPTURE.read_bytes())
            process.stdin.flush()
            last = 16 + len(list(records(CAPTURE))[-1][2])
            wanted = CAPTURE.stat().st_size - last
            self.assertEqual(len(process.stdout.read(wanted)), wanted)
            process.stdin.close()
            self.assertEqual(len(process.stdout.read()), last)


    def test_a_reader_that_leaves_ends_the_wait(self):
        process = subprocess.Popen([ROCEBOX, "replay", self.bump, "--in", "a=-", "--out", "b=-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            process.stdout.close()  # and standard input stays open, without a byte
            self.assertEqual(process.stderr.read(), b"rocebox: standard output: cannot be written: Broken pipe\n")
            self.assertEqual(process.wait(), 1)


class Outputs(FilesTest):
    def test_nothing_is_written_over_an_input(self):
        for words in (["--out", "b=@"], ["--json", "@"]):
            for name in ("in.pcap", "./in.pcap", "link.pcap", "hard.pcap"):
                path = self.dir / name if not name.startswith(".") else f"{self.dir}/./in.pcap"
                (self.dir / "link.pcap").unlink(missing_ok=True)
                (self.dir / "hard.pcap").unlink(missing_ok=True)
                (self.dir / "link.pcap").symlink_to(self.capture)
                (self.dir / "hard.pcap").hardlink_to(self.capture)
                self.refused(*self.feed[1:], *(w.replace("@", str(path)) for w in words), say=["in.pcap", "an input of port `tap.a`"])

    def test_a_trace_is_no_pcap(self):
        self.refused(*self.feed[1:], "--trace", "all", "--trace-out", self.dir / "x.pcap", say="pcap has no comments")
        named = self.dir / "in.pcapng"
        named.symlink_to(self.capture)
        self.refused(*self.feed[1:], "--trace", "all", "--trace-out", named, say=["in.pcapng", "an input of port `tap.a`"])

    def test_two_outputs_are_two_files(self):
        x = self.dir / "x.pcapng"
        (self.dir / "link").symlink_to("x.pcapng")  # leads nowhere yet
        for words in (["--out", f"b={x}", "--trace", "all", "--trace-out", x],
                      ["--out", f"b={x}", "--json", f"{self.dir}/../{self.dir.name}/x.pcapng"],
                      ["--out", f"b={x}", "--json", self.dir / "link"],
                      ["--trace", "all", "--trace-out", x, "--json", x],
                      ["--trace", "all", "--trace-out", x, "--trace-out", x],
                      ["--out", "b=-", "--json", "-"], ["--out", "b=-", "--json", "/dev/stdout"],
                      ["--out", "b=-", "--trace", "all", "--trace-out", "-"], ["--json", "-", "--trace", "all", "--trace-out", "-"]):
            self.refused(*self.feed[1:], *words, say="an output must be a file of its own")
            self.assertFalse(x.exists())
        self.refused(*self.feed[1:], "--out", f"a={x}", "--out", f"a={self.dir / 'y'}", say="goes to")

    def test_two_ports_may_share_one_capture_however_spelled(self):
        x, link = self.dir / "x.pcap", self.dir / "link.pcap"
        link.symlink_to(x)
        words = (f"a={self.capture}", "--filter", "a=src host 10.77.0.2", "--in", f"b={self.capture}")
        for other in (x, f"{self.dir}/./x.pcap", link):
            self.rocebox("replay", self.bump, "--in", *words, "--out", f"a={x}", "--out", f"b={other}")
            self.assertEqual(tshark(x, "frame.time_epoch", "frame.len"), tshark(CAPTURE, "frame.time_epoch", "frame.len"))
        self.refused(self.bump, "--in", *words, "--out", f"a={x}", "--out", f"b={self.dir / 'x.pcapng'}", "--json",
                     self.dir / "x.pcapng", say="x.pcapng")

    def test_a_name_that_cannot_hold_a_trace(self):
        self.refused(*self.feed[1:], "--trace", "all", "--trace-out", self.dir / "t.pcap", say=["t.pcap", ".pcapng"])

    def test_a_failed_open_harms_no_other_output(self):
        keep = self.dir / "keep.txt"
        keep.write_text("mine")
        self.refused(*self.feed[1:], "--trace", "all", "--trace-out", keep, "--trace-out", "/nonexistent/x", say="/nonexistent/x")
        self.refused(*self.feed[1:], "--out", f"b={keep}", "--json", "/nonexistent/x")

    def test_a_failed_run_leaves_nothing(self):
        data = bytearray(CAPTURE.read_bytes())
        held = struct.unpack_from("<I", data, 24 + 8)[0]
        struct.pack_into("<I", data, 24 + 16 + held + 8, 0x7FFFFFFF)
        self.capture.write_bytes(data)
        before = sorted(self.dir.iterdir())
        outs = ("--trace", "all", "--trace-out", self.dir / "t.txt", "--trace-out", self.dir / "t.pcapng", "--json",
                self.dir / "r.json")
        self.rocebox(*self.feed, "--out", f"b={self.dir / 'o.pcap'}", *outs, status=1)
        self.assertEqual(sorted(self.dir.iterdir()), before)
        shutil.copy(CAPTURE, self.capture)
        _, stderr = self.rocebox(*self.feed, "--out", "b=/dev/full", *outs, status=1)
        self.assertIn("/dev/full: cannot be written: No space left", stderr)
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def test_a_reader_that_leaves(self):
        before = sorted(self.dir.iterdir())
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([ROCEBOX, *map(str, self.feed), "--out", "b=-", "--json", self.dir / "r.json"], stdout=write,
                              stderr=subprocess.PIPE, text=True)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (1, "rocebox: standard output: cannot be written: Broken pipe\n"))
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def test_a_users_own_part_file_stays(self):
        out, part = self.dir / "o.pcap", self.dir / "o.pcap.part"
        part.write_text("mine")
        self.rocebox(*self.feed, "--out", f"b={out}")
        self.assertEqual((part.read_text(), len(tshark(out, "frame.number"))), ("mine", PACKETS))
        self.assertEqual(len(list(self.dir.glob("*.part*"))), 1)

    def test_links_are_followed_and_permissions_kept(self):
        target, link = self.dir / "target.json", self.dir / "link.json"
        target.write_text("old")
        target.chmod(0o640)
        link.symlink_to("target.json")
        self.rocebox(*self.feed, "--json", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(target.read_text())["run"]["packets_in"], PACKETS)
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640)

    def test_pipes_and_devices_are_written_directly(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        for words in (["--json"], ["--trace", "all", "--trace-out"]):
            with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as cat:
                self.rocebox(*self.feed, *words, fifo)
                self.assertGreater(len(cat.stdout.read()), 500)
            self.assertTrue(stat.S_ISFIFO(fifo.stat().st_mode))
        done = subprocess.run(["bash", "-c", '"$@" --json >(cat >&2) >/dev/null; wait $!', "-", ROCEBOX, *map(str, self.feed)],
                              stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(json.loads(done.stderr)["run"]["packets_in"], PACKETS)
        self.rocebox(*self.feed, "--json", "/dev/null", "--out", "b=/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        printed, _ = self.rocebox(*self.feed, "--json", "/dev/stdout")
        self.assertEqual(json.loads(printed)["run"]["packets_in"], PACKETS)

    def test_a_full_standard_output(self):
        for words in ((*self.feed, "--json", "-"), self.feed, ("check", self.bump), ("kernels",), ("kernels", "link"), ("--help",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([ROCEBOX, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("No space left", done.stderr)

    def test_pcapng_on_standard_output(self):
        out, _ = self.rocebox(*self.feed, "--out", "b=-.pcapng", text=False)
        path = self.dir / "o.pcapng"
        path.write_bytes(out)
        self.assertEqual(tshark(path, "frame.interface_name")[:1], [["tap.b"]])


class Inputs(FilesTest):
    def test_every_mistake_is_listed_with_its_place(self):
        config = self.config(f"""devices: {{tap: {{path: a <-> b}}}}
ports:
  a: {{pcap: {{in: [none.pcap, {self.dir}], filter: nonsense words}}}}
  b: {{pcap: {{in: gone.pcap}}}}
""")
        for command in ("check", "replay"):
            lines = self.refused(config, command=command).splitlines()
            self.assertEqual(len(lines), 4, lines)
            for line, words in zip(lines, (["config.yaml:3:", "nonsense words"], ["config.yaml:3:", "none.pcap: No such file"],
                                           ["config.yaml:3:", "folder"], ["config.yaml:4:", "gone.pcap: No such file"])):
                for word in words:
                    self.assertIn(word, line)
        self.refused(self.bump, "--in", "a=none.pcap", "--in", "b=gone.pcap", say=["--in tap.a: none.pcap", "--in tap.b: gone.pcap"])
        self.refused(self.config("devices: {tap: {path: a <-> b}}\nports: {a: {pcap: {out: x, filter: arp}}}\n"),
                     command="check", say=["config.yaml:2:", "no `in:`"])

    def test_check_reads_no_pipe(self):
        config = self.config("devices: {tap: {path: a <-> b}}\nports: {a: {pcap: {in: '-'}}}\n")
        self.rocebox("check", config, stdin="")
        os.mkfifo(self.dir / "fifo")
        self.rocebox("check", self.config(BUMP + "ports: {a: {pcap: {in: fifo}}}\n"), timeout=30)

    def test_check_knows_the_rows_of_inputs_and_outputs(self):
        for text, good in (("inputs.0.packets > 0", True), ("outputs.3.packets > 0", True), ("run.packets_in > 0", True),
                           ("run.drain_cut == 0", True), ("inputs.0.paquets > 0", False), ("outputs.0.packts > 0", False)):
            self.rocebox("check", self.config(BUMP + f"expect: ['{text}']\n"), status=0 if good else 2)

    def test_check_prints_paths_as_the_configuration_has_them(self):
        folder = self.dir / "cfg"
        folder.mkdir()
        (folder / "c.yaml").write_text(BUMP + "ports: {a: {pcap: {in: ../in.pcap, out: out.pcapng}}}\n")
        printed, _ = self.rocebox("check", "cfg/c.yaml", cwd=self.dir)
        (folder / "d.yaml").write_text(printed)
        self.rocebox("replay", "cfg/d.yaml", cwd=self.dir)
        self.assertTrue((folder / "out.pcapng").exists())

    def test_one_file_for_two_ports(self):
        for words in (["--in", f"a={self.capture}", "--in", f"b={self.capture}"],
                      ["--in", f"a={self.capture}", "--in", f"b={self.dir}/./in.pcap"],
                      ["--in", f"a={self.capture}", "--in", f"a={self.capture}"], ["--in", "a=-", "--in", "b=-"],
                      ["--in", f"a={self.capture}", "--in", f"b={self.capture}", "--filter", "b=arp"]):
            self.refused(self.bump, *words)
        report = self.replay(self.bump, "--in", f"a={self.capture}", "--in", f"b={self.capture}", "--filter", "a=src host 10.77.0.2")
        ports = report["devices"]["tap"]["ports"]
        self.assertEqual(ports["a"]["rx_packets"] + ports["b"]["rx_packets"], PACKETS)
        self.assertGreater(min(ports["a"]["rx_packets"], ports["b"]["rx_packets"]), 0)

    def test_a_file_of_the_command_line_comes_without_the_configurations_filter(self):
        config = self.config(BUMP + f"ports: {{a: {{pcap: {{in: {self.capture}, filter: src host 1.2.3.4}}}}}}\n")
        self.assertEqual(self.replay(config, "--in", f"a={CAPTURE}")["run"]["packets_in"], PACKETS)
        self.assertEqual(self.replay(config, "--filter", "a=udp")["run"]["packets_in"], PACKETS)
        report = self.dir / "r.json"
        _, stderr = self.rocebox("replay", config, "--json", report)
        self.assertIn(f"in.pcap: no packet of {PACKETS} passes the filter `src host 1.2.3.4`", stderr)
        self.assertIn("no packet of", json.loads(report.read_text())["inputs"][0]["note"])
        self.refused(self.bump, "--in", f"a={CAPTURE}", "--filter", "b=udp", say="no input")
        self.refused(self.bump, "--in", f"a={CAPTURE}", "--filter", "a=udp", "--filter", "a=arp", say="already")
        self.refused(self.bump, "--in", f"a={CAPTURE}", "--filter", "a=nonsense words", say="--filter tap.a: port `tap.a`: filter")

    def test_a_seed_out_of_range(self):
        for seed in ("99999999999999999999", "-1", "x", "1.5"):
            stderr = self.refused(*self.feed[1:], f"--seed={seed}", say=f"--seed {seed}: must be an integer from 0 to 9223372036854775807")
            self.assertLess(len(stderr), 100)

    def test_a_pool_that_no_machine_has(self):
        config = self.config(BUMP + "pool: {small: 16000000, large: 16000000}\n")
        for command in ("check", "replay"):
            words = ["--in", f"a={CAPTURE}"] if command == "replay" else []
            self.refused(config, *words, command=command, say=["config.yaml: `pool:`", "MiB are available"])

    def test_the_pools_maximum_is_one(self):
        frame, other = next(records(CAPTURE))[2], bytes(60)
        (self.dir / "burst.pcapng").write_bytes(pcapng([(1, 0, b"")], [(0, 5, frame)] * 700 + [(0, 6, other)] * 20))
        report = self.replay(self.bump, "--in", f"a={self.dir / 'burst.pcapng'}")
        self.assertEqual(report["run"]["pool_packets_max"], 700)

    def test_a_drain_that_is_cut_is_no_success(self):
        text = "drain: %s\ndevices: {tap: {path: a <-> link <-> b, kernels: {link: {rate: 10kbps}}}}\n"
        report = self.dir / "r.json"
        _, stderr = self.rocebox("replay", self.config(text % "10s"), "--in", f"a={CAPTURE}", "--json", report, status=1)
        run = json.loads(report.read_text())["run"]
        self.assertEqual((run["drain_cut"], run["held_at_end"] + run["packets_out"]), (True, PACKETS))
        self.assertIn(f"{run['held_at_end']} packets were still held 10s after the last one came: a longer `drain:`", stderr)
        report = self.replay(self.config(text % "3600s"), "--in", f"a={CAPTURE}")
        self.assertEqual((report["run"]["drain_cut"], report["run"]["packets_out"]), (False, PACKETS))


class Packed(FilesTest):
    def test_gzip_and_zstd_are_read_by_what_they_are(self):
        whole = self.replay(self.bump, "--in", f"a={self.capture}")
        packed = self.dir / "in.pcap.gz"
        packed.write_bytes(gzip.compress(self.capture.read_bytes()))
        report = self.replay(self.bump, "--in", f"a={packed}")
        self.assertEqual((report["hash"], report["inputs"][0]["packets"]), (whole["hash"], PACKETS))
        out, _ = self.rocebox("replay", self.bump, "--in", "a=-", "--json", "-", stdin=packed.read_bytes(), text=False)
        self.assertEqual(json.loads(out)["hash"], whole["hash"], "through a pipe")
        good = packed.read_bytes()
        zstd = subprocess.run(["zstd", "-c", self.capture], capture_output=True).stdout if shutil.which("zstd") else b""
        for whole_file in filter(None, (good, zstd)):
            for rest, ignored in ((bytes(512), False), (b"junk", True), (bytes(512) + b"junk", True)):
                packed.write_bytes(whole_file + rest)
                report = self.replay(self.bump, "--in", f"a={packed}")
                self.assertEqual(report["hash"], whole["hash"])
                self.assertEqual("stands something else, which was ignored" in report["inputs"][0].get("note", ""), ignored)
        packed.write_bytes(good[:-9])
        self.assertTrue(self.replay(self.bump, "--in", f"a={packed}")["inputs"][0]["cut"])
        for name in ("o.pcap.gz", "o.pcap.zst"):
            self.refused(*self.feed[1:], "--out", f"b={self.dir / name}", say=[name, "outputs are written unpacked"])


class Captures(FilesTest):
    def test_interfaces_of_different_resolution_and_offset(self):
        """Microseconds, nanoseconds, 2^-20 s, and seconds that begin elsewhere."""
        options = [b"", struct.pack("<HHB3x", 9, 1, 9), struct.pack("<HHB3x", 9, 1, 0x80 | 20),
                   struct.pack("<HHB3xHHq", 9, 1, 9, 14, 8, 1_000_000_000)]
        packets = []
        for n, (seconds, micros, frame) in enumerate(list(records(CAPTURE))[:40]):
            ticks = [seconds * 10**6 + micros, seconds * 10**9 + micros * 1000 + 7, (seconds << 20) + (micros << 20) // 10**6,
                     (seconds - 10**9) * 10**9 + micros * 1000 + 3][n % 4]
            packets.append((n % 4, ticks, frame))
        mixed, out = self.dir / "mixed.pcapng", self.dir / "out.pcap"
        mixed.write_bytes(pcapng([(1, 0, o) for o in options], packets))
        self.rocebox("replay", self.bump, "--in", f"a={mixed}", "--out", f"b={out}")
        wanted = tshark(mixed, "frame.time_epoch", "infiniband.bth.psn")
        self.assertEqual([[t[:-1], p] for t, p in tshark(out, "frame.time_epoch", "infiniband.bth.psn")],
                         [[t[:-1], p] for t, p in wanted])  # 2^-20 s is no whole number of nanoseconds

    def test_interfaces_that_libpcap_cannot_mix_have_a_mend_that_works(self):
        frames = [frame for _, _, frame in list(records(CAPTURE))[:10]]
        cooked = [struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x0800) + frame[14:] for frame in frames]
        snap, link = self.dir / "snap.pcapng", self.dir / "link.pcapng"
        snap.write_bytes(pcapng([(1, 65535, b""), (1, 262144, b"")], [(n % 2, n, f) for n, f in enumerate(frames)]))
        link.write_bytes(pcapng([(1, 0, b""), (113, 0, b"")], [(n % 2, n, (frames, cooked)[n % 2][n]) for n in range(10)]))
        for path, packets in ((snap, 10), (link, 5)):
            _, stderr = self.rocebox("replay", self.bump, "--in", f"a={path}", status=1)
            mend = stderr.split("`")[1]
            subprocess.run(["bash", "-c", mend], cwd=self.dir, check=True, capture_output=True)
            self.assertEqual(self.replay(self.bump, "--in", f"a={self.dir / 'one.pcap'}")["run"]["packets_in"], packets)

    def test_captures_of_all_interfaces(self):
        for link in (113, 276):
            path = self.dir / "any.pcap"
            path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, link))
            self.refused(self.bump, "--in", f"a={path}", say=["no Ethernet header", "-i INTERFACE"])

    def test_filters_look_behind_vlan_tags(self):
        tags = [b"", bytes.fromhex("81000064"), bytes.fromhex("88a800c881000064")]
        packets = [(0, n, f[:12] + tags[n % 3] + f[12:]) for n, (_, _, f) in enumerate(records(CAPTURE))]
        path = self.dir / "vlan.pcapng"
        path.write_bytes(pcapng([(1, 0, b"")], packets))
        for text, fields in (("src host 10.77.0.2", "ip.src==10.77.0.2"), ("not src host 10.77.0.2", "ip.src!=10.77.0.2"),
                             ("udp port 4791 and src net 10.77.0.0/30 and not dst host 10.77.0.2", "ip.dst!=10.77.0.2"),
                             ("vlan", "vlan && eth.type != 0x88a8"), ("vlan 100 and udp", "vlan.id==100 && eth.type==0x8100"),
                             ("ether[12:2] = 0x88a8", "eth.type==0x88a8")):
            if text == "vlan":
                fields = "eth.type==0x8100 || eth.type==0x88a8"
            done = subprocess.run(["tshark", "-n", "-r", path, "-Y", fields, "-T", "fields", "-e", "frame.number"],
                                  capture_output=True, text=True, check=True)
            report = self.replay(self.bump, "--in", f"a={path}", "--filter", f"a={text}")
            self.assertEqual(report["run"]["packets_in"], len(done.stdout.splitlines()), text)
            self.assertGreater(report["run"]["packets_in"], 0)


if __name__ == "__main__":
    unittest.main()
