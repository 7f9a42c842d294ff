# SPDX-License-Identifier: BSD-3-Clause
"""Two processes with libsdr in two network namespaces, and between them a bump that loses, reorders and duplicates:
messages of random sizes arrive whole; and two side by side, over memif and over TAPs. `sdr_test.py --messages N` sends more of them."""
import os
import pathlib
import re
import sys

import bed

BUILD = pathlib.Path(bed.ROCEBOX).resolve().parent
MESSAGES = 40
BAD_LINE = "link: {loss: 1%, reorder: 1%, duplicate: 1%, jitter: 50us, jitter_reorders: true}"


class SdrTest(bed.BedTest):
    def config(self, number, kind="af_packet"):
        file = self.dir / f"nic{number}.yaml"
        port, idle = {
            "af_packet": ("af_packet: eth, rx_descriptors: 2048", "interrupt"),
            "tap": (f"tap: sdr{number}", "interrupt"),
            # Its other end wakes nobody who sleeps.
            "memif": (f"memif: {{socket: {self.memif}, id: 3, role: {('server', 'client')[number - 1]}}}", "pause"),
        }[kind]
        file.write_text(f"devices: {{nic: {{nic: {{address: 10.98.0.{number}, prefix_bits: 24, mtu: 1500, dpa: {{heap: 64MiB}}}}}}}}\n"
                        f"ports: {{nic.wire: {{{port}}}}}\n"
                        f"pool: {{small: 16384, large: 1024, giant: 16}}\nlive: {{idle: {idle}}}\n")
        return file

    @property
    def memif(self):
        return self.dir / "m.sock"

    def memif_listens(self):
        """Told by the kernel's table: whoever connects to a memif and says nothing disturbs its server."""
        for line in self.within(self.left, "cat", "/proc/net/unix").splitlines()[1:]:
            _, _, _, flags, _, _, _, *path = line.split(maxsplit=7)
            if path == [str(self.memif)] and int(flags, 16) & 0x10000:  # it accepts connections
                return True
        return False

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

    def test_workers_on_the_dpa_post_what_is_sent(self):
        bump = self.start("a <-> link <-> z", f"kernels: {{{BAD_LINE}}}")
        words = ("sdr_write_bw", "-d", "nic", "-n", str(MESSAGES), "-m", "1", "-s", "150000", "-k", "11", "-v", "-q", "6")
        offloaded = {"SDR_DPA_TX_OFFLOADING_ENABLE": "1", "SDR_DPA_TX_NUM_WORKERS": "2"}
        for line in self.both(*words, **offloaded):
            self.assertRegex(line, rf"^{MESSAGES} messages, .* 0 wrong\n$")
        self.stop(bump)

    def side_by_side(self, number, kind, *more, **environment):
        """A process with transmit workers in the left namespace; number 1 receives."""
        words = ("sdr_write_bw", "-d", "nic", "-n", str(MESSAGES), "-m", "1", "-s", "150000", "-k", "11", "-v", "-p", "7473")
        env = {**os.environ, "SDR_CONFIG": str(self.config(number, kind)), "SDR_USE_UC_QP": "1",
               "SDR_DPA_TX_OFFLOADING_ENABLE": "1", "SDR_DPA_TX_PROFILE_STATS_REPORT": "1", **environment}
        return self.child_within(self.left, str(BUILD / words[0]), *words[1:], *more, env=env)

    def check_side_by_side(self, sender, receiver, batch=16, arrivals=""):
        """`batch` is how many packets a batch has at most; `arrivals` what else is said at the end, of what came."""
        for process, sends in ((sender, True), (receiver, False)):
            out, error = process.communicate(timeout=bed.HANGS + MESSAGES)
            self.assertRegex(out, rf"^{MESSAGES} messages, .* 0 wrong\n$", error)
            self.assertEqual(process.returncode, 0, error)
            # A line of DPDK's own may follow: its memif frees twice where both ends close at once.
            said = re.match(rf"\A{arrivals}sdr: 4 transmit workers: (?P<packets>\d+) packets in (?P<batches>\d+) batches, \d+ activations\n"
                            r"(EAL: [^\n]*\n)*\Z", error)
            self.assertTrue(said, error)
            packets, batches = int(said["packets"]), int(said["batches"])
            self.assertEqual(packets > 0, sends)
            self.assertGreaterEqual(batches * batch, packets)
            self.assertEqual(batches == packets, batch == 1 or not sends)

    def test_messages_arrive_whole_over_memif(self):
        self.within(self.left, "ip", "link", "set", "lo", "up")
        receiver = self.side_by_side(1, "memif")
        # A client whose server does not listen is refused.
        self.until(lambda: receiver.poll() is not None or self.memif_listens(), "the memif listens")
        self.check_side_by_side(self.side_by_side(2, "memif", "10.99.0.1"), receiver)

    def test_messages_arrive_whole_over_taps(self):
        self.within(self.left, "ip", "link", "add", "bridge", "type", "bridge")
        self.within(self.left, "ip", "link", "set", "bridge", "up")
        # Over RC, whose sender fails at the first receiver that is not ready.
        reliable = {"SDR_USE_UC_QP": "0", "SDR_NO_RC_RNR_RETRY": "1", "SDR_SEND_CTX_SWR_BATCH_SIZE": "1",
                    "SDR_DPA_RX_PROFILE_STATS_REPORT": "1"}
        receiver, sender = (self.side_by_side(1, "tap", **reliable), self.side_by_side(2, "tap", "10.99.0.1", **reliable))

        def links():
            return self.within(self.left, "ip", "-o", "link")
        self.until(lambda: receiver.poll() is not None or sender.poll() is not None or ("sdr1:" in links() and "sdr2:" in links()),
                   "there are two TAPs")
        for tap in ("sdr1", "sdr2"):
            self.within(self.left, "ip", "link", "set", tap, "master", "bridge", "up")
        self.within(self.left, "ip", "link", "set", "lo", "up")  # until now they could not find each other
        self.check_side_by_side(sender, receiver, 1, r"sdr: receive workers: \d+ packets set a bit, \d+ of them the last of a chunk and "
                                                     r"\d+ of a message; [^\n]*\n")

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

    def test_the_environment_is_obeyed(self):
        env = {**os.environ, "SDR_CONFIG": str(self.config(1))}
        said = self.within(self.left, bed.PYTHON, str(bed.HERE / "sdr_environment.py"), str(BUILD / "libsdr.so"), env=env,
                           timeout=bed.HANGS)
        self.assertEqual(said, "obeyed\n")

    def test_threads_call_at_once(self):
        env = {**os.environ, "SDR_CONFIG": str(self.config(1))}
        said = self.within(self.left, bed.PYTHON, str(bed.HERE / "sdr_threads.py"), str(BUILD / "libsdr.so"), env=env,
                           timeout=bed.HANGS)
        self.assertEqual(said, "done\n")


def main():
    global MESSAGES
    if len(sys.argv) > 2 and sys.argv[1] == "--messages":
        MESSAGES = int(sys.argv[2])
        del sys.argv[1:3]
    bed.main()


if __name__ == "__main__":
    main()
