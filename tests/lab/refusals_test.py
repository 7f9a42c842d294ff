#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `rocebox run` refuses before anything is started: exit 2, one message with the place, the cause and the mend."""
import shutil
import socket

import bed

UNPRIVILEGED = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Refusals(bed.BedTest):
    def refused(self, ports, *said, more="", words=(), by=()):
        config = self.dir / "bad.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports:\n{ports}pool: {{small: 8192}}\n{more}")
        interfaces = bed.sh("ip", "link")  # with their MTUs
        done = bed.subprocess.run([*by, bed.ROCEBOX, "run", str(config), "--duration", "1s", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(bed.sh("ip", "link"), interfaces, "nothing half-up stays behind")
        self.assertEqual(done.stdout, "")
        for word in said:
            self.assertIn(word, done.stderr)
        self.assertLessEqual(done.stderr.count("\n"), 2, done.stderr)

    def test_ports(self):
        null = "  z: {net_null: {}}\n"
        self.refused("  a: {af_packet: nosuch0}\n" + null, "bad.yaml:3:", "no network interface `nosuch0`", "ip link")
        self.refused(f"  a: {{tap: {self.left_end}}}\n" + null, "exists already", "another name")
        self.refused("  a: {devargs: 'net_null7,size=frog'}\n" + null, "bad.yaml:3:", "net_null7")
        self.refused("  a: {devargs: net_nosuch0}\n" + null, "cannot open `net_nosuch0`")
        self.refused("  a: {pci: '0000:ff:1f.7'}\n" + null, "vfio-pci")
        self.refused(f"  a: {{af_packet: {self.left_end}, mtu: 9000, tap: x}}\n" + null, "more than one thing")
        self.refused("  a: {pcap: {out: x.pcap}}\n", "packets come from nowhere")
        self.refused("  a: {net_null: {}}\n  z: {devargs: 'net_null8,size=64', rx_descriptors: 32768}\n", "raise `pool: small:`")
        # A driver that takes the pool for itself when it is opened would leave nothing to forward with.
        capture = bed.write_pcap(self.dir / "long.pcap", [(number, 60, bytes(60)) for number in range(8000)])
        self.refused(f"  a: {{devargs: 'net_pcap7,rx_pcap={capture},infinite_rx=1'}}\n" + null, "raise `pool: small:`")

    def test_a_nic_beyond_its_ports_mtu(self):
        config = self.dir / "nic.yaml"
        for mtu, refused in ((", mtu: 9000", True), ("", True), (", mtu: 1500", False)):
            config.write_text(f"devices: {{n: {{nic: {{address: 10.99.0.9{mtu}}}}}}}\nports: {{n.wire: {{af_packet: {self.left_end}}}}}\n")
            done = bed.subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "100ms"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2 if refused else 0, done.stdout + done.stderr)
            if refused:
                self.assertRegex(done.stderr, r"nic\.yaml:2:\d+: .*its MTU is 1500, and `nic` makes IP packets of up to 4192 bytes for it: "
                                              r"give the NIC the port's MTU as its `mtu`, or raise the port's MTU")

    def test_ports_that_cannot_be(self):
        null = "  z: {net_null: {}}\n"
        self.refused("  a: {pci: frog}\n" + null, "bad.yaml:3:", "`lspci -D`", "`frog`")
        self.refused("  a: {tap: a-name-of-20-letters}\n" + null, "bad.yaml:3:", "at most 15 characters")
        self.refused("  a: {tap: rbxtap, mtu: 9000}\n" + null, "bad.yaml:3:", "MTU can be at most 1504", "not 9000")
        self.refused("  a: {devargs: 'net_af_packet7,iface=nosuch0'}\n" + null, "bad.yaml:3:", "nosuch0")

    def test_memif_sockets(self):
        null = "  z: {net_null: {}}\n"
        a = f"  a: {{memif: {{socket: {self.dir}/%s, role: %s}}}}\n" + null
        self.refused(a % ("nosuch/m.sock", "server"), "bad.yaml:3:", f"folder `{self.dir}/nosuch`", "No such file")
        self.refused(a % ("m.sock", "client"), "bad.yaml:3:", "nobody listens", "start the server first")
        self.refused(a % ("m" * 120, "server"), "bad.yaml:3:", "at most")
        (self.dir / "m.sock").write_text("not a socket")
        self.refused(a % ("m.sock", "server"), "bad.yaml:3:", "in the way: remove it")
        run = self.start_with(a % ("busy.sock", "server"))
        run.kill()
        run.communicate()
        run = self.start_with(a % ("busy.sock", "server"))  # the socket of one that was killed is in nobody's way
        for _ in range(20):  # a refusal must not disturb the one that runs
            self.refused(a % ("busy.sock", "server"), "bad.yaml:3:", "another process is the server")
        self.stop(run)

    def test_a_tap_of_another_process(self):
        run = self.start_with(f"  a: {{tap: {self.left}}}\n  z: {{net_null: {{}}}}\n")
        self.refused(f"  a: {{tap: {self.left}}}\n  z: {{net_null: {{}}}}\n", "exists already", "another name")
        run.send_signal(bed.signal.SIGINT)
        self.assertEqual(run.wait(60), 0)

    def test_capabilities(self):
        if not shutil.which("setpriv"):
            self.skipTest("setpriv is not installed")
        self.dir.chmod(0o755)
        if bed.subprocess.run([*UNPRIVILEGED, bed.ROCEBOX, "--version"], capture_output=True).returncode != 0:
            self.skipTest("the user nobody cannot run " + bed.ROCEBOX)
        null = "  z: {net_null: {}}\n"
        packet = f"  a: {{af_packet: {self.left_end}%s}}\n" + null
        nobody = [*UNPRIVILEGED, "--inh-caps=-all", "--bounding-set=-all"]
        self.refused(packet % "", "bad.yaml:3:", "give the capability CAP_NET_RAW\n", by=nobody)
        self.refused("  a: {tap: rbxtap}\n" + null, "bad.yaml:3:", "CAP_NET_ADMIN;", by=nobody)
        self.refused(f"  a: {{af_xdp: {self.left_end}}}\n" + null, "bad.yaml:3:", "CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN", by=nobody)
        raw = [*UNPRIVILEGED, "--inh-caps=-all,+net_raw", "--ambient-caps=-all,+net_raw"]
        self.refused(packet % ", mtu: 2000", "cannot be set to 2000", "CAP_NET_ADMIN", by=raw)
        config = self.dir / "good.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports:\n{packet % ', mtu: 1500'}")
        done = bed.subprocess.run([*raw, bed.ROCEBOX, "run", str(config), "--duration", "200ms"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + ": CAP_NET_RAW is all that it needs")

    def test_mtus(self):
        two = f"  a: {{af_packet: {self.left_end}%s}}\n  z: {{af_packet: {self.right_end}%s}}\n"
        bed.sh("ip", "link", "set", self.left_end, "mtu", "9000")
        self.refused(two % ("", ""), "bad.yaml:4:", "its MTU is 1500", "`bump.a`", "is 9000", "write `mtu: 1500` here")
        self.refused(two % (", mtu: 9000", ""), "bad.yaml:4:", "its MTU is 1500")
        self.stop(self.start_with(two % ("", ", mtu: 1500")))
        self.assertIn("mtu 1500", bed.sh("ip", "link", "show", self.right_end))
        self.stop(self.start_with(two % ("", ", mtu: 9000")))
        self.assertIn("mtu 9000", bed.sh("ip", "link", "show", self.right_end))
        # What a kernel makes must fit as well, with another kernel behind it too; also where `mtu:` is written.
        for end in (self.left_end, self.right_end):
            bed.sh("ip", "link", "set", end, "mtu", "1500")
        config = self.dir / "gateway.yaml"
        for path, small, refused in (("a <-> lowar <-> z", "", True), ("a <-> lowar <-> link <-> z", ", mtu: 1500", True),
                                     ("z <-> link <-> lowar <-> a", "", True), ("a <-> lowar <-> z", "roce_mtu: 1024", False)):
            mtu, options = (small, "") if small.startswith(",") else ("", small)
            config.write_text(f"devices: {{gateway: {{path: {path}, kernels: {{lowar: {{{options}}}}}}}}}\nports:\n{two % ('', mtu)}"
                              "pool: {small: 8192}\n")
            done = bed.subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "100ms"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2 if refused else 0, done.stderr)
            if refused:
                self.assertRegex(done.stderr, r"gateway.yaml:[34]:.*its MTU is 1500, and `lowar` makes IP packets of up to 4\d+ bytes for it: "
                                 "lower `roce_mtu`")
        bed.sh("ip", "link", "set", self.left_end, "mtu", "9000")
        # Over a link, too; devices that nothing joins may differ.
        far = "one: {path: a <-> w}, two: {path: w <-> z}"
        bed.sh("ip", "link", "set", self.right_end, "mtu", "1500")
        config = self.dir / "bad.yaml"
        config.write_text(f"devices: {{{far}}}\nlinks: {{l: {{between: [one.w, two.w]}}}}\nports:\n{two % ('', '')}")
        done = bed.subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "1s"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("`one.a`", done.stderr)
        self.stop(self.start_with(two % ("", "") + "  one.w: {ring: x}\n  two.w: {ring: x}\n", far))

    def test_cores_and_expectations(self):
        ports = "  a: {net_null: {}}\n  z: {net_null: {}}\n"
        self.refused(ports, "core 4000 is not there", words=("--cores", "4000"))
        self.refused(ports, "--duration", words=("--duration", "soon"))
        self.refused(ports, "bad.yaml:6", "did you mean `rx_packets`", more="expect: [bump.a.rx_packet > 0]\n")

    def test_words_for_eal(self):
        null = "  a: {net_null: {}}\n  z: {net_null: {}}\n"
        self.refused(null, "does not take the arguments behind `--` (--frog)", "unrecognized option '--frog'", words=("--", "--frog"))

    def test_an_expectation_that_does_not_hold_is_status_1(self):
        config = self.dir / "run.yaml"
        config.write_text("devices: {bump: {path: a <-> z}}\nports: {a: {ring: r}, z: {ring: r}}\n"
                          "pool: {small: 8192}\nexpect: [bump.a.rx_packets > 0, 'ports[port=bump.a].tx_full == 0']\n")
        done = bed.subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "300ms"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"no +bump.a.rx_packets > 0 +0 +0")
        self.assertIn("run.yaml:4:10: expected `bump.a.rx_packets > 0`: `bump.a.rx_packets` is 0\n", done.stderr)
        self.assertRegex(done.stdout, r"yes +ports\[port=bump.a\].tx_full == 0")


if __name__ == "__main__":
    bed.main()
