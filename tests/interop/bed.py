# SPDX-License-Identifier: BSD-3-Clause
"""Two virtual machines with Linux's Soft-RoCE, each on a TAP, and `rocebox run` as the wire between the two TAPs.

All of it lives in namespaces of its own (network, mounts, processes) that end with this process, however it ends."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import finish  # noqa: E402
import priority  # noqa: E402

priority.come_first()
VM = ROOT / "configs" / "lab" / "vm"
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build" / "release" / "rocebox"))
BOOT_SECONDS = 180  # 5 on an idle machine
UNSHARE = ["unshare", "--net", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child"]
if os.geteuid() != 0:
    UNSHARE += ["--map-root-user"]


def sh(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_image():
    """Builds what the machines boot, or finds it built; skips the test when that cannot be done here."""
    built = subprocess.run([VM / "build_image.sh"], stdout=subprocess.PIPE, text=True)
    if built.returncode == finish.SKIPPED:
        print("skipped: no image of the machines; the reason stands above")
    if built.returncode != 0:
        sys.exit(built.returncode)
    return built.stdout.strip()


def why_not():
    """Why such a bed cannot be made here; empty when it can."""
    for tool, package in (("qemu-system-x86_64", "qemu-system-x86"), ("ip", "iproute2")):
        if not shutil.which(tool):
            return f"{tool} is not installed: apt-get install {package}"
    probe = subprocess.run(UNSHARE + ["sh", "-c", "ip tuntap add probe0 mode tap"], capture_output=True, text=True)
    if probe.returncode != 0:
        return "no TAP in a network namespace of its own: " + probe.stderr.strip()
    return ""


def scratch():
    """A folder for one run. `ROCEBOX_BED` is whose: the process outside, by which a later run knows that this one ended."""
    return tempfile.TemporaryDirectory(prefix=f"rocebox-interop-{os.environ['ROCEBOX_BED']}-")


def remove_what_killed_runs_left():
    for folder in pathlib.Path(tempfile.gettempdir()).glob("rocebox-interop-*-*"):
        if not pathlib.Path("/proc", folder.name.split("-")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def main():
    """Runs the tests of the main module inside namespaces of their own."""
    if "ROCEBOX_BED" in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
        finish.main()
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(finish.SKIPPED)
    remove_what_killed_runs_left()
    environment = dict(os.environ, ROCEBOX_BED=str(os.getpid()), ROCEBOX_VM_IMAGE=build_image())
    os.execvpe(UNSHARE[0], UNSHARE + [sys.executable, *sys.argv], environment)  # who kills this process kills all of it


class Machine:
    """One virtual machine: `left` with 10.77.0.1 or `right` with 10.77.0.2, through the command vm.py."""

    def __init__(self, name, number, folder):
        self.name, self.state, self.tap = name, folder / name, f"tap{number}"
        self.address, self.address6 = f"10.77.0.{number}", f"fd77::{number}"
        sh("ip", "tuntap", "add", self.tap, "mode", "tap")
        # This side of a TAP has no stack of its own to say anything.
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{self.tap}/disable_ipv6").write_text("1")
        # A READ's answers may all be on their way while the host gives this machine no time.
        sh("ip", "link", "set", self.tap, "mtu", "4200", "txqueuelen", "8192", "up")

    def boot(self):
        """Begins to boot; the process that is returned ends when the machine runs commands."""
        return subprocess.Popen([VM / "vm.py", "start", "--state", self.state, "--name", self.name, "--tap", self.tap,
                                 "--address", f"{self.address}/24", "--address", f"{self.address6}/64", "--memory", "384",
                                 "--image", os.environ["ROCEBOX_VM_IMAGE"], "--wait", str(BOOT_SECONDS)])

    def command(self, words, seconds=60):
        return [VM / "vm.py", "exec", "--state", self.state, "--timeout", str(seconds), "--", *map(str, words)]

    def run(self, *words, seconds=60):
        return sh(*self.command(words, seconds))

    def begin(self, *words, seconds=60):
        return subprocess.Popen(self.command(words, seconds), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait_for_listener(self, port, seconds):
        """Until a program that was begun listens; `seconds` is what it has itself, so that none is given up before it is."""
        self.run("sh", "-c", f"until grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.2; done",
                 seconds=seconds)

    def begin_counters(self):
        """Asks for Soft-RoCE's own counts; `counters` takes the answer."""
        return self.begin("sh", "-c", "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *")

    @staticmethod
    def counters(asked):
        said = asked.communicate()[0]
        assert asked.returncode == 0, said
        return {name: int(value) for name, value in (line.split(":") for line in said.split())}

    def set_mtu(self, mtu):
        self.run("ip", "link", "set", "eth0", "mtu", mtu)

    def stop(self):
        sh(VM / "vm.py", "stop", "--state", self.state)


