#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox run` as a bump between two hosts: what ordinary traffic meets, and what real RoCE traffic looks like behind."""
import re

import bed
from bed import roce_frames


class Ordinary(bed.BedTest):
    def test_ping_arp_discovery_tcp_and_fragments_pass_untouched(self):
        run = self.start("a <-> inspect <-> z")
        lost = re.search(r"(\d+)% packet loss", self.within(self.left, "ping", "-c", "5", "-i", "0.1", "10.99.0.2"))
        self.assertEqual(lost.group(1), "0")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "fd99::2")  # neighbour discovery over multicast
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-s", "8000", "10.99.0.2")  # in six fragments
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-s", "8000", "fd99::2")
        neighbours = self.within(self.left, "ip", "neighbour")
        self.assertRegex(neighbours, r"10\.99\.0\.2 .*lladdr")
        server = self.iperf_server(self.right)
        # Checksum offload is on in both hosts: without the bump's help no TCP packet would be taken.
        result = self.within(self.left, "iperf3", "-c", "10.99.0.2", "-n", "20M")
        self.assertIn("iperf Done", result)
        server.wait(bed.HANGS)
        report = self.stop(run)
        self.assertEqual(report["devices"]["bump"]["counters"]["packets_dropped"], 0)
        self.assertEqual(sum(port["tx_full"] for port in report["ports"]), 0)

    def test_super_packets_pass_as_they_would_over_the_veth_itself(self):
        for space in (self.left, self.right):
            self.within(space, "ethtool", "-K", "eth", "tso", "on", "gso", "on", "gro", "on")
        run = self.start("a <-> inspect <-> z")
        server = self.iperf_server(self.right)
        self.assertIn("iperf Done", self.within(self.left, "iperf3", "-c", "10.99.0.2", "-n", "50M"))
        server.wait(bed.HANGS)
        report = self.stop(run)
        port = report["devices"]["bump"]["ports"]["a"]
        self.assertGreater(port["rx_bytes"] / port["rx_packets"], 2 * self.mtu, "most came in super-packets")


class Roce(bed.BedTest):
    mtu = 4500

    def pass_through(self, capture, path="a <-> z", more="", *words):
        """Sends a capture from the left; returns what arrived on the right, and the run's report."""
        run = self.start(path, more, *words)
        arrived = self.dir / "arrived.pcap"
        receiver = self.receiver(self.right, arrived)
        self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth", str(capture))
        self.settle(run)
        report = self.stop(run)
        self.finish(receiver)
        return roce_frames(arrived), report

    def test_captures_arrive_complete_in_order_and_byte_identical(self):
        for name in ("rc_write.pcap", "rc_read_mtu4096.pcap", "multi_qp.pcap", "rc_write_ipv6.pcap"):
            capture = bed.CAPTURES / name
            with self.subTest(name):
                arrived, _ = self.pass_through(capture, "a <-> inspect <-> z")
                self.assertEqual(arrived, roce_frames(capture))

    def test_packets_of_one_shard_pair_stay_in_order_over_two_shards(self):
        capture = bed.CAPTURES / "multi_qp.pcap"
        arrived, report = self.pass_through(capture, "a <-> inspect <-> z", "", "--cores", "0,1")
        self.assertEqual(report["run"]["spread_by"], "software")
        self.assertEqual(arrived, roce_frames(capture))

    def test_the_loss_seen_is_the_loss_counted(self):
        capture = bed.CAPTURES / "multi_qp.pcap"
        arrived, report = self.pass_through(capture, "a <-> link <-> z", "kernels: {link: {loss: 10%, delay: 2ms, match: {kind: roce}}}")
        sent = roce_frames(capture)
        counters = report["devices"]["bump"]["kernels"]["link"]["counters"]
        lost = counters["forward_drop_loss"]
        self.assertGreater(lost, len(sent) // 20)
        self.assertEqual(len(sent) - len(arrived), lost)
        place = iter(sent)
        self.assertTrue(all(frame in place for frame in arrived), "what arrives is in order")


class Signals(bed.BedTest):
    def test_a_run_that_is_killed_leaves_a_working_system(self):
        run = self.start()
        run.kill()
        run.communicate()
        run = self.start()
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.2")
        self.stop(run)

    def test_what_a_link_holds_is_let_out_before_the_end(self):
        run = self.start("a <-> link <-> z", "kernels: {link: {delay: 3s}}")
        self.child_within(self.left, "ping", "-c", "1", "-W", "1", "10.99.0.2")
        self.until(lambda: self.ask(run, "/rocebox/run")["packets_held"] > 0, "the link holds a packet")
        report = self.stop(run)
        self.assertEqual(report["run"]["packets_held"], 0)


if __name__ == "__main__":
    bed.main()
