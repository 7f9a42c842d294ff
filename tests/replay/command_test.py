#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox replay`, `check` and `kernels` as a user meets them: what comes out, and what is said of bad input."""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import unittest

from common import CAPTURES, HERE, ROCEBOX, RoceboxTest, tshark

BUMP = "devices: {tap: {path: a <-> b}}\n"
CLIENT, SERVER = "10.77.0.2", "10.77.0.1"


def to_nanoseconds(path):
    """The same capture as rocebox writes it: nanosecond magic, this machine's byte order, snap length 262144."""
    data = path.read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    out = [struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)]
    at = 24
    while at < len(data):
        seconds, micros, held, wire = struct.unpack_from("<IIII", data, at)
        out += [struct.pack("=IIII", seconds, micros * 1000, held, wire), data[at + 16:at + 16 + held]]
        at += 16 + held
    return b"".join(out)


class EmptyBump(RoceboxTest):
    def test_reproduces_every_capture_byte_for_byte(self):
        config = self.config(BUMP)
        for capture in sorted(CAPTURES.glob("*.pcap")):
            out = self.dir / "out.pcap"
            self.rocebox("replay", config, "--in", f"a={capture}", "--out", f"b={out}")
            self.assertEqual(out.read_bytes(), to_nanoseconds(capture), capture)

    def test_both_directions_of_one_capture_keep_its_order(self):
        capture = CAPTURES / "rc_write.pcap"
        config = self.config(BUMP + f"""ports:
  a: {{pcap: {{in: {capture}, filter: src host {CLIENT}, out: both.pcap}}}}
  b: {{pcap: {{in: {capture}, filter: src host {SERVER}, out: both.pcap}}}}
expect: [tap.a.rx_packets == tap.b.tx_packets, tap.a.tx_packets > 0, inputs.0.unselected == 0]
""")
        self.rocebox("replay", config)
        self.assertEqual((self.dir / "both.pcap").read_bytes(), to_nanoseconds(capture))

    def test_pcapng_has_interfaces_and_nanoseconds(self):
        capture = CAPTURES / "rdma_cm.pcap"
        out = self.dir / "out.pcapng"
        self.rocebox("replay", self.config(BUMP), "--in", f"a={capture}", "--out", f"b={out}")
        wanted = tshark(capture, "frame.time_epoch", "frame.len", "infiniband.bth.psn", "eth.src")
        self.assertEqual(tshark(out, "frame.time_epoch", "frame.len", "infiniband.bth.psn", "eth.src"), wanted)
        self.assertEqual({row[0] for row in tshark(out, "frame.interface_name")}, {"tap.b"})

    def test_several_files_merge_by_time(self):
        files = [CAPTURES / n for n in ("rc_write.pcap", "ud_send.pcap", "uc_send.pcap")]
        out = self.dir / "out.pcap"
        words = [w for f in files for w in ("--in", f"a={f}")]
        self.rocebox("replay", self.config(BUMP), *words, "--out", f"b={out}")
        times = [float(row[0]) for row in tshark(out, "frame.time_epoch")]
        self.assertEqual(times, sorted(t for f in files for t in (float(r[0]) for r in tshark(f, "frame.time_epoch"))))

    def test_standard_input_and_output(self):
        capture = CAPTURES / "rc_write.pcap"
        stdout, stderr = self.rocebox("replay", self.config(BUMP), "--in", "a=-", "--out", "b=-",
                                      stdin=capture.read_bytes(), text=False)
        self.assertEqual(stdout, to_nanoseconds(capture))
        self.assertIn(b"packets_in 159", stderr)

    def test_snapped_packets_keep_their_wire_length(self):
        subprocess.run([sys.executable, HERE / "make_derived.py", self.dir], check=True, stdout=subprocess.DEVNULL)
        capture, out = self.dir / "snapped.pcap", self.dir / "out.pcap"
        report = self.replay(self.config(BUMP), "--in", f"a={capture}", "--out", f"b={out}")
        self.assertEqual(out.read_bytes(), to_nanoseconds(capture))
        self.assertGreater(report["inputs"][0]["snapped"], 0)


