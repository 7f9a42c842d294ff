#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The systemd unit: its keys are known, and `rocebox run` does its work as an ordinary user with the unit's capabilities."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from command_help import ROCEBOX, ROOT

sys.path.insert(0, str(ROOT / "tests"))
import finish  # noqa: E402

UNIT = ROOT / "configs/systemd/rocebox@.service"
NOBODY = "65534"


def keys(text):
    """{key: all its values} of a unit."""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.M):
        found.setdefault(key, []).extend(value.split())
    return found


class Unit(unittest.TestCase):
    def test_is_known_to_systemd(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd is not installed")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "rocebox@test.service"
            copy.write_text(re.sub(r"^(Exec\w+)=rocebox ", rf"\1={ROCEBOX} ", UNIT.read_text(), flags=re.M))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_says_what_the_command_does(self):
        unit = keys(UNIT.read_text())
        self.assertEqual(unit["Type"], ["notify"])
        self.assertEqual(unit["RestartPreventExitStatus"], ["2"])
        self.assertEqual(unit["ExecStart"], ["rocebox", "run", "/etc/rocebox/%i.yaml"])
        self.assertEqual(unit["AmbientCapabilities"], unit["CapabilityBoundingSet"])


class Manager:
    """A service manager's socket, under a path: abstract names end at the network namespace."""
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o666)
        self.socket.settimeout(20)

    def heard(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())


@unittest.skipIf(os.geteuid() != 0 or not all(map(shutil.which, ("ip", "setpriv"))), "needs root, ip and setpriv")
class Unprivileged(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rocebox-service-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)
        shutil.copy(ROCEBOX, self.folder / "rocebox")  # the build may be where others cannot look
        # In a network namespace: its interfaces, and the TAPs that are made, end with it. `ip netns exec` mounts sysfs
        # anew, which is where DPDK finds CPUs.
        self.space = f"rbs{os.getpid()}"
        done = subprocess.run(["ip", "netns", "add", self.space], capture_output=True, text=True)
        if done.returncode:
            self.skipTest("network namespaces cannot be made: " + done.stderr)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.space])
        for words in (["add", "left", "type", "veth", "peer", "name", "right"], ["set", "left", "up"], ["set", "right", "up"]):
            subprocess.run(["ip", "-n", self.space, "link", *words], check=True)

    def command(self, ports, capabilities):
        """The words that run a bump between these ports as nobody with these capabilities alone."""
        config = self.folder / f"{self.space}.yaml"  # a name that no other run has
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports: {{a: {{{ports[0]}}}, z: {{{ports[1]}}}}}\n"
                          "pool: {small: 8192, large: 1024, giant: 16}\n")
        some = ",".join(["-all", *("+" + name.removeprefix("CAP_").lower() for name in capabilities)])
        return ["ip", "netns", "exec", self.space, "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs",
                "--inh-caps", some, "--ambient-caps", some, "--bounding-set", some, str(self.folder / "rocebox"), "run", str(config)]

    def run_as_service(self, *ports):
        """READY when packets flow, STOPPING at the signal, exit status 0."""
        path = self.folder / "notify"
        manager = Manager(path)
        self.addCleanup(manager.socket.close)
        process = subprocess.Popen(self.command(ports, keys(UNIT.read_text())["AmbientCapabilities"]), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, "NOTIFY_SOCKET": str(path)})
        try:
            ready = manager.heard()
            self.assertEqual(ready.get("READY"), "1")
            self.assertIn("2 port(s)", ready["STATUS"])
            process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.heard().get("STOPPING"), "1")
            said, _ = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            print(process.communicate()[0])
            raise
        self.assertEqual(process.returncode, 0, said)

    def test_packet_sockets_and_their_mtu(self):
        self.run_as_service("af_packet: left, mtu: 1400", "af_packet: right")

    def test_taps(self):
        if not os.access("/dev/net/tun", os.W_OK):
            self.skipTest("there is no /dev/net/tun")
        self.run_as_service("tap: rbtap0", "tap: rbtap1")

    def test_less_is_refused_before_anything_starts(self):
        for ports, capabilities, word in ((("af_packet: left", "af_packet: right"), ["CAP_NET_ADMIN"], "CAP_NET_RAW"),
                                          (("af_packet: left, mtu: 1400", "af_packet: right"), ["CAP_NET_RAW"], "not permitted")):
            done = subprocess.run(self.command(ports, capabilities), capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    finish.main()
