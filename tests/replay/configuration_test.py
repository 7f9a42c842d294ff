#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Configurations: from files, which no output replaces, through pipes, and in one line of arguments."""
import json
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from common import ROCEBOX, tshark  # noqa: E402
from files_test import BUMP, PACKETS, FilesTest  # noqa: E402


class Configurations(FilesTest):
    """What a run is made from is never an output of it, and may come through a pipe, or from the command line."""

    def test_no_output_takes_the_place_of_a_configuration(self):
        pipeline = self.config("path: a <-> b\n", "pipe.yaml")
        config = self.config(f"devices: {{tap: {{pipeline: ./pipe.yaml}}}}\nports: {{a: {{pcap: {{in: {self.capture}}}}}}}\n")
        for path, what in ((config, "the configuration"), (pipeline, "the pipeline of device `tap`")):
            (self.dir / "soft").unlink(missing_ok=True)
            (self.dir / "soft").symlink_to(path)
            (self.dir / "hard").unlink(missing_ok=True)
            (self.dir / "hard").hardlink_to(path)
            for name in (path, self.dir / "soft", self.dir / "hard", f"{self.dir}/../{self.dir.name}/{path.name}"):
                for words in (["--json", name], ["--out", f"b={name}"], ["--trace", "all", "--trace-out", name]):
                    self.refused(config, *words, say=[what, "an output must be a file of its own"])
                for words in (["--json", name], ["--trace", "all", "--trace-out", name]):
                    self.refused(config, *words, say=[what], command="run")
        self.refused(self.config(f"devices: {{tap: {{path: a <-> b}}}}\nports: {{a: {{pcap: {{in: {self.capture}, out: config.yaml}}}}}}\n"),
                     command="check", say="is the configuration")

    def test_nor_of_what_a_lab_is_made_from(self):
        self.config(BUMP, "appliance.yaml")
        lab = self.config("""lab: files
hosts: {left: {addresses: 10.9.0.1/24}, right: {addresses: 10.9.0.2/24}}
appliances: {x: {config: appliance.yaml}}
wires: [left <-> x.a, x.b <-> right]
traffic: [{host: left, run: 'true'}]
""", "lab.yaml")
        for name in ("lab.yaml", "appliance.yaml"):
            done = subprocess.run([ROCEBOX, "lab", "run", lab, "--json", self.dir / name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("is the configuration", done.stderr)
        done = subprocess.run([ROCEBOX, "lab", "down", lab, "--json", lab], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertTrue(lab.read_text().startswith("lab: files"))

    def test_through_a_pipe(self):
        text = BUMP + f"ports: {{a: {{pcap: {{in: {self.capture.name}}}}}}}\n"
        for command in ("replay", "check"):
            for words in ([ROCEBOX, command, "-"], ["bash", "-c", f'"{ROCEBOX}" {command} <(cat)']):
                done = subprocess.run(words, input=text, capture_output=True, text=True, cwd=self.dir)
                self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([ROCEBOX, "check", "-"], input="devices: {tap: {path: a <-> lnk <-> b}}\n", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.split(": ")[0]), (2, "standard input:1:23"), done.stderr)
        (self.dir / "same").write_text(text)
        with open(self.dir / "same") as stream:
            done = subprocess.run([ROCEBOX, "replay", "-", "--json", "same"], stdin=stream, capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 2)
        self.assertEqual((self.dir / "same").read_text(), text)

    def test_standard_input_is_read_once(self):
        """As a configuration or as a capture; and by that name in whatever is said of it."""
        def said(*words, stdin=BUMP, status=2):
            done = subprocess.run([ROCEBOX, *map(str, words)], input=stdin, capture_output=True, text=True, cwd=self.dir)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stderr
        once = "would be an input of port `tap.a` and is the configuration; what comes from there is read once"
        reads_it = BUMP + "ports: {a: {pcap: {in: '-'}}}\n"
        self.assertIn("standard input: " + once, said("replay", "-", "--in", "a=-"))
        self.assertIn("/dev/stdin: " + once, said("replay", "-", "--in", "a=/dev/stdin"))
        self.assertIn("standard input: " + once, said("replay", "/dev/fd/0", "--in", "a=-"))
        for command in ("replay", "check", "run"):
            self.assertIn("standard input: " + once, said(command, "-", stdin=reads_it))
        self.assertTrue(said("replay", self.bump, "--in", "a=-").startswith("standard input: neither pcap nor pcapng"))
        self.assertTrue(said("replay", "-", "--from", self.capture).startswith("standard input: a configuration, and --from too"))
        self.assertTrue(said("lab", "down", "-").startswith("standard input: it has no `lab: NAME`"))
        lab = "lab: none\nhosts: {left: {addresses: 10.9.0.1/24}}\n"
        self.assertTrue(said("check", "-", "--strict", stdin=lab).startswith("standard input: --strict and --resources"))
        self.assertIn("standard input: cannot be read: is a pipe or a device", said("check", "-", stdin=lab + "appliances: {x: {config: '-'}}\n"))

    def test_a_lab_through_a_pipe_names_files_of_the_current_folder(self):
        self.config(BUMP, "appliance.yaml")
        lab = """lab: piped
hosts: {left: {addresses: 10.9.0.1/24}, right: {addresses: 10.9.0.2/24}}
appliances: {x: {config: appliance.yaml}}
wires: [left <-> x.a, x.b <-> right]
"""
        for words in ([ROCEBOX, "check", "-"], ["bash", "-c", f'"{ROCEBOX}" check <(cat)']):
            done = subprocess.run(words, input=lab, capture_output=True, text=True, cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_in_one_line(self):
        out = self.dir / "o=1.pcap"
        words = ["replay", "--from", self.capture, "--out", out, "--json", self.dir / "r.json", "--", "inspect", "link", "delay=5ms"]
        text, _ = self.rocebox(*words)
        self.assertIn("rocebox replay command line", text)
        report = json.loads((self.dir / "r.json").read_text())
        self.assertEqual(report["run"]["packets_out"], PACKETS)
        self.assertIn("inspect", report["devices"]["bump"]["kernels"])
        self.assertEqual(len(tshark(out, "frame.number")), PACKETS)
        printed, _ = self.rocebox("check", "--from", self.capture.name, "--", "inspect", "link", "delay=5ms", cwd=self.dir)
        again = self.replay(self.config(printed))
        self.assertEqual(again["hash"], report["hash"], "what check prints is the same configuration")
        printed, _ = self.rocebox("check", "--between", "eth0", "eth1", "--", "link", "loss=1%")
        self.assertIn("af_packet: eth0", printed)
        self.refused("--from", self.capture, "--", "link", "loss=200%", say="command line: `loss=200%`: `loss` must be")
        self.refused(self.bump, "--from", self.capture, "--", "link", say="give one of both")
        self.refused("--from", self.dir / "none.pcap", "--", "link", say="none.pcap: No such file")
        self.refused("--from", self.capture, "--", "link", "--", "-l", "1", say="only `run` takes")
        telemetry = ("--", "--no-telemetry")
        self.refused("--between", "rb-none0", "rb-none1", "--", "link", *telemetry, command="run",
                     say="command line: `--between rb-none0`: port `bump.a` (af_packet rb-none0): there is no network interface")
        self.refused("--between", "lo", "lo", "--", "link", *telemetry, command="run",
                     say=["command line: `--between lo`: port `bump.b`", "is bound to port `bump.a` already (`--between lo`)"])
        self.refused("--between", "rb-none0", "rb-none1", "--port", "b={af_packet: rb-none2}", "--port", "a={net_null: {}}", "--", "link",
                     *telemetry, command="run", say="command line: --port: port `bump.b` (af_packet rb-none2): there is no network")
        self.refused(say="give a configuration, or --from FILE")
        self.refused(command="run", say="give a configuration, or --between A B")
        self.refused(say="give a configuration, or --between", command="check")


if __name__ == "__main__":
    unittest.main()