class Reports(RoceboxTest):
    def test_two_runs_are_equal_to_the_byte(self):
        config = self.config("""seed: 7
devices:
  tap:
    path: a <-> link <-> inspect <-> b
    kernels: {link: {delay: 20us, jitter: 30us, loss: 2%, duplicate: 2%, corrupt: 1%}}
""")
        results = []
        for run, seed in enumerate((7, 7, 8)):
            out = self.dir / f"out{run}.pcapng"
            text, _ = self.rocebox("replay", config, "--in", f"a={CAPTURES / 'rc_read_loss_tx.pcap'}", "--out", f"b={out}",
                                   "--seed", seed)
            results.append((text.replace(f"out{run}", "out"), out.read_bytes()))
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0][1], results[2][1], "nothing in it is random")

    def test_json_holds_what_the_text_shows(self):
        config = self.config(BUMP + "expect: [tap.a.rx_packets == 159]\n")
        report = self.replay(config, "--in", f"a={CAPTURES / 'rc_write.pcap'}")
        self.assertEqual(report["schema_version"], 4)
        self.assertEqual(report["devices"]["tap"]["counters"]["rx_roce"], 159)
        self.assertEqual(report["expectations"][0]["holds"], True)
        text, _ = self.rocebox("replay", config, "--in", f"a={CAPTURES / 'rc_write.pcap'}")
        self.assertIn(report["hash"], text)
        printed, _ = self.rocebox("replay", config, "--in", f"a={CAPTURES / 'rc_write.pcap'}", "--json", "-")
        self.assertEqual(json.loads(printed), report)

    def test_expectation_decides_the_exit_status(self):
        config = self.config(BUMP + "expect: ['tap.a.rx_packets < 100 + 50']\n")
        text, error = self.rocebox("replay", config, "--in", f"a={CAPTURES / 'rc_write.pcap'}", status=1)
        self.assertRegex(text, r"no +tap.a.rx_packets < 100 \+ 50 +159 +150")
        self.assertRegex(error, r"config.yaml:\d+:10: expected `tap.a.rx_packets < 100 \+ 50`: `tap.a.rx_packets` is 159, `100 \+ 50` is 150\n")
        self.assertEqual(error.count("expected"), 1)

    def test_a_word_that_is_none_is_told_with_the_nearest(self):
        for words, told in ((("replya", "x.yaml"), "rocebox: there is no command `replya`; did you mean `replay`?\n`rocebox --help`"),
                            (("frobnicate",), "rocebox: there is no command `frobnicate`; known: replay, sim, run, lab,"),
                            ((), "rocebox: give a command: replay, sim, run, lab,"), (("lab", "uup"), "rocebox lab: there is no command `uup`; did you mean `up`?"),
                            (("lab",), "rocebox lab: give a command: run, up, down"),
                            (("replay", "x.yaml", "--sed", "4"), "rocebox replay: there is no option `--sed`; did you mean `--seed`?\n`rocebox replay --help`"),
                            (("replay", "x.yaml", "--sed=4"), "rocebox replay: there is no option `--sed`; did you mean `--seed`?"),
                            (("replay", "x.yaml", "--frobnicate"), "rocebox replay: there is no option `--frobnicate`\n"),
                            (("replay",), "give a configuration, or --from FILE -- KERNEL [OPTION=VALUE]...\n")):
            out, error = self.rocebox(*words, status=2)
            self.assertEqual(out, "")
            self.assertIn(told, error)

    def test_no_mistake_is_told_twice(self):
        config = self.config("devices:\n  a: {path: x <-> link <-> y, kernels: {link: {loss: 200%, burst_loss: {enter: 1%}, match: {source: foo}}}}\n"
                             "  t1: {switch: &t {ports: [a, b], frobs: 1}}\n  t2: {switch: *t}\nplugins: [no.so]\n")
        error = self.rocebox("check", config, status=2)[1]
        self.assertEqual(len(error.splitlines()), 5)
        for word in ("`loss`", "`leave`", "`source`", "`frobs`", "no.so"):
            self.assertEqual(error.count(word), 1, error)

    def test_messages_have_no_escape_codes_of_files_or_names(self):
        for words in (("replay", self.dir / "\x1b[31mno.yaml"),
                      ("check", self.config("devices: {tap: {path: 'a <-> \"\\e[2J\" <-> b'}}\n\"\\e]0;x\\a\": 1\n", "one.yaml")),
                      ("check", self.config("devices: {\"a\\e[1m\": {path: a <-> b}}\n", "two.yaml")),
                      ("replay", self.config(BUMP), "--in", "a=\x1b[31mno.pcap"), ("replay", self.config(BUMP), "--seed", "\x1b[1m"),
                      ("kernels", "\x1b[1m"), ("\x1b[1m",), ("replay", "--\x1b[1m")):
            out, error = self.rocebox(*words, status=2)
            self.assertNotRegex(out + error, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("\\x1b", error, words)
            lines = [line for line in error.splitlines() if "\\x1b" in line]
            self.assertEqual(len(lines), len(set(lines)), "said twice")

    def test_nor_has_what_is_printed(self):
        """Names of files, of interfaces, commands of a lab: none of them moves the cursor, or looks like a line of ours."""
        capture = self.dir / "\x1b[31m\n# in.pcap"
        capture.write_bytes((CAPTURES / "rc_write.pcap").read_bytes())
        pipeline = self.config("path: a <-> b\n", "\x1b[1m.yaml")
        name = str(capture).replace("\x1b", "\\e").replace("\n", "\\n")
        config = self.config(f"devices: {{tap: {{pipeline: \"{self.dir}/\\e[1m.yaml\"}}, t2: {{path: c <-> d}}}}\n"
                             f"ports: {{a: {{pcap: {{in: \"{name}\", out: \"\\e[2J.pcap\"}}}}, c: {{af_packet: \"\\e[1m\\u009b\"}}}}\n",
                             "\x1b[33m.yaml")
        lab = self.config("lab: plain\nhosts: {left: {addresses: 10.9.0.1/24}, right: {addresses: 10.9.0.2/24}}\n"
                          "wires: [left <-> right]\n"
                          "traffic: [{name: say, host: left, run: \"echo '\\e[31m'\\necho two\"}]\n"
                          "expect: [\"traffic.say.exit == 0\"]\n", "\x1b[34m.yaml")
        for path, count in ((config, 5), (lab, 2)):
            out, error = self.rocebox("check", path)
            self.assertNotRegex(out + error, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertGreaterEqual(len([line for line in out.splitlines() if "\\x1b" in line]), count, out)
            self.assertNotIn("\n# in.pcap", out)
        self.assertTrue(pipeline.exists())

    def test_trace_as_text_and_as_comments(self):
        capture, out = CAPTURES / "rc_write.pcap", self.dir / "trace.pcapng"
        rows = [r for r in tshark(capture, "frame.number", "infiniband.bth.psn", "infiniband.bth.opcode") if r[2] == "7"]
        psn = rows[5][1]
        words = ("--in", f"a={capture}", "--trace", f"psn={psn} opcode=7", "--trace-out", out, "--trace-out", "-")
        text, _ = self.rocebox("replay", self.config("devices: {tap: {path: a <-> link <-> b}}\n"), *words)
        lines = [line for line in text.splitlines() if f"psn {psn}" in line]
        self.assertEqual([line.split()[1] + " " + line.split()[2] for line in lines],
                         ["tap arrive", "tap.link pass", "tap leave"])
        self.assertIn(f"#{rows[5][0]} ", lines[0])
        comments = tshark(out, "frame.comment", "infiniband.bth.psn")
        self.assertEqual(len(comments), 3)
        self.assertTrue(all(psn == row[1] for row in comments))
        self.assertIn("tap.link", comments[1][0])

    def test_a_trace_reads_no_qpn_and_no_psn_from_a_header_of_another_kind(self):
        config = self.config("devices: {d: {path: host <-> lowar <-> wan, kernels: {lowar: {r: 8}}}}\n")
        text, _ = self.rocebox("replay", config, "--in", f"d.host={CAPTURES / 'rc_write.pcap'}", "--trace", "opcode=0x1f",
                               "--trace-out", "-")
        lines = [line for line in text.splitlines() if "opcode 0x1f" in line]
        self.assertGreater(len(lines), 20)
        self.assertTrue(all(line.endswith("made opcode 0x1f") for line in lines), lines[:3])


class BadInput(RoceboxTest):
    """One clear message naming file and place, exit 2 or 1, nothing under the final name."""

    def refused(self, *words, say, status=2):
        out = self.dir / "out.pcap"
        _, stderr = self.rocebox("replay", *words, "--out", f"b={out}", status=status)
        for word in [say] if isinstance(say, str) else say:
            self.assertIn(word, stderr)
        self.assertEqual(len(stderr.strip().splitlines()), 1, stderr)
        self.assertFalse(out.exists())
        self.assertEqual(list(self.dir.glob("*.part")), [])

    def setUp(self):
        super().setUp()
        self.derived = self.dir / "derived"
        self.derived.mkdir()
        subprocess.run([sys.executable, HERE / "make_derived.py", self.derived], check=True, stdout=subprocess.DEVNULL)
        self.bump = self.config(BUMP)

    def test_captures(self):
        for name, say in {"none.pcap": "No such file", "garbage.bin": "neither pcap nor pcapng",
                          "linux_sll.pcap": "LINUX_SLL"}.items():
            self.refused(self.bump, "--in", f"a={self.derived / name}", say=[name, say])
        self.refused(self.bump, "--in", f"a={self.derived}", say="folder")
        stub = self.dir / "stub.pcap"
        stub.write_bytes((self.derived / "empty.pcap").read_bytes()[:10])
        self.refused(self.bump, "--in", f"a={stub}", say="stub.pcap")

    def test_zero_packets_is_a_run(self):
        report = self.replay(self.bump, "--in", f"a={self.derived / 'empty.pcap'}", "--out", f"b={self.dir / 'o.pcap'}")
        self.assertEqual(report["run"]["packets_in"], 0)
        self.assertEqual((self.dir / "o.pcap").stat().st_size, 24)

    def test_a_cut_capture_is_used_up_to_the_cut(self):
        report = self.replay(self.bump, "--in", f"a={self.derived / 'torn.pcap'}", "--out", f"b={self.dir / 'o.pcap'}")
        self.assertEqual(report["inputs"][0]["cut"], True)
        self.assertIn("inside record 61", report["inputs"][0]["note"])
        self.assertEqual(len(tshark(self.dir / "o.pcap", "frame.number")), report["run"]["packets_in"])

    def test_a_capture_broken_inside_fails_the_run(self):
        broken = self.dir / "broken.pcap"
        data = bytearray((CAPTURES / "ud_send.pcap").read_bytes())
        held = struct.unpack_from("<I", data, 24 + 8)[0]
        struct.pack_into("<I", data, 24 + 16 + held + 8, 0x7FFFFFFF)
        broken.write_bytes(data)
        self.refused(self.bump, "--in", f"a={broken}", say=["broken.pcap", "record 2"], status=1)

    def test_outputs(self):
        capture = CAPTURES / "rc_write.pcap"
        for out, say in {self.dir / "no/such/out.pcap": "No such file", self.dir: "folder",
                         "/proc/rocebox.pcap": "cannot be written"}.items():
            _, stderr = self.rocebox("replay", self.bump, "--in", f"a={capture}", "--out", f"b={out}", status=2)
            self.assertIn(say, stderr)
        self.rocebox("replay", self.bump, "--in", f"a={capture}", "--out", f"b={capture}", status=2)
        _, stderr = self.rocebox("replay", self.bump, "--in", f"a={capture}", "--out", "b=/dev/full", status=1)
        self.assertIn("No space left", stderr)
        _, stderr = self.rocebox("replay", self.bump, "--in", f"a={capture}", "--json", "/dev/null/x", status=2)
        self.assertIn("cannot be written", stderr)

    def test_a_disk_that_fills_leaves_nothing(self):
        capture = CAPTURES / "perftest_write.pcap"
        limit = 40_000  # stands for the disk: writing beyond it fails
        def lower():
            import resource
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        old = self.dir / "out.pcap"
        old.write_bytes(b"what was there before")
        _, stderr = self.rocebox("replay", self.bump, "--in", f"a={capture}", "--out", f"b={old}", status=1, preexec_fn=lower)
        self.assertIn("out.pcap: cannot be written", stderr)
        self.assertEqual(old.read_bytes(), b"what was there before")
        self.assertEqual(list(self.dir.glob("*.part")), [])

    def test_configurations(self):
        for text, say in {
            "devices: {tap: {path: a <-> nope <-> b}}": "unknown kernel `nope`",
            "devices: {tap: {path: a <-> link <-> b, kernels: {link: {rate: 3}}}}": "config.yaml:1:64: `rate` must be a rate with a unit",
            "devices: {tap: {path: a <-> link <-> b, kernels: {link: {loss: 200%}}}}": "from 0",
            "devices: [": "YAML",
            "seed: 1": "no device",
            "": "expected a mapping",
            "devices: {tap: {path: a <-> b}}\nexpect: [tap.a.rx_packts == 1]": "did you mean `rx_packets`",
            "devices: {tap: {path: a <-> b}}\nexpect: [gibberish]": "is no condition",
        }.items():
            config = self.config(text)
            self.refused(config, "--in", f"a={CAPTURES / 'ud_send.pcap'}", say=say)

    def test_a_bad_filter_is_named(self):
        config = self.config(BUMP + f"ports: {{a: {{pcap: {{in: {CAPTURES / 'ud_send.pcap'}, filter: nonsense words}}}}}}")
        for command in ("replay", "check"):
            _, stderr = self.rocebox(command, config, status=2)
            self.assertRegex(stderr, r"config\.yaml:2:\d+: port `tap\.a`: filter `nonsense words`: .*\n$")

    def test_all_mistakes_are_listed(self):
        config = self.config("devices: {tap: {path: a <-> b, knd: bump}}\nseeed: 1\nports: {c: {pcap: {out: x}}}\n")
        _, stderr = self.rocebox("check", config, status=2)
        self.assertEqual(len(stderr.strip().splitlines()), 3, stderr)
        for line, place in zip(sorted(stderr.splitlines()), ("1:32", "2:1", "3:12")):
            self.assertIn(f"config.yaml:{place}", line)

    def test_arguments(self):
        for words in (["replay"], ["replay", self.bump, "--seed", "x"], ["bogus"], [], ["replay", self.bump],
                      ["replay", self.bump, "--in", "nope"], ["replay", self.bump, "--in", "z=x.pcap"],
                      ["replay", self.bump, "--in", f"a={CAPTURES / 'ud_send.pcap'}", "--trace", "psn=abc"],
                      ["kernels", "lnk"], ["check"], ["check", self.dir / "none.yaml"]):
            _, stderr = self.rocebox(*words, status=2)
            self.assertTrue(stderr.strip(), words)


class Describe(RoceboxTest):
    def test_kernels(self):
        text, _ = self.rocebox("kernels")
        kernels = json.loads(self.rocebox("kernels", "--json")[0])
        for kernel in kernels:
            self.assertIn(kernel["name"], text)
            one, _ = self.rocebox("kernels", kernel["name"])
            once = [group for group in ("forward", "reverse") if f"  {group}.*" in one]
            self.assertEqual(once, ["forward", "reverse"] if kernel["name"] == "link" else [])
            for option in kernel["options"]:
                group, _, rest = option["name"].partition(".")
                self.assertRegex(one, rf"(?m)^  {re.escape(rest if group in once and rest else option['name'])}[ .]")
            for counter in kernel["counters"]:
                self.assertIn(f"\n  {counter['name']} ", one)
            self.assertEqual(len(re.findall(r"(?m)^  loss ", one)), 1 if kernel["name"] == "link" else 0)

    def test_programs_are_found_by_name(self):
        rows = {row["name"]: row for row in json.loads(self.rocebox("kernels", "--json")[0])}
        for name, option, counter in (("themis", "paths", "sprayed"), ("forward", "routes[].prefix", "macs_learnt"), ("acl", "rules[].dscp", "")):
            self.assertEqual((rows[name]["kind"], rows[name]["kernel"]), ("program", "switch"))
            self.assertIn(option, [row["name"] for row in rows[name]["options"]])
            self.assertEqual(json.loads(self.rocebox("kernels", name, "--json")[0]), rows[name])
            self.assertTrue(rows[name]["examples"] or name == "forward")  # every example of the switch is one of it
            if counter:
                self.assertIn(counter, [row["name"] for row in rows[name]["counters"]])
                self.assertNotIn(counter, [row["name"] for row in rows["switch"]["counters"]])
        kinds = {row["name"]: row["kind"] for row in rows["switch"]["counters"]}
        self.assertEqual((kinds["buffer_bytes_max"], kinds["tx_pause_frames"]), ("peak", "count"))
        self.assertRegex(self.rocebox("kernels", "switch")[0], r"(?m)^  buffer_bytes_max +the most bytes[^()]*\(peak\)$")
        for row in rows["switch"]["options"]:
            self.assertNotIn(row["name"].split(".")[0], ("themis", "forward", "acl"))
        self.assertIn("did you mean `themis`?", self.rocebox("kernels", "themys", status=2)[1])

    def test_check_prints_what_loads_again(self):
        config = self.config("devices: {x: {path: a <-> link <-> inspect <-> b}, y: {path: c <-> d}}\n"
                             "links: {wan: {between: [x.b, y.c], delay: 25ms}}\n")
        first, _ = self.rocebox("check", config)
        second, _ = self.rocebox("check", self.config(first))
        self.assertEqual(first.splitlines()[1:], second.splitlines()[1:])

    def test_schema_is_the_one_in_the_tree(self):
        text, _ = self.rocebox("check", "--schema")
        self.assertEqual(text, (HERE.parent.parent / "configs/rocebox.schema.json").read_text(),
                         "run: rocebox check --schema > configs/rocebox.schema.json")

    def test_starts_without_root_or_home(self):
        config = self.config(BUMP)
        os.chmod(self.dir, 0o755)
        for words in ([], ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all"]):
            if words and os.geteuid() != 0:
                continue
            done = subprocess.run([*words, ROCEBOX, "check", config], env={}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
