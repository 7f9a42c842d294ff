#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Labs whose hosts are virtual machines with Soft-RoCE: the one that is shipped, what commands in machines mean, and that
nothing stays behind. tests/interop has them run, after it has made what the machines boot."""
import json
import os
import shutil
import signal
import subprocess
import sys

import bed
import lab_test
from bed import ROCEBOX, ROOT

BUILD_IMAGE = ROOT / "configs" / "lab" / "vm" / "build_image.sh"

ONE = """lab: NAME
hosts:
  machine:
    vm: {memory: 256MiB}
    addresses: [10.97.0.1/24, "fd97::1/64"]
    mac: 02:00:00:00:00:aa
    mtu: 1400
    neighbours: 10.97.0.9 02:00:00:00:00:09
    sysctls: net.ipv4.ip_default_ttl=17
    routes: [10.96.0.0/16 via 10.97.0.2, "fd96::/64 via fd97::2"]
  plain: {addresses: [10.97.0.2/24, "fd97::2/64"], mtu: 1400}
wires: machine <-> plain
"""

# The last command takes too long; what the others say is asserted on the report.
TRAFFIC = r"""traffic:
  - {name: settings, host: machine, run: "ip neighbour; ip route; ip -6 route; ip link show eth0; cat /proc/sys/net/ipv4/ip_default_ttl", output: settings.txt}
  - {name: status, host: machine, run: "echo said; echo 'not well' >&2; exit 3", exit: 3, output: status.txt, numbers: 'kept = not (w)ell'}
  - {name: bytes, host: machine, run: "head -c 100000 /dev/zero; printf '\\377'", output: bytes.bin}
  - {name: json, host: machine, run: "printf '{\"a\": [1, 2]}'", json: true}
  - {name: says, host: machine, run: "trap 'echo ended: 5; exit 4' TERM; echo warming >&2; sleep 1; echo now ready >&2; sleep 500 & wait", background: true, ready: now ready, numbers: 'ended = ended: (\d+)'}
  - {name: server, host: machine, run: "sleep 1; ibv_rc_pingpong -d rxe0 -g 1 -p 18515", background: true, ready_port: 18515}
  - {name: listens, host: machine, run: "grep -q :4853 /proc/net/tcp /proc/net/tcp6"}
  - {name: from_plain, host: plain, run: "ping -c 2 -i 0.2 10.97.0.1 && ping -c 2 -i 0.2 fd97::1"}
  - {name: to_plain, host: machine, run: ping -c 2 10.97.0.2}
  - {name: rdma, host: machine, run: "rdma link show rxe0/1", numbers: 'port = link rxe0/(\d) state ACTIVE'}
  - {name: slow, host: machine, run: "echo begun; sleep 500", timeout: 10s, numbers: 'begun = (begun)'}
