# SPDX-License-Identifier: BSD-3-Clause
"""Two processes with libsdr in two network namespaces, and between them a bump that loses, reorders and duplicates:
messages of random sizes arrive whole. `sdr_test.py --messages N` sends more of them."""
import os
import pathlib
import subprocess
import sys
import unittest

import bed

BUILD = pathlib.Path(bed.ROCEBOX).resolve().parent
MESSAGES = 40
BAD_LINE = "link: {loss: 1%, reorder: 1%, duplicate: 1%, jitter: 50us, jitter_reorders: true}"


class SdrTest(bed.BedTest):
    def config(self, number):
        file = self.dir / f"nic{number}.yaml"
        file.write_text(f"devices: {{nic: {{nic: {{address: 10.98.0.{number}, prefix_bits: 24, dpa: {{heap: 64MiB}}}}}}}}\n"
                        "ports: {nic.wire: {af_packet: eth, rx_descriptors: 2048}}\n"
                        "pool: {small: 16384, large: 1024, giant: 16}\nlive: {idle: interrupt}\n")
        return file

    def program(self, number, name, *words, **environment):
        space = (self.left, self.right)[number - 1]
        env = {**os.environ, "SDR_CONFIG": str(self.config(number)), "SDR_USE_UC_QP": "1", **environment}
        return self.child_within(space, str(BUILD / name), *words, env=env)

    def both(self, name, *words, **environment):
        """Runs a program at both ends, the right one as the receiver; what each has printed."""
        receiver = self.program(2, name, *words, **environment)
        sender = self.program(1, name, *words, "10.99.0.2", **environment)
        said = []
        for process in (sender, receiver):
            out, error = process.communicate(timeout=bed.HANGS + MESSAGES)
            self.assertEqual((process.returncode, error), (0, ""), out)
            said.append(out)
        return said

    def test_messages_arrive_whole_over_a_bad_line(self):
        bump = self.start("a <-> link <-> z", f"kernels: {{{BAD_LINE}}}")
        for layer in ("sr", "nack", "mds", "xor"):
            with self.subTest(layer=layer):
                for line in self.both("sdr_write_bw", "-d", "nic", "-r", layer, "-n", str(MESSAGES), "-m", "1", "-s", "150000",
                                      "-k", "11", "-v", "-q", "6"):
                    self.assertRegex(line, rf"^{MESSAGES} messages, .* 0 wrong\n$")
        counters = self.stop(bump)["devices"]["bump"]["kernels"]["link"]["counters"]
        self.assertGreater(sum(count for name, count in counters.items() if "loss" in name), 0, counters)

    def test_an_example_sees_what_has_come(self):
        bump = self.start()
        sender, receiver = self.both("sdr_example", "nic")
        self.assertEqual(sender, "sent\n")
        self.assertEqual(receiver, "64 of 64 chunks, 0 wrong bytes, immediate 0xc0ffee\n")
        self.stop(bump)

    def test_misuse_is_told_in_one_line(self):
        bump = self.start()
        for one in (self.program(2, "sdr_example", "none"), self.program(1, "sdr_example", "none", "10.99.0.2")):
            _, error = one.communicate(timeout=bed.HANGS)
            self.assertEqual(one.returncode, 1)
            self.assertRegex(error, r"\Asdr: sdr_context_create: .* has no NIC `none`; it has nic\n\Z")
        self.stop(bump)

    def test_calls_that_are_mistakes_are_errors(self):
        env = {**os.environ, "SDR_CONFIG": str(self.config(1))}
        said = self.within(self.left, bed.PYTHON, str(bed.HERE / "sdr_misuse.py"), str(BUILD / "libsdr.so"), env=env,
                           timeout=bed.HANGS)
        self.assertRegex(said, r"^\d\d mistakes\n$")


def main():
    global MESSAGES
    if len(sys.argv) > 2 and sys.argv[1] == "--messages":
        MESSAGES = int(sys.argv[2])
        del sys.argv[1:3]
    bed.main()


if __name__ == "__main__":
    main()
