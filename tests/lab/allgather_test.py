#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Four ranks of multicast collectives, each a `rocebox run` of its own in a network namespace of its own, over a switch that
snoops and over a routed tree, each of whose wires loses 1% of all RoCE packets."""
import json

import bed

RANKS = 4
GROUPS = 2
# The members' own processes wait for each other, and for a machine that is busy with other things.
NIC = "group_reports: new, cm_response_timeout: 17, mtu: 1500"
TEAM = "mtu: 1024, staging: 512KiB, alpha: 50ms, timeout: 60s, local_ack_timeout: 18, join_timeout: 110s"
ROUTER = "02:00:00:00:ff:0"


class FourHosts(bed.BedTest):
    """Four namespaces without addresses: their veths' ends here are self.ends."""

    def setUp(self):
        super().setUp()
        tag = f"{bed.os.getpid() % 100000}"
        more = [(f"rb{letter}{tag}", f"rb{letter.upper()}{tag}") for letter in "mn"]
        self.spaces = [self.left, self.right, *(space for space, _ in more)]
        self.ends = [self.left_end, self.right_end, *(end for _, end in more)]
        for space, end in more:
            self.addCleanup(bed.subprocess.run, ["ip", "netns", "del", space], capture_output=True)
            self.addCleanup(bed.subprocess.run, ["ip", "link", "del", end], capture_output=True)
            bed.sh("ip", "netns", "add", space)
            bed.sh("ip", "link", "add", end, "type", "veth", "peer", "name", "eth", "netns", space)
        for space, end in zip(self.spaces, self.ends):
            # No stack has anything to say there.
            self.within(space, "ip", "address", "flush", "dev", "eth")
            self.within(space, "sysctl", "-qw", "net.ipv6.conf.eth.disable_ipv6=1")
            bed.sh("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
            self.within(space, "ip", "link", "set", "eth", "up")
            bed.sh("ip", "link", "set", end, "up")

    def give_addresses(self, number):
        pass

    def network(self, switches, wires, spy=""):
        """A run of the switches; each host's wire is a bump and a link that loses. `wires`: the switches' ports, by host."""
        config = self.dir / "network.yaml"
        text = "devices:\n" + switches
        text += "".join(f"  w{i}: {{path: host <-> net}}\n" for i in range(RANKS))
        text += "links:\n"
        for name, ends in ([(f"l{i}", f"w{i}.net, {port}") for i, port in enumerate(wires[:RANKS])] +
                           [(f"t{i}", ends) for i, ends in enumerate(wires[RANKS:])]):
            text += f"  {name}: {{between: [{ends}], match: {{kind: roce}}, loss: 1%}}\n"
        text += "ports:\n" + "".join(f"  w{i}.host: {{af_packet: {end}, rx_descriptors: 4096}}\n" for i, end in enumerate(self.ends))
        config.write_text(text + spy + "pool: {small: 32768, large: 1024, giant: 16}\nlive: {idle: interrupt}\n")
        return self.begin(self.child(bed.ROCEBOX, "run", str(config), "--json", "-", "--seed", "3"))

    def begin(self, process):
        said = process.stderr.readline()
        self.assertIn(" port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        process.name = bed.re.match(r"rocebox run (\S+): ", said).group(1)
        return process

    def rank(self, number, address, more, workloads):
        config = self.dir / f"rank{number}.yaml"
        config.write_text(f"devices: {{nic: {{nic: {{address: {address}, {NIC}{more}}}}}}}\nworkloads:\n{workloads}"
                          f"ports: {{nic.wire: {{af_packet: eth, rx_descriptors: 4096}}}}\npool: {{small: 12288, large: 512, giant: 16}}\nlive: {{idle: interrupt}}\n")
        return self.child_within(self.spaces[number], bed.ROCEBOX, "run", str(config), "--json", "-")

    def collectives(self, addresses, more):
        """An Allgather of two subgroups and two chains, then a Broadcast, at all ranks; their reports."""
        ranks = f"ranks: [{', '.join(addresses)}], hosts: [nic], {TEAM}"
        workloads = (f"  gather: {{type: multicast_allgather, size: 200KiB, chains: 2, subgroups: {GROUPS}, iterations: 2, {ranks}}}\n"
                     f"  cast: {{type: multicast_broadcast, size: 500KiB, root: 1, group: 239.1.1.0, port: 18520, after: [gather], {ranks}}}\n")
        processes = [self.rank(i, address, more(i), workloads) for i, address in enumerate(addresses)]
        reports = []
        for process in processes:
            out, error = process.communicate(timeout=4 * bed.HANGS)
            self.assertEqual(process.returncode, 0, error)
            reports.append(json.loads(out))
        return reports

    def all_is_right(self, reports):
        fetched = 0
        for number, report in enumerate(reports):
            bed.check_books(self, report)
            for name, whole in (("gather", 2), ("cast", 1)):
                details = report["workloads"][name]["details"]
                self.assertEqual((details["rank_number"], details["ranks"], details["error"]), (number, RANKS, ""))
                self.assertEqual((details["released_whole"], details["not_released"]), (whole, 0), details)
                self.assertEqual((details["wrong_bytes"], details["wrong_blocks"], details["bad_messages"], details["chunks_of_strangers"]),
                                 (0, 0, 0, 0), details)
                self.assertGreater(details["chunks_received"] if (name, number) != ("cast", 1) else 1, 0, details)
                fetched += details["bytes_fetched"]
        self.assertGreater(fetched, 0, "what was lost came by the fetch ring")

    def lost(self, network):
        report = self.stop(network)
        return report, sum(link["counters"][f"{way}_drop_loss"] for link in report["links"].values() for way in ("forward", "reverse"))

    def test_a_switch_that_snoops(self):
        spy = self.dir / "spy.pcap"
        switch = ("  s:\n    switch:\n      ports: [p0, p1, p2, p3, spy]\n      programs: [forward, snooping]\n"
                  "      snooping: {unknown: drop, querier: true, querier_address: 10.99.0.254}\n")
        network = self.network(switch, [f"s.p{i}" for i in range(RANKS)], f"  s.spy: {{pcap: {{out: {spy}}}}}\n")
        self.all_is_right(self.collectives([f"10.99.0.{i + 1}" for i in range(RANKS)], lambda i: ""))
        report, lost = self.lost(network)
        self.assertGreater(lost, 0)
        counters = report["devices"]["s"]["kernels"]["switch"]["counters"]
        self.assertGreaterEqual(counters["reports"], RANKS)
        # Who has not joined gets what is flooded (questions for addresses), and no chunk.
        seen = bed.read_pcap(spy)[0]
        self.assertEqual([frame for _, _, frame in seen if frame[:3] == b"\x01\x00\x5e" and frame[23] == 17], [])
        self.assertGreater(len(seen), 0)

    def test_a_routed_tree(self):
        """Two leaves and a spine. Chunks go down their group's tree, all else by routes from subnet to subnet."""
        def switch(number, ports, routes, to_groups):
            vias = ", ".join(f"{{prefix: {prefix}, via: [{{port: {port}, mac: '{mac}'}}]}}" for prefix, port, mac in routes)
            groups = ", ".join(f"{{mac: '01:00:5e:01:{last}', group: 1}}" for last in ("00:00", "00:01", "01:00"))
            return (f"  s{number}:\n    switch:\n      ports: [{', '.join(ports)}]\n"
                    f"      multicast_groups: [{{group: 1, ports: [{', '.join(to_groups)}]}}]\n"
                    f"      forward: {{router_mac: '{ROUTER}{number}', routes: [{vias}], macs: [{groups}], unknown: drop_all}}\n")

        def mac(host):
            return f"02:00:00:00:aa:0{host}"

        address = {host: f"10.99.{1 + host // 2}.{1 + host}" for host in range(RANKS)}
        leaves = [switch(leaf, ["a", "b", "up"],
                         [(f"{address[2 * leaf + i]}/32", "ab"[i], mac(2 * leaf + i)) for i in range(2)] +
                         [(f"10.99.{2 - leaf}.0/24", "up", f"{ROUTER}2")], ["a", "b", "up"]) for leaf in range(2)]
        spine = switch(2, ["x", "y"], [(f"10.99.{1 + leaf}.0/24", "xy"[leaf], f"{ROUTER}{leaf}") for leaf in range(2)], ["x", "y"])
        network = self.network("".join(leaves) + spine, ["s0.a", "s0.b", "s1.a", "s1.b", "s0.up, s2.x", "s1.up, s2.y"])
        reports = self.collectives(list(address.values()), lambda host: f", mac: '{mac(host)}', prefix_bits: 32, gateway: 169.254.0.1, "
                                   f"neighbors: [{{address: 169.254.0.1, mac: '{ROUTER}{host // 2}'}}]")
        self.all_is_right(reports)
        report, lost = self.lost(network)
        self.assertGreater(lost, 0)
        self.assertEqual(report["devices"]["s2"]["counters"]["packets_held"], 0)
        # Each chunk crosses the spine once.
        sent = sum(r["workloads"][name]["details"]["datagrams_sent"] for r in reports for name in ("gather", "cast"))
        self.assertEqual(sent, RANKS * 2 * 200 + 500)


if __name__ == "__main__":
    bed.main()
