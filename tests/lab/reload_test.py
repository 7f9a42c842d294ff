#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SIGHUP while numbered packets flow: none is lost, what can change changes, what cannot is refused."""
import signal

import bed
import numbered


class Reload(bed.BedTest):
    def begin(self, options):
        self.run_ = self.start("a <-> inspect <-> wan <-> z", f"kernels: {{wan: {{type: link, {options}}}}}")
        self.config = self.dir / "run.yaml"

    def rewrite(self, before, after):
        text = self.config.read_text()
        self.assertIn(before, text)
        self.config.write_text(text.replace(before, after))

    def hang_up(self, until):
        """Sends SIGHUP and reads what the run says, up to the line that has `until`."""
        self.run_.send_signal(signal.SIGHUP)
        said = ""
        while until not in said:
            line = self.run_.stderr.readline()
            self.assertTrue(line, said)
            said += line
        return said

    def test_no_numbered_packet_is_lost_or_overtaken(self):
        self.begin("delay: 2ms, packets: 4096")
        # What the kernel keeps until it knows the neighbour's address it may lose, and sends beside what comes after it.
        self.within(self.left, "ping", "-c", "1", "10.99.0.2")
        receiver, sender = numbered.start(self, "10.99.0.2")
        delays = ["2ms", "0", "5ms", "100us", "1ms"]
        for before, after in zip(delays, delays[1:]):
            self.more_packets(self.run_, "bump.a", 500)
            self.rewrite(f"delay: {before},", f"delay: {after},")
            self.assertIn("devices.bump.kernels.wan.delay is now", self.hang_up("delay is now"))
        sent = int(self.finish(sender))
        self.settle(self.run_)
        received = [int(number) for number in self.finish(receiver).split()]
        self.assertGreater(sent, 1000)
        self.assertEqual(received, list(range(sent)))
        report = self.stop(self.run_)
        self.assertEqual(report["devices"]["bump"]["counters"]["packets_dropped"], 0)

    def test_loss_can_be_switched_on_and_off(self):
        self.begin("loss: 0%")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.2")
        self.rewrite("loss: 0%", "loss: 100%")
        self.hang_up("loss is now 100%")
        lost = bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "3", "-i", "0.1", "-W", "1", "10.99.0.2"],
                                  capture_output=True, text=True)
        self.assertIn("100% packet loss", lost.stdout)
        self.rewrite("loss: 100%", "loss: 0%")
        self.hang_up("loss is now 0")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.2")
        report = self.stop(self.run_)
        self.assertGreaterEqual(report["devices"]["bump"]["kernels"]["wan"]["counters"]["forward_drop_loss"], 3)

    def test_the_command_says_what_came_of_it(self):
        self.run_ = self.start("a <-> wan <-> z", "kernels: {wan: {type: link, loss: 0%}}", "--name", f"reload{bed.os.getpid()}")
        self.config = self.dir / "run.yaml"
        command = [bed.ROCEBOX, "reload", f"reload{bed.os.getpid()}"]
        self.rewrite("loss: 0%", "loss: 100%")
        done = bed.subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("devices.bump.kernels.wan.loss is now 100%, was 0", done.stdout)
        self.rewrite("small: 8192", "small: 4096")
        done = bed.subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"pool\.small is 8192 and would be 4096.*\n.*stays in force")
        self.stop(self.run_)
        done = bed.subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, "the run is over")

    def test_a_pipeline_is_read_again_too(self):
        pipeline = self.dir / "wire.yaml"
        pipeline.write_text("path: a <-> wan <-> z\nkernels: {wan: {type: link, delay: 1ms}}\n")
        ports = f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n"
        self.run_ = self.start_with(ports, "bump: {pipeline: wire.yaml, kernels: {wan: {loss: 0%}}}")
        self.config = pipeline
        self.rewrite("delay: 1ms", "delay: 30ms")
        self.assertIn("devices.bump.kernels.wan.delay is now 30ms, was 1ms", self.hang_up("delay is now"))
        ping = self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.2")
        self.assertGreater(float(ping.split("min/avg/max/mdev = ")[1].split("/")[0]), 59)
        self.rewrite("delay: 30ms", "dely: 30ms")
        self.assertRegex(self.hang_up("stays in force"), r"wire\.yaml:2:29: unknown key `dely`; did you mean `delay`\?\n.*stays in force")
        self.stop(self.run_)

    def test_what_cannot_change_is_refused_and_the_old_stays(self):
        self.begin("loss: 0%")
        good = self.config.read_text()
        for before, after, reason in (
                ("loss: 0%", "loss: 100%, packets: 128", r"packets.*cannot be changed while the link runs"),
                ("small: 8192", "small: 4096", r"pool\.small is 8192 and would be 4096"),
                ("a <-> inspect <-> wan", "a <-> wan", r"devices\.bump\.path"),
                ("loss: 0%", "loss: lots", r"run\.yaml:1:\d+: .*loss"),
                ("devices:", "device:", r"did you mean `devices`")):
            with self.subTest(after):
                self.rewrite(before, after)
                said = self.hang_up("stays in force")
                self.assertRegex(said, reason)
                self.config.write_text(good)
        self.assertIn("nothing is new", self.hang_up("nothing is new"))
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.2")
        self.stop(self.run_)

    def test_of_very_many_reasons_some_are_told(self):
        self.begin("loss: 0%")
        good = self.config.read_text()
        others = "".join(f", d{i}: {{path: p <-> q}}" for i in range(40))
        self.rewrite("devices: {", f"devices: {{x: {{path: p <-> q}}{others}, ")
        said = self.hang_up("stays in force")
        self.assertLessEqual(said.count("\n"), 20, said)
        self.assertRegex(said, "more differences|devices")
        self.config.write_text(good)
        self.stop(self.run_)


if __name__ == "__main__":
    bed.main()
