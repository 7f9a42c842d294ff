#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A live switch: hosts in namespaces reach each other through it, in one subnet and across two."""
import json
import os
from collections import Counter

import bed
import numbered

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

    def roce_packets(self, run):
        return self.ask(run, "/rocebox/device", "s")["counters"].get("rx_roce", 0)

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

    def test_a_route_moves_under_traffic_and_nothing_is_lost(self):
        """Numbered packets to a host with two interfaces, by one of them and, after each reload, by the other."""
        target, second = "10.98.2.1", self.right_end.replace("rbR", "rbQ")
        self.addCleanup(bed.subprocess.run, ["ip", "link", "del", second], capture_output=True)
        bed.sh("ip", "link", "add", second, "type", "veth", "peer", "name", "eth1", "netns", self.right)
        for words in (["ip", "link", "set", "eth1", "up"], ["ip", "address", "add", f"{target}/32", "dev", "lo"],
                      ["ip", "link", "set", "lo", "up"], ["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0"],
                      *(["sysctl", "-qw", f"net.ipv4.conf.{eth}.rp_filter=0"] for eth in ("eth", "eth1"))):
            self.within(self.right, *words)
        bed.sh("ip", "link", "set", second, "up")
        macs = {port: self.within(self.right, "cat", f"/sys/class/net/{eth}/address").strip()
                for port, eth in (("z", "eth"), ("y", "eth1"))}

        def routes(port, more=""):
            return f"routes: [{{prefix: 10.98.2.0/24, via: [{{port: {port}, mac: '{macs[port]}'}}]}}{more}]"
        ports = f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n  y: {{af_packet: {second}}}\n"
        acl = "acl: {rules: [{name: numbered, match: {protocol: udp, destination_port: 9000}}]}"
        run = self.start_with(ports, f"s: {{switch: {{ports: [a, z, y], programs: [acl, forward], {acl}, "
                                     f"forward: {{router_mac: '{ROUTER}', {routes('z')}}}}}}}", "--name", self.left_end)
        self.within(self.left, "ip", "address", "add", "10.98.1.1/24", "dev", "eth")
        self.within(self.left, "ip", "neigh", "replace", "10.98.1.254", "lladdr", ROUTER, "dev", "eth")
        self.within(self.left, "ip", "route", "add", "10.98.2.0/24", "via", "10.98.1.254")
        receiver, sender = numbered.start(self, target)
        config, current = self.dir / "run.yaml", routes("z")
        default = f", {{prefix: 0.0.0.0/0, via: [{{port: z, mac: '{macs['z']}'}}]}}"
        for new in (routes("y"), routes("z", default), routes("y", default), routes("z"), routes("y")):
            self.more_packets(run, "s.a", 500)
            config.write_text(config.read_text().replace(current, new))
            current = new
            done = bed.subprocess.run([bed.ROCEBOX, "reload", self.left_end], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("forward.routes[0].via[0].port is now", done.stdout)
        self.more_packets(run, "s.a", 500)
        sent = int(self.finish(sender))
        self.settle(run)
        arrived = list(map(int, self.finish(receiver).split()))
        self.assertEqual(sorted(arrived), list(range(sent)))
        config.write_text(config.read_text().replace(f"'{ROUTER}'", f"'{ROUTER[:-1]}2'"))
        done = bed.subprocess.run([bed.ROCEBOX, "reload", self.left_end], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("`forward.router_mac` cannot be changed while it runs; only multicast_groups", done.stderr)
        device = self.stop(run)["devices"]["s"]
        for port in ("z", "y"):
            self.assertGreater(device["ports"][port]["tx_packets"], 1000)
        rules = {row["rule"]: row["packets"] for row in device["kernels"]["switch"]["acl"]["rules"]}
        self.assertEqual(rules["numbered"], sent, "counted on over every reload")

    def test_load_is_balanced(self):
        """WRITEs of nine QPs over three equal ports; tests/replay/balance_test.py judges each packet, by times that a replay has."""
        frames = [frame for name in ("multi_qp", "perftest_write") for frame in bed.roce_frames(bed.CAPTURES / f"{name}.pcap")
                  if 6 <= frame[42] <= 8]  # the opcodes of RC WRITE, which a balancer may spread
        macs = {":".join(f"{byte:02x}" for byte in frame[:6]) for frame in frames}
        paths = ["p1", "p2", "p3"]
        sent = self.dir / "sent.pcap"
        bed.write_pcap(sent, [(number, len(frame), frame) for number, frame in enumerate(frames)])
        ports = f"  a: {{af_packet: {self.left_end}}}\n" + "".join(f"  {path}: {{pcap: {{out: {path}.pcap}}}}\n" for path in paths)
        self.within(self.left, "sysctl", "-qw", "net.ipv6.conf.eth.disable_ipv6=1")  # its packets would count as flowlets
        for balance in ("flow", "flowlet, flowlet_gap: 1s", "random", "least_queue"):
            with self.subTest(balance):
                forward = {"learning": False, "macs": [{"mac": mac, "ports": paths} for mac in macs]}
                run = self.start_with(ports, f"s: {{switch: {{ports: [a, p1, p2, p3], forward: {{{json.dumps(forward)[1:-1]}, balance: {balance}}}}}}}")
                self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth", str(sent), "200")
                # Where the machine is loaded, some are under way yet.
                self.until(lambda: self.roce_packets(run) >= len(frames), "all frames have come")
                self.settle(run)
                flowlets = self.counters(self.stop(run)).get("flowlets", 0)
                path_of = {frame: path for path in paths for frame in bed.roce_frames(self.dir / f"{path}.pcap")}
                self.assertEqual(path_of.keys(), set(frames), "all of them, as they came")
                by_path = Counter(path_of.values())
                if balance in ("random", "least_queue"):  # a third each, five standard deviations at most away
                    for path in paths:
                        self.assertLess(abs(by_path[path] - len(frames) / 3), 5 * (len(frames) * 2 / 9) ** 0.5, by_path)
                    continue
                flows = {}  # source and destination of UDP tell these apart
                for frame in frames:
                    flows.setdefault(frame[34:38], []).append(path_of[frame])
                self.assertEqual(len(flows), 9)
                moves = sum(before != path for flow in flows.values() for before, path in zip(flow, flow[1:]))
                # A machine that stands still for a second makes a silence.
                self.assertLessEqual(moves, flowlets - len(flows) if flowlets else 0)
                self.assertLess(moves, len(frames) / 10)

    def test_an_access_list_is_reloaded(self):
        everything = "{name: all, match: {protocol: icmp}}"
        acl = f"acl: {{rules: [{everything}]}}"
        run = self.start_with(self.ports(), f"s: {{switch: {{ports: [a, z, t], programs: [acl, forward], {acl}}}}}", "--name", self.left_end)
        config = self.dir / "run.yaml"
        good = config.read_text()

        def ping():
            return bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "4", "-i", "0.02", "-W", "1", "10.99.0.2"],
                                      capture_output=True).returncode == 0

        def reload(rules):
            config.write_text(good.replace(everything, rules))
            return bed.subprocess.run([bed.ROCEBOX, "reload", self.left_end], capture_output=True, text=True)
        self.assertTrue(ping())
        self.assertEqual(reload("{name: stop, match: {protocol: icmp, source: 10.99.0.2}, action: drop}, " + everything).returncode, 0)
        self.assertFalse(ping(), "requests pass, answers do not")
        refused = reload("{match: {source: 10.99.0.2/8}}")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"run\.yaml:1:\d+: `source` has address bits behind its length.*\n.*stays in force")
        self.assertFalse(ping())
        self.assertEqual(reload(everything).returncode, 0)
        self.assertTrue(ping())
        switch = self.stop(run)["devices"]["s"]["kernels"]["switch"]
        self.assertEqual(switch["counters"]["drop_acl"], 8)
        rules = {row["rule"]: row["packets"] for row in switch["acl"]["rules"]}
        self.assertEqual(rules["all"], 2 * 8 + 2 * 4, "kept over the reloads: both ways of two pings, requests of two")

    def test_the_packet_generator_keeps_time(self):
        """In a switch alone, and in one whose packets go on to another device."""
        frame = "02 00 00 00 00 77 02 00 00 00 00 78 88 b5" + " 00" * 46
        switch = ("{switch: {ports: [a, z, t], packet_generator: [{port: a, every: 1ms, times: 1000, "
                  f"packet: {{hex: '{frame}'}}}}], forward: {{macs: [{{mac: '02:00:00:00:00:77', ports: [z]}}]}}}}}}")
        ports = self.ports()
        for devices, ports, more in ((f"s: {switch}", ports, ""),
                                     (f"s: {switch}, b: {{path: in <-> out}}", ports.replace("  z:", "  out:"),
                                      "links: {l: {between: [s.z, b.in], delay: 10us}}\n")):
            with self.subTest(more):
                run = self.start_with(ports, devices, more=more)
                told = {}

                def all_came():
                    told.update(self.ask(run, "/rocebox/kernel", "s.switch"))
                    return told["counters"]["generated"] + told["counters"]["generator_missed"] >= 1000
                self.until(all_came, "a thousand packets, made or missed")
                self.assertGreaterEqual(told["elapsed_ns"], 999 * 10**6, "none comes early")
                self.settle(run)
                report = self.stop(run)
                counters = self.counters(report)
                self.assertEqual(counters["generated"] + counters["generator_missed"], 1000)
                self.assertGreater(counters["generated"], 0)
                self.assertGreaterEqual(report["devices"]["s"]["ports"]["z"]["tx_packets"], counters["generated"])

    def test_one_core_only(self):
        config = self.dir / "run.yaml"
        config.write_text(f"devices: {{s: {{switch: {{ports: [a, z, t]}}}}}}\nports:\n{self.ports()}live: {{shards: 2}}\n")
        done = bed.subprocess.run([bed.ROCEBOX, "run", str(config)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("run.yaml:1:14: device `s` is a switch, whose tables and buffer are one: it runs on one core", done.stderr)


if __name__ == "__main__":
    bed.main()
