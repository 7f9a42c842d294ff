#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ordinary traffic between two hosts through ports of other kinds: TAP, memif, AF_XDP."""
import re

import bed

HUGEPAGES = 400  # of 2 MiB


class Kinds(bed.BedTest):
    def check_traffic(self):
        lost = re.search(r"(\d+)% packet loss", self.within(self.left, "ping", "-c", "5", "-i", "0.1", "10.99.0.2"))
        self.assertEqual(lost.group(1), "0")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-s", "4000", "fd99::2")
        # Checksum offload is on in the hosts: what they left unfinished must be finished on the way.
        server = self.iperf_server(self.right)
        for way in ([], ["-R"]):
            if way:
                server = self.iperf_server(self.right)
            self.assertIn("iperf Done", self.within(self.left, "iperf3", "-c", "10.99.0.2", "-n", "10M", *way))
            server.wait(bed.HANGS)

    def test_a_tap(self):
        bed.sh("ip", "link", "del", self.right_end)
        tap = f"rbT{bed.os.getpid() % 100000}"
        run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{tap: {tap}}}\n", "bump: {path: a <-> inspect <-> z}")
        bed.sh("ip", "link", "set", tap, "netns", self.right, "name", "eth")
        self.within(self.right, "ip", "link", "set", "eth", "up")
        self.give_addresses(2)
        self.check_traffic()
        arrived = int(self.within(self.right, "cat", "/sys/class/net/eth/statistics/rx_packets"))
        report = self.stop(run)
        self.assertEqual([port["is"] for port in report["ports"]], [f"af_packet {self.left_end}", f"tap {tap}"])
        # A last one may have come between the two counts.
        self.assertAlmostEqual(report["ports"][1]["tx_packets"], arrived, delta=10)

    def test_memif_between_two_processes(self):
        for inner in ("server", "client"):
            end = {"server": self.left_end, "client": self.right_end}[inner]
            process = self.start_with(f"  a: {{af_packet: {end}}}\n"
                                      f"  z: {{memif: {{socket: {self.dir}/m.sock, id: 7, role: {inner}}}}}\n")
            if inner == "server":
                first = process
        self.check_traffic()
        for run in (process, first):
            report = self.stop(run)
            self.assertGreater(report["ports"][1]["tx_packets"], 100)
        self.assertFalse((self.dir / "m.sock").exists())

    def test_back_pressure_is_counted(self):
        # A memif server whose client has not come takes nothing; a null port brings packets as fast as can be.
        run = self.start_with(f"  a: {{net_null: {{packet_bytes: 64}}}}\n  z: {{memif: {{socket: {self.dir}/m.sock, role: server}}}}\n")
        self.until(lambda: self.ask(run, "/rocebox/port", "bump.z")["live"]["tx_full"] > 10_000, "the port is full")
        report = self.stop(run)
        brings, takes = report["ports"]
        self.assertEqual(takes["tx_packets"], 0)
        self.assertEqual(takes["tx_full"], brings["rx_packets"], "each packet that came was counted as dropped")

    def test_hugepages_are_used_where_there_are_enough(self):
        number, free = bed.pathlib.Path("/proc/sys/vm/nr_hugepages"), r"HugePages_Free:\s+(\d+)"
        before = number.read_text()
        try:
            number.write_text(str(int(before) + HUGEPAGES))
        except OSError as error:
            self.skipTest(f"hugepages cannot be reserved: {error}")
        self.addCleanup(number.write_text, before)
        meminfo = bed.pathlib.Path("/proc/meminfo")
        left = int(re.search(free, meminfo.read_text()).group(1))
        if left < HUGEPAGES:
            self.skipTest(f"the kernel gives {left} hugepages of {HUGEPAGES}")
        ports = "  a: {net_null: {packet_bytes: 64}}\n  z: {net_null: {packet_bytes: 64}}\n"
        report = self.stop(self.start_with(ports))
        self.assertIs(report["run"]["hugepages"], True)
        self.assertGreater(report["ports"][1]["tx_packets"], 0)
        self.assertEqual(int(re.search(free, meminfo.read_text()).group(1)), left, "they are given back")

    def test_af_xdp(self):
        ports = f"  a: {{af_xdp: {self.left_end}}}\n  z: {{af_xdp: {self.right_end}}}\n"
        config = self.dir / "try.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports:\n{ports}pool: {{small: 16384}}\n")
        tried = bed.subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "200ms"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest("this kernel or DPDK has no AF_XDP here: " + tried.stderr.strip())
        # One that is killed leaves its XDP program on the interfaces: the next one takes over, and clears it away.
        killed = self.start_with(ports, pool="small: 16384")
        killed.kill()
        killed.wait()
        self.assertIn("xdp", bed.sh("ip", "-d", "link", "show", self.left_end))
        for path in ("a <-> z", "a <-> inspect <-> z"):  # checksums are finished where nothing looks at packets, too
            run = self.start_with(ports, f"bump: {{path: {path}}}", pool="small: 16384, large: 1024, giant: 16")
            self.check_traffic()
            # The driver keeps what it has sent until it needs the room.
            report = self.stop(run, kept=2 * 2048)
            self.assertGreater(sum(port["rx_checksums_finished"] for port in report["ports"]), 100, path)
        self.assertNotIn("xdp", bed.sh("ip", "-d", "link", "show", self.left_end))


if __name__ == "__main__":
    bed.main()