class BedTest(unittest.TestCase):
    """Machines that all tests of a class share; each test starts the wire that it wants."""

    @classmethod
    def setUpClass(cls):
        folder = scratch()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        sh("ip", "link", "set", "lo", "up")
        cls.left, cls.right = (Machine(name, number, cls.folder) for number, name in enumerate(("left", "right"), 1))
        begun = time.monotonic()
        boots = [machine.boot() for machine in (cls.left, cls.right)]
        for machine in (cls.left, cls.right):
            cls.addClassCleanup(machine.stop)
        if any([boot.wait() for boot in boots]):  # a list: each is waited for
            raise AssertionError("a machine did not boot")
        print(f"both machines are up after {time.monotonic() - begun:.1f} s", flush=True)

    def start(self, link=""):
        """Starts the wire; `link` is its loss or other faults. Returns the process once packets flow."""
        config = self.folder / "wire.yaml"
        config.write_text(f"""
devices:
  wire:
    path: left <-> near <-> link <-> far <-> right
    kernels:
      near: {{type: inspect}}
      far: {{type: inspect}}
      link: {{{link}}}
ports:
  left: {{af_packet: {self.left.tap}, rx_descriptors: 4096}}
  right: {{af_packet: {self.right.tap}, rx_descriptors: 4096}}
live: {{idle: interrupt}}   # the machines need the cores
""")
        process = subprocess.Popen([ROCEBOX, "run", config, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(self.end, process)
        said = process.stderr.readline()
        self.assertIn("2 port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def stop(self, process):
        """Ends the wire and returns its report, whose books must balance."""
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        report = json.loads(out)
        self.assertEqual(report["run"]["pool_in_use"], report["run"]["pool_idle"], "every packet is back")
        counters = report["devices"]["wire"]["counters"]
        self.assertEqual(counters["packets_in"] + counters["packets_made"],
                         counters["packets_out"] + counters["packets_delivered"] + counters["packets_dropped"] + counters["packets_held"])
        for port in report["ports"]:
            for name in ("rx_missed", "rx_errors", "rx_no_packet", "rx_too_long", "tx_full", "tx_too_long", "tx_errors"):
                self.assertEqual(port[name], 0, f"{port['port']}: {name}")
        return report

    def pair(self, *words, seconds=120):
        """Runs a verbs program, the server on the left; returns what both said, after both ended with status 0."""
        BedTest.tcp_port += 1
        words += ("-p", BedTest.tcp_port)
        server = self.left.begin(*words, seconds=seconds)
        begun = time.monotonic()
        try:
            self.left.wait_for_listener(BedTest.tcp_port, seconds)
            client = self.right.run(*words, self.left.address, seconds=seconds)
        except AssertionError as error:
            subprocess.run(self.left.command(["killall", words[0]]), capture_output=True)
            raise AssertionError(f"{error}\nthe server said: {server.communicate()[0]}") from None
        said = server.communicate()[0]
        self.assertEqual(server.returncode, 0, said)
        result = [line for line in client.splitlines() if line.strip(" -")][-1]
        print(f"  {' '.join(map(str, words))}: {time.monotonic() - begun:.1f} s: {' '.join(result.split())}", flush=True)
        return said + client

    def quiet_counters(self):
        """Soft-RoCE's counts on the left and on the right, once nothing moves any more."""
        before = None
        while True:
            asked = [machine.begin_counters() for machine in (self.left, self.right)]
            now = [Machine.counters(each) for each in asked]
            if now == before:
                return now
            before = now

    tcp_port = 18515
