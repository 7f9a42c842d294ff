#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A live switch: hosts in namespaces reach each other through it, in one subnet and across two."""
import os

import bed

ROUTER = "02:00:00:00:ff:01"


class SwitchTest(bed.BedTest):
    def ports(self):
        tap = f"rbt{os.getpid() % 100000}"
        return (f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n"
                f"  t: {{tap: {tap}}}\n")

    def mac(self, space):
        return self.within(space, "cat", "/sys/class/net/eth/address").strip()

    def counters(self, report):
        return report["devices"]["s"]["kernels"]["switch"]["counters"]

    def test_hosts_of_one_subnet_find_each_other(self):
        run = self.start_with(self.ports(), "s: {switch: {ports: [a, z, t], strict: true}}")
        self.within(self.left, "ping", "-c", "20", "-i", "0.01", "-W", "2", "10.99.0.2")
        self.within(self.left, "ping", "-6", "-c", "5", "-i", "0.01", "-W", "2", "fd99::2")
        report = self.stop(run)
        counters = self.counters(report)
        self.assertGreaterEqual(counters["macs_learnt"], 2)
        self.assertGreater(counters["flooded"], 0)
        self.assertEqual(counters["strict_violations"], 0)
        ports = report["devices"]["s"]["ports"]
        self.assertGreater(ports["t"]["tx_packets"], 0, "the first ARP request")
        self.assertLess(ports["t"]["tx_packets"], 20, "what is for one host goes to that host")

    def test_hosts_of_two_subnets_are_routed(self):
        routes = ", ".join(f"{{prefix: 10.98.{n}.0/24, via: [{{port: {port}, mac: '{self.mac(space)}'}}]}}"
                           for n, port, space in ((1, "a", self.left), (2, "z", self.right)))
        run = self.start_with(self.ports(), f"s: {{switch: {{ports: [a, z, t], forward: {{router_mac: '{ROUTER}', routes: [{routes}]}}}}}}")
        for n, space in ((1, self.left), (2, self.right)):
            self.within(space, "ip", "address", "add", f"10.98.{n}.1/24", "dev", "eth")
            self.within(space, "ip", "neigh", "replace", f"10.98.{n}.254", "lladdr", ROUTER, "dev", "eth")
            self.within(space, "ip", "route", "add", "10.98.0.0/16", "via", f"10.98.{n}.254")
        out = self.within(self.left, "ping", "-c", "10", "-i", "0.01", "-W", "2", "10.98.2.1")
        self.assertIn("ttl=63", out)
        expired = bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "1", "-t", "1", "-W", "1", "10.98.2.1"],
                                     capture_output=True)
        self.assertNotEqual(expired.returncode, 0)
        self.assertEqual(self.counters(self.stop(run))["drop_ttl"], 1)

    def test_one_core_only(self):
        config = self.dir / "run.yaml"
        config.write_text(f"devices: {{s: {{switch: {{ports: [a, z, t]}}}}}}\nports:\n{self.ports()}live: {{shards: 2}}\n")
        done = bed.subprocess.run([bed.ROCEBOX, "run", str(config)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("run.yaml:1:14: device `s` is a switch, whose tables and buffer are one: it runs on one core", done.stderr)


if __name__ == "__main__":
    bed.main()
