#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""vm.py and build_image.sh without a boot: what they refuse, whom they end, what they leave."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import bed

sys.path.insert(0, str(bed.VM))
import machine as machines  # noqa: E402


class VmTest(unittest.TestCase):
    def setUp(self):
        folder = bed.scratch()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.state = self.folder / ("a long name " * 12).strip()  # longer than a socket's path may be

    def vm(self, *words, status=0):
        done = subprocess.run([bed.VM / "vm.py", *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def start(self, *words, status=0, tap="tap7"):
        return self.vm("start", "--state", self.state, "--tap", tap, "--address", "10.77.0.7/24", "--wait", "0",
                       "--image", os.environ["ROCEBOX_VM_IMAGE"], *words, status=status)

    def tap(self, mtu):
        bed.sh("ip", "tuntap", "add", "tap7", "mode", "tap")
        self.addCleanup(bed.sh, "ip", "link", "del", "tap7")
        bed.sh("ip", "link", "set", "tap7", "mtu", str(mtu))

    def test_refuses_before_anything_is_started(self):
        self.assertIn("ip tuntap add nosuch mode tap", self.start(tap="nosuch", status=1))
        self.tap(1500)
        self.assertIn("ip link set tap7 up", self.start(status=1))
        bed.sh("ip", "link", "set", "tap7", "up")
        self.assertIn("ip link set tap7 mtu 4200", self.start("--mtu", "4200", status=1))
        self.assertIn("build_image.sh", self.start("--image", self.folder, status=1))
        for words, said in ((("--address", "10.0.0.1"), "10.0.0.1/24"), (("--address", "x/3"), "`x/3` is no IP address"),
                            (("--mtu", "64"), "from 1280"), (("--name", "a,b"), "no host name"), (("--mac", "1"), "no MAC")):
            self.assertIn(said, self.start(*words, status=2))
        self.assertFalse(self.state.exists())

    def test_a_machine_ends_by_stop_and_leaves_nothing(self):
        self.tap(1500)
        bed.sh("ip", "link", "set", "tap7", "up")
        self.start()
        pid = json.loads((self.state / "machine.json").read_text())["pid"]
        self.assertIn("qemu", pathlib.Path(f"/proc/{pid}/comm").read_text())
        self.assertIn("runs in", self.start(status=1))
        other = self.folder / "other"
        said = self.vm("start", "--state", other, "--tap", "tap7", "--address", "10.77.0.8/24", "--image",
                       os.environ["ROCEBOX_VM_IMAGE"], status=1)
        self.assertIn("busy", said, "two machines on one TAP")
        self.assertFalse(other.exists())
        self.vm("stop", "--state", self.state)
        self.assertIsNone(machines.start_time(pid))
        self.assertFalse(self.state.exists())
        self.vm("stop", "--state", self.state)

    def test_what_a_killed_start_left_is_ended_by_stop(self):
        self.tap(1500)
        bed.sh("ip", "link", "set", "tap7", "up")
        start = subprocess.Popen([bed.VM / "vm.py", "start", "--state", self.state, "--tap", "tap7", "--address",
                                  "10.77.0.7/24", "--image", os.environ["ROCEBOX_VM_IMAGE"]])
        found = machines.Machine(self.state)
        while not found.running():
            self.assertIsNone(start.poll())
            time.sleep(0.01)
        start.kill()
        start.wait()
        self.assertTrue(found.running())
        self.vm("stop", "--state", self.state)
        self.assertFalse(found.running())

    def test_a_machine_that_cannot_boot_says_why_and_is_taken_down(self):
        self.tap(1500)
        bed.sh("ip", "link", "set", "tap7", "up")
        (self.folder / "vmlinux").write_bytes(b"no kernel")
        (self.folder / "initramfs.cpio").write_bytes(b"")
        said = self.start("--image", self.folder, "--wait", "60", status=1)
        self.assertIn("the machine ended", said)
        self.assertIn("kernel", said)
        self.assertFalse(self.state.exists())

    def test_stop_never_ends_another_process(self):
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(lambda: (other.kill(), other.wait()))
        ours = {"name": "vm", "pid": other.pid, "start_time": machines.start_time(other.pid), "boot_id": machines.boot_id()}
        for change in ({"start_time": ours["start_time"] - 1}, {"boot_id": "another boot"}):
            self.state.mkdir()
            (self.state / "machine.json").write_text(json.dumps({**ours, **change}))
            self.assertIn("ended", self.vm("exec", "--state", self.state, "--", "true", status=125))
            self.vm("stop", "--state", self.state)
            self.assertIsNone(other.poll())
            self.assertFalse(self.state.exists())
            self.assertIn("no machine runs", self.vm("exec", "--state", self.state, "--", "true", status=125))
        self.state.mkdir()
        (self.state / "machine.json").write_text(json.dumps(ours))  # the test can fail: this one is ended
        (self.state / "notes").write_text("not ours to remove")
        self.vm("stop", "--state", self.state)
        self.assertIsNotNone(other.wait(5))
        self.assertEqual([path.name for path in self.state.iterdir()], ["notes"])

    def test_build_image_refuses_bad_arguments(self):
        for words, said in ((["--frog"], "unknown option `--frog`"), (["--kernel-package", "nosuch.deb"], "no file `nosuch.deb`"),
                            (["a", "b"], "one folder")):
            done = subprocess.run([bed.VM / "build_image.sh", *words], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_image_is_made_once_of_the_same_things(self):
        again = subprocess.run([bed.VM / "build_image.sh"], capture_output=True, text=True)
        self.assertEqual((again.stdout.strip(), again.stderr), (os.environ["ROCEBOX_VM_IMAGE"], ""))


if __name__ == "__main__":
    bed.main()
