#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of a simulation's configuration: told with place and mend before anything starts."""
import csv
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
from common import RoceboxTest

# Two hosts whose NICs have four queue pairs each; `workloads:` follows in line 2.
FEW = "topology: {back_to_back: {host_rate: 10Gbps}, hosts: {nic: {header_only: true, queue_pairs: 4}}}\n"
PAIR = FEW.replace(", queue_pairs: 4", "")
STUCK = PAIR.replace("}}}", "}}, links: {loss: 100%}}")


class Mistakes(RoceboxTest):
    def refused(self, text, *words, files=()):
        """Both commands list it, and nothing has started."""
        for name, content in files:
            (self.dir / name).write_text(content)
        config = self.config(text)
        for command in ("sim", "check"):
            shown, said = self.rocebox(command, config, status=2)
            self.assertEqual(shown, "")
            for word in words:
                self.assertIn(word, said)

    def test_a_flow_names_a_host_that_is_not_there(self):
        flows = "workloads: {f: {type: flows, flows: [{source: 0, destination: 1}, {source: 1, destination: 9}]}}\n"
        self.refused(PAIR + flows, "config.yaml:2:16: workload `f`: `destination: 9` of entry 2 of `flows`", "there are 2, counted from 0, `h0` to `h1`")
        self.refused(PAIR + "workloads: {f: {type: flows, ns3: flows.txt}}\n",
                     "config.yaml:2:16: workload `f`: ", "flows.txt:2: there is no host `h7`", "`h0` to `h1`", files=[("flows.txt", "1\n0 7 3 1000 1\n")])

    def test_more_queue_pairs_than_a_nic_has(self):
        told = "workload `{}`: the NIC of `h0` has 4 queue pairs, and workloads on it need {}: give it `queue_pairs: {}`"
        twice = "workloads: {a: {type: write_bw, qp: 3, iters: 2}, b: {type: write_bw, qp: 3, iters: 2, after: [a]}}\n"
        together = ", ".join(["{source: 0, destination: 1, bytes: 1MiB}"] * 5)
        for text, name, needed in (("workloads: {w: {type: write_bw, qp: 8, iters: 2}}\n", "w", 8), (twice, "b", 6),
                                   (f"workloads: {{w: {{type: flows, flows: [{together}]}}}}\n", "w", 5)):
            self.refused(FEW + text, "config.yaml:2:", told.format(name, needed, needed))
            good = FEW.replace("queue_pairs: 4", f"queue_pairs: {needed}") + text
            self.rocebox("sim", self.config(good))
        rack = FEW.replace("back_to_back: {host_rate: 10Gbps}", "leaf_spine: {leaves: 1, spines: 1, hosts_per_leaf: 4}, switches: {switch: {}}")
        for ranks in "in_order", "shuffled":
            text = f"workloads: {{all: {{type: all_to_all, size: 64KiB, ranks: {ranks}}}}}\n"
            self.refused(rack + text, told.format("all", 6, 6))
            self.rocebox("sim", self.config(rack.replace("queue_pairs: 4", "queue_pairs: 6") + text))

        # Two neighbours and two partners of the barrier; and of each subgroup one to the group and, where datagrams are staged, a copier.
        for more, needed in ("", 6), (", transport: uc", 5), (", subgroups: 3", 10), (", communicators: 2, subgroups: 2", 16):
            text = f"workloads: {{w: {{type: multicast_allgather, size: 16KiB{more}}}}}\n"
            self.refused(rack + text, told.format("w", needed, needed))
            self.rocebox("sim", self.config(rack.replace("queue_pairs: 4", f"queue_pairs: {needed}") + text))

    def test_transfers_that_may_share_queue_pairs_are_no_mistake(self):
        one_by_one = ", ".join(f"{{source: 0, destination: 1, bytes: 1kB, start: {i}ms}}" for i in range(9))
        self.rocebox("sim", self.config(FEW + f"workloads: {{w: {{type: flows, flows: [{one_by_one}]}}}}\n"))
        together = ", ".join(["{source: 0, destination: 1, bytes: 1kB}"] * 9)
        self.rocebox("sim", self.config(FEW + f"workloads: {{w: {{type: flows, connections: 4, flows: [{together}]}}}}\n"))
        # Who is still under way then, nobody can know before.
        overlapping = ", ".join(f"{{source: 0, destination: 1, bytes: 1MiB, start: {i}us}}" for i in range(5))
        said = self.rocebox("sim", self.config(FEW + f"workloads: {{w: {{type: flows, flows: [{overlapping}]}}}}\n"), status=1)[1]
        self.assertRegex(said, "the NIC of `h[01]` has no queue pair left for its workloads: give it more than `queue_pairs: 4`")

    def test_times_of_what_stands_still_have_units(self):
        text = STUCK + "workloads: {w: {type: write_lat, iters: 3, timeout: 0, start: 1234567ns}}\n"
        said = self.rocebox("sim", self.config(text), status=1)[1]
        self.assertIn("nothing advances any more since 1234.567 us: nothing is due\nrocebox:   workload w:\n", said)
        self.assertRegex(said, r"host +qpn +peer .*\nrocebox: +h0 +0x000011 +h1 ")
        self.assertNotIn("{", said)

    def test_what_waits_is_named_by_its_host(self):
        star = STUCK.replace("back_to_back: {host_rate: 10Gbps}", "leaf_spine: {leaves: 1, spines: 1, hosts_per_leaf: 3}, switches: {switch: {}}")
        text = star + "workloads: {w: {type: flows, hosts: [h2, h0], timeout: 0, flows: [{source: 0, destination: 1}]}}\n"
        said = self.rocebox("sim", self.config(text), status=1)[1]
        self.assertRegex(said, r"source +destination +bytes .*\nrocebox: +h2 +h0 ")
        self.assertNotIn("SUCCESS", said, "it has not come to that")

    def test_work_requests_that_fail_are_a_failure(self):
        """Also within a time that would go on."""
        for workload, what in (("type: write_bw, iters: 10", "10 work requests failed, first `h0` to `h1`, QPN 0x000011: RETRY_EXC_ERR"),
                               ("type: read_lat, iters: 10", "a work request failed: `h0` to `h1`, QPN 0x000011: RETRY_EXC_ERR"),
                               ("type: flows, flows: [{source: 1, destination: 0}]", "a queue pair failed: `h1` to `h0`, QPN 0x000011: RETRY_EXC_ERR")):
            config = self.config(STUCK + f"workloads: {{w: {{{workload}}}}}\nsim: {{time: 2s}}\n")
            shown, said = self.rocebox("sim", config, status=1)
            self.assertRegex(said, rf"workload `w` failed: {what}\n$")
            self.assertRegex(shown, r"failed +yes")
            self.assertEqual(self.rocebox("sim", config, "--quiet", "--set", "expect=workloads.w.failed == 1"), ("", ""))

    def test_a_topology_that_cannot_be_made_is_told_alone(self):
        workload = "workloads: {w: {type: write_bw, hosts: [h0, h1]}}\n"
        for text in (PAIR.replace("host_rate", "host_rat"), "topology: {back_to_bak: {}, hosts: {nic: {}}}\n", "topology: {hosts: {nic: {}}}\n"):
            said = self.rocebox("sim", self.config(text + workload), status=2)[1]
            self.assertNotIn("there is no device", said)
            self.assertEqual(said.count("\n"), 1, said)
        self.refused(PAIR + workload.replace("h1", "h7").replace("hosts: [", "hosts: [h0, "), "there is no device `h7`", "names host `h0` twice")

    def test_a_parameter_where_there_are_none(self):
        config = PAIR + "workloads: {w: {type: write_lat, iters: $n}}\n"
        self.refused(config, "config.yaml:2:41: `iters` must be a whole number, found `$n`; there are no parameters: write such as "
                             "`parameters: {n: 1}` at the top level\n")
        text = PAIR + "workloads: {w: {type: write_lat, iters: 2}}\nports: {h0.wire: {pcap: {out: 'x$n.pcap'}}}\n"
        said = self.rocebox("check", self.config(text))[1]
        self.assertRegex(said, r"^\S+:3:31: note: `\$n` stands for nothing else: there are no parameters: write such as `parameters: {n: 1}` .*\n$")
        self.assertEqual(self.rocebox("check", self.config("parameters: {n: 1}\n" + text))[1], "")

    def test_a_misspelt_key_of_a_setting(self):
        text = PAIR + "workloads: {w: {type: write_lat, iters: $iterations}}\n"
        for parameters, setting, told in (("{iterations: 2}", "iteratoins=3", "unknown key `iteratoins`; did you mean `iterations`?"),
                                          ("{iterations: 2}", "seeed=3", "unknown key `seeed`; did you mean `seed`?"),
                                          ("{iterations: 2}", "xyz=3", "unknown key `xyz`; parameters: iterations"),
                                          ("{iterations: 2}", "workloads.w.itres=3", "unknown key `itres`; did you mean `iters`?"),
                                          ("", "xyz=3", "unknown key `xyz`; there are no parameters: write `parameters: {xyz: ...}`, and `$xyz`")):
            config = self.config((f"parameters: {parameters}\n" if parameters else "") + text.replace("$iterations", "2" if not parameters else "$iterations"))
            for option in ("--set",), ("--sweep",):
                said = self.rocebox("sim", config, *option, setting, status=2)[1]
                self.assertIn(f"with `{setting}`: {told}", said)

    def test_an_expectation_with_a_wrong_name(self):
        text = PAIR + "workloads: {w: {type: write_lat, iters: 2}}\nexpect: "
        self.refused(text + "workloads.w.goodput > 1\n", "config.yaml:3:9: ", "there is no `goodput`; did you mean `goodput_bits_per_second`?")
        self.refused(text + "workloads.w.xyz > 1\n", "there is no `xyz`; known: type, hosts, finished, ", "goodput_bits_per_second, ")

    def test_expectations_of_yes_and_no(self):
        text = PAIR + "workloads: {w: {type: write_lat, iters: 2}}\nexpect: "
        self.rocebox("sim", self.config(text + "[workloads.w.finished == true, false == workloads.w.failed]\n"))
        said = self.rocebox("sim", self.config(text + "workloads.w.finished == false\n"), status=1)[1]
        self.assertIn("expected `workloads.w.finished == false`: `workloads.w.finished` is true\n", said)

    def test_a_link_without_a_rate_has_no_share(self):
        config = self.config("devices: {a: {nic: {address: 10.0.0.1, rate: 10Gbps}}, b: {nic: {address: 10.0.0.2}}}\n"
                             "links: {c: {between: [a.wire, b.wire], delay: 1us}}\nworkloads: {w: {type: write_bw, hosts: [a, b], iters: 3}}\n")
        shown = self.rocebox("sim", config, "--csv", self.dir)[0]
        self.assertRegex(shown, r"c +b\.wire +[1-9][0-9,]* +[1-9][0-9,]* +-\n")
        with (self.dir / "links.csv").open(newline="") as file:
            shares = {row["from"]: row["share"] for row in csv.DictReader(file)}
        self.assertGreater(float(shares["a.wire"]), 0.5)
        self.assertEqual(shares["b.wire"], "")

    def test_a_colon_is_missing_before_a_comment(self):
        for text, line in (("seed: 1\ntopology\n  # of two\n  back_to_back: {}\n", 2), ("topology  # of two\n  back_to_back: {}\n", 1)):
            self.refused(text, f"config.yaml:{line}:1: YAML: a `:` is missing behind the key of this line\n")

    def test_two_ports_may_share_a_pcap(self):
        """All frames are Ethernet's, and so one header is right for all."""
        ports = "ports: {h0.wire: {pcap: {out: both.pcap}}, h1.wire: {pcap: {out: both.pcap}}}\n"
        self.rocebox("sim", self.config(PAIR + "workloads: {w: {type: write_lat, iters: 2}}\n" + ports))
        import wire
        times = [at for at, _, _ in wire.read_pcap(self.dir / "both.pcap")[0]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(times), 8, "a WRITE and its ACK, there and back, twice")


if __name__ == "__main__":
    unittest.main()
