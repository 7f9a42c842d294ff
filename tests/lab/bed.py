# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts in network namespaces, each on a veth pair whose other end `rocebox run` holds."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from wire_tool import read_pcap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "telemetry"))
from kit import HANGS, SOCKET, Client, Rest, finish, has_thread_sanitizer  # noqa: E402, F401

CAPTURES = ROOT / "tests" / "replay" / "captures"
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build" / "release" / "rocebox"))
PYTHON = sys.executable


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


class CommandError(subprocess.CalledProcessError):
    def __str__(self):
        return f"{super().__str__()} {self.stderr}{self.stdout}"


def sh(*words, **more):
    """What a command prints; the error when one fails tells what it said."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode:
        raise CommandError(done.returncode, words, done.stdout, done.stderr)
    return done.stdout


def write_pcap(path, records, cut=0):
    """records: (time in ns, wire length, bytes held)."""
    data = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    for at, wire, held in records:
        data += struct.pack("=IIII", at // 10**9, at % 10**9, len(held), wire) + held
    path.write_bytes(data[:len(data) - cut])
    return path


def run_folder(name):
    """Where DPDK has the sockets of a run."""
    return pathlib.Path(os.environ.get("RUNTIME_DIRECTORY", "/var/run")) / "dpdk" / f"rocebox-{name}"


def roce_frames(path):
    """The frames of a capture; what the hosts' own stacks say meanwhile (IPv6 discovery) left out."""
    return [frame for _, _, frame in read_pcap(path)[0]
            if frame[12:14] in (b"\x08\x00", b"\x86\xdd") and b"\x12\xb7" in frame[34:60]]


def check_books(test, report, kept=0):
    """Every packet of a finished run is accounted for, by ports, devices and drops. `kept`: what drivers may still hold."""
    run, ports = report["run"], report["ports"]
    test.assertGreaterEqual(run["pool_in_use"], run["pool_idle"])
    test.assertLessEqual(run["pool_in_use"], run["pool_idle"] + kept, "every packet is back")
    counters = [device["counters"] for device in report["devices"].values()]
    for device in counters:
        test.assertEqual(device["packets_in"] + device["packets_made"],
                         device["packets_out"] + device["packets_delivered"] + device["packets_dropped"] + device["packets_held"])
    if len(counters) != 1:
        return
    came = sum(port["rx_packets"] - port["rx_too_long"] for port in ports)
    left = sum(port["tx_packets"] + port["tx_full"] + port["tx_too_long"] for port in ports) + run["drop_unbound"]
    # What such ports take and cannot send is an error, and not sent.
    left += sum(port["tx_errors"] for port in ports if port["is"].startswith(("af_packet", "tap")))
    test.assertEqual(came - counters[0]["packets_in"] + counters[0]["packets_out"] - left, run["drop_handover_full"])


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
        for number, space in enumerate((self.left, self.right), 1):
            sh("ip", "netns", "add", space)
            self.join_host(number)

    def join_host(self, number):
        """The veth pair of host 1 (left) or 2 (right)."""
        space, end = ((self.left, self.left_end), (self.right, self.right_end))[number - 1]
        sh("ip", "link", "add", end, "type", "veth", "peer", "name", "eth", "netns", space)
        sh("ip", "link", "set", end, "mtu", str(self.mtu), "up")
        self.within(space, "ip", "link", "set", "eth", "mtu", str(self.mtu), "up")
        self.give_addresses(number)
        # A veth has no hardware to cut a super-packet for the wire; a NIC in a bump's place would never see one.
        self.within(space, "ethtool", "-K", "eth", "tso", "off", "gso", "off")

    def give_addresses(self, number):
        space = (self.left, self.right)[number - 1]
        self.within(space, "ip", "address", "add", f"10.99.0.{number}/24", "dev", "eth")
        self.within(space, "ip", "address", "add", f"fd99::{number}/64", "dev", "eth", "nodad")

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

    def child_within(self, space, *words, **more):
        return self.child("ip", "netns", "exec", space, *words, **more)

    def receiver(self, space, file):
        """Keeps the frames that arrive at a host until finish()."""
        process = self.child_within(space, PYTHON, str(HERE / "wire_tool.py"), "receive", "eth", str(file), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def finish(self, process):
        """Tells a child that no more is to come, and returns what it has to say."""
        out, error = process.communicate(timeout=HANGS)
        self.assertEqual(process.returncode, 0, error)
        return out

    def until(self, condition, what):
        end = time.monotonic() + HANGS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def ask(self, run, command, parameter=None):
        """An answer of the run's telemetry socket."""
        with Client(run_folder(run.name) / SOCKET) as client:
            return client.cmd(command, parameter)

    def settle(self, *runs):
        """Returns when the runs have taken all that came, one after the other, and hold nothing."""
        for run in runs:
            self.until(Rest(lambda: self.ask(run, "/rocebox/run")), "the run did not come to rest")

    def more_packets(self, run, port, count):
        """Returns when so many more have come in at a port."""
        def taken():
            return self.ask(run, "/rocebox/port", port)["live"]["rx_packets"]
        before = taken()
        self.until(lambda: taken() >= before + count, "packets come in")

    def iperf_server(self, space):
        """For one client; it listens when this returns."""
        server = self.child_within(space, "iperf3", "-s", "-1", "--forceflush")
        said = ""
        while "Server listening" not in said:
            line = server.stdout.readline()
            self.assertTrue(line, said)
            said += line
        return server

    def start(self, path="a <-> z", more="", *words):
        """Starts the bump between the two ends; returns the process once packets flow."""
        # Room for what a host sends while the bump waits for a CPU.
        ports = f"  a: {{af_packet: {self.left_end}, rx_descriptors: 2048}}\n  z: {{af_packet: {self.right_end}, rx_descriptors: 2048}}\n"
        return self.start_with(ports, f"bump: {{path: {path}{', ' + more if more else ''}}}", *words)

    def start_with(self, ports, devices="bump: {path: a <-> z}", *words, pool="small: 8192, large: 1024, giant: 16", more=""):
        """Starts `rocebox run` with these ports; returns the process once packets flow."""
        config = self.dir / "run.yaml"
        config.write_text(f"devices: {{{devices}}}\nports:\n{ports}pool: {{{pool}}}\n{more}")
        process = self.child(ROCEBOX, "run", str(config), "--json", "-", *words)
        said = process.stderr.readline()
        self.assertIn(" port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        process.name = re.match(r"rocebox run (\S+): ", said).group(1)
        return process

    def stop(self, process, how=signal.SIGINT, kept=0):
        """Ends the run and returns its report, whose books must balance."""
        process.send_signal(how)
        out, error = process.communicate(timeout=HANGS)
        self.assertEqual(process.returncode, 0, error)
        report = json.loads(out)
        check_books(self, report, kept)
        return report


def main():
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(finish.SKIPPED)
    finish.main()
