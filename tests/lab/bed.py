# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts in network namespaces, each on a veth pair whose other end `rocebox run` holds."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CAPTURES = ROOT / "tests" / "replay" / "captures"
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build" / "release" / "rocebox"))
PYTHON = sys.executable
SKIPPED = 77


def why_not():
    """Why such a bed cannot be made here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    for tool in ("ip", "ping", "iperf3", "ethtool"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    probe = subprocess.run(["ip", "netns", "add", f"rbprobe{os.getpid()}"], capture_output=True, text=True)
    if probe.returncode != 0:
        return "network namespaces cannot be made: " + probe.stderr.strip()
    subprocess.run(["ip", "netns", "del", f"rbprobe{os.getpid()}"], check=True)
    return ""


def sh(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


class BedTest(unittest.TestCase):
    """left and right: namespaces with address 10.99.0.1 and .2 on interface `eth`; the bump's ends are left_end, right_end."""
    mtu = 1500

    def setUp(self):
        tag = f"{os.getpid() % 100000}"
        self.left, self.right = f"rbl{tag}", f"rbr{tag}"
        self.left_end, self.right_end = f"rbL{tag}", f"rbR{tag}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rocebox-lab-"))
        self.children = []
        self.addCleanup(self.take_down)
        for number, (space, end) in enumerate(((self.left, self.left_end), (self.right, self.right_end)), 1):
            sh("ip", "netns", "add", space)
            sh("ip", "link", "add", end, "type", "veth", "peer", "name", "eth", "netns", space)
            sh("ip", "link", "set", end, "mtu", str(self.mtu), "up")
            self.within(space, "ip", "link", "set", "eth", "mtu", str(self.mtu), "up")
            self.within(space, "ip", "address", "add", f"10.99.0.{number}/24", "dev", "eth")
            self.within(space, "ip", "address", "add", f"fd99::{number}/64", "dev", "eth", "nodad")
            # A veth has no hardware to cut a super-packet for the wire; a NIC in a bump's place would never see one.
            self.within(space, "ethtool", "-K", "eth", "tso", "off", "gso", "off")

    def take_down(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        for end in (self.left_end, self.right_end):
            subprocess.run(["ip", "link", "del", end], capture_output=True)
        for space in (self.left, self.right):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def within(self, space, *words, **more):
        return sh("ip", "netns", "exec", space, *words, **more)

    def child(self, *words, **more):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.children.append(process)
        return process

    def child_within(self, space, *words):
        return self.child("ip", "netns", "exec", space, *words)

    def start(self, path="a <-> z", more="", *words):
        """Starts the bump between the two ends; returns the process once packets flow."""
        config = self.dir / "run.yaml"
        config.write_text(f"devices: {{bump: {{path: {path}{', ' + more if more else ''}}}}}\n"
                          f"ports:\n  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n"
                          "pool: {small: 8192, large: 1024, giant: 16}\n")
        process = self.child(ROCEBOX, "run", str(config), "--json", "-", *words)
        said = process.stderr.readline()
        self.assertIn("2 port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        return process

    def stop(self, process, how=signal.SIGINT):
        """Ends the run and returns its report, whose books must balance."""
        process.send_signal(how)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        report = json.loads(out)
        self.assertEqual(report["run"]["pool_in_use"], report["run"]["pool_idle"], "every packet is back")
        counters = report["devices"]["bump"]["counters"]
        self.assertEqual(counters["packets_in"] + counters["packets_made"],
                         counters["packets_out"] + counters["packets_dropped"] + counters["packets_held"])
        return report


def main():
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(SKIPPED)
    unittest.main()