"""


class Machines(lab_test.LabTest):
    def run_shipped(self, name, **more):
        """A lab of configs/lab, all of whose expectations hold: its report, and what it printed."""
        lab = f"{name}-{lab_test.TAG}"
        self.labs.append(lab)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "run", lab_test.LABS / f"{name}.yaml", "--name", lab, "--json", report, **more)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        self.assert_nothing_left(lab)
        report = json.loads(report.read_text())
        self.assertTrue(report["expectations"] and all(row["holds"] for row in report["expectations"]))
        return report, done.stdout

    def test_soft_roce(self):
        report, _ = self.run_shipped("soft_roce")
        for port in report["appliances"]["wire"]["ports"]:
            for name in ("rx_missed", "rx_errors", "rx_no_packet", "tx_full", "tx_errors"):
                self.assertEqual(port[name], 0, f"{port['port']}: {name}")

    def test_gateways_are_worth_it(self):
        """The same transfer over two links that lose 1%, 20 ms to and fro: the one with LoWAR gateways is done sooner."""
        report, text = self.run_shipped("lowar", timeout=400)
        for name in ("with_gateways", "without_gateways"):
            # What it says of bandwidth goes by the machine's clock, which a busy computer lets it gauge wrongly.
            self.assertRegex(text, rf"\n  {name}\n.*\n +elapsed [0-9.]+ m?s .*\biterations 300\b", "the report shows both")
        links = [report["appliances"][name]["devices"]["line"]["kernels"]["link"]["counters"] for name in ("line", "bare_line")]
        for link in links:
            self.assertGreater(link["reverse_drop_loss"], 20, "1% of more than 4800 packets")

    def test_two_racks_with_themis(self):
        """Two ToRs and four spine paths between: RDMA gets through, and both ToRs learn its connection, or overhear it."""
        report, _ = self.run_shipped("themis", timeout=400)
        for tor in ("near", "far"):
            pairs = report["appliances"][tor]["devices"]["tor"]["kernels"]["switch"]["themis"]["connections"]
            self.assertEqual([row["paired_by"] for row in pairs], ["learnt"], tor)

    def test_two_racks_without_spraying(self):
        """The same racks with `spray: off`: RDMA gets through as over a router, and Themis has done nothing at all."""
        text = (lab_test.LABS / "themis.yaml").read_text().replace("operations: [read]", "spray: off")
        text, found, _ = text.partition("  # Once more")  # without what Themis is expected to do
        self.assertTrue(found)
        path, lab = self.lab(text.replace("lab: themis", "lab: NAME"))
        report = self.dir / "report.json"
        done = self.rocebox("lab", "run", path, "--json", report, timeout=400)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        self.assert_nothing_left(lab)
        for tor, appliance in json.loads(report.read_text())["appliances"].items():
            counters = appliance["devices"]["tor"]["kernels"]["switch"]["counters"]
            self.assertEqual({name: count for name, count in counters.items() if count and name != "drop_unknown_mac"}, {}, tor)
            self.assertGreater(appliance["devices"]["tor"]["ports"]["h"]["rx_packets"], 100, tor)

    def test_commands_and_settings(self):
        path, lab = self.lab(ONE + TRAFFIC)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "run", path, "--json", report)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"lab.yaml:\d+:\d+: `slow` in machine: not done after 10.000 s")
        self.assertIn("begun", done.stderr)
        self.assert_nothing_left(lab)
        report = json.loads(report.read_text())
        self.assertEqual(len(report["failures"]), 1, report["failures"])
        rows = report["traffic"]
        settings = (self.dir / "settings.txt").read_text()
        for words in ("10.97.0.9 dev eth0 lladdr 02:00:00:00:00:09", "10.96.0.0/16 via 10.97.0.2", "fd96::/64 via fd97::2",
                      "mtu 1400", "02:00:00:00:00:aa", "\n17\n"):
            self.assertIn(words, settings)
        self.assertEqual((rows["status"]["exit"], (self.dir / "status.txt").read_text()), (3, "said\n"))
        self.assertEqual((self.dir / "bytes.bin").read_bytes(), bytes(100000) + b"\xff")
        self.assertEqual(rows["json"]["json"], {"a": [1, 2]})
        self.assertEqual((rows["says"]["ended_by_lab"], rows["says"]["exit"], rows["says"]["ended"]), (True, 4, 5), "it was asked, and could answer")
        self.assertTrue(rows["server"]["ended_by_lab"])
        self.assertEqual([rows[name]["exit"] for name in ("listens", "from_plain", "to_plain", "rdma")], [0] * 4)
        self.assertEqual(rows["rdma"]["port"], 1)
        self.assertTrue(rows["slow"]["timed_out"])
        self.assertLess(rows["slow"]["elapsed_ns"], 30e9)

    def qemus(self, lab):
        return [pid for pid in lab_test.processes("qemu-system-x86_64") if lab.encode() in self.folder_of(pid)]

    @staticmethod
    def folder_of(pid):
        try:
            return os.readlink(f"/proc/{pid}/cwd").encode()
        except OSError:
            return b""

    def test_killed_and_interrupted_while_it_boots(self):
        for number, how in enumerate((signal.SIGKILL, signal.SIGINT)):
            path, lab = self.lab(ONE, f"lab{number}")
            process = self.start(path)
            self.wait_for(lambda: self.qemus(lab), "a QEMU runs")
            process.send_signal(how)
            process.communicate(timeout=60)
            if how == signal.SIGKILL:
                self.assertTrue(self.qemus(lab), "else there is nothing to take down")
                self.assertEqual(self.rocebox("lab", "down", lab).returncode, 0)
            self.assertEqual(self.qemus(lab), [])
            self.assert_nothing_left(lab)

    def test_stands_and_is_entered_as_it_says(self):
        path, lab = self.lab(ONE)
        done = self.rocebox("lab", "up", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        (words,) = [line.split() for line in done.stdout.splitlines() if line.endswith(" COMMAND")]
        self.assertEqual(bed.sh(*words[:-1], "echo", "inside"), "inside\n")
        self.assertEqual(self.rocebox("lab", "down", lab).returncode, 0)
        self.assert_nothing_left(lab)


class Refusals(lab_test.LabTest):
    """Exit 2 with what is missing and the mend; nothing is built."""

    def refused(self, text, *said, **more):
        path, lab = self.lab(text)
        done = self.rocebox("lab", "run", path, **more)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for words in said:
            self.assertIn(words, done.stderr)
        self.assert_nothing_left(lab)

    def path_with(self, *names):
        """An environment whose PATH has these programs alone."""
        folder = self.dir / "bin"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).symlink_to(shutil.which(name))
        return dict(os.environ, PATH=str(folder))

    def test_without_qemu(self):
        self.refused(ONE, "`qemu-system-x86_64` is missing", "install the package qemu-system-x86",
                     env=self.path_with("ip", "sysctl", "ethtool", "python3", "bash"))

    def test_without_what_makes_an_image(self):
        self.refused(ONE, "cannot be made here", "not here: cpio", "apt-get install",
                     env=self.path_with("ip", "sysctl", "ethtool", "python3", "bash", "qemu-system-x86_64", "uname", "dirname", "mkdir", "flock"))

    def test_an_image_that_is_none(self):
        self.refused(ONE.replace("memory: 256MiB", "image: nosuch"), "lab.yaml:4:", f"in `{self.dir}/nosuch`", "leave `image:` out")

    def test_a_program_without_its_files(self):
        shutil.copy(ROCEBOX, self.dir / "rocebox")
        path, lab = self.lab(ONE)
        done = subprocess.run([self.dir / "rocebox", "lab", "run", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("`vm.py`", done.stderr)
        self.assert_nothing_left(lab)


def main():
    reason = bed.why_not()
    if not reason and not shutil.which("qemu-system-x86_64"):
        reason = "qemu-system-x86_64 is not installed"
    if not reason:
        built = subprocess.run([BUILD_IMAGE], capture_output=True, text=True)
        reason = built.stderr.strip() if built.returncode == bed.finish.SKIPPED else ""
    if reason:
        print("skipped:", reason)
        sys.exit(bed.finish.SKIPPED)
    bed.finish.main()


if __name__ == "__main__":
    main()
