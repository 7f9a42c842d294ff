#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a fabric does, held against its own captures and against arithmetic: times in captures and in the trace, the time for which
pause frames stop a NIC, the rate that an oversubscribed tier leaves."""
import collections
import json
import pathlib
import re
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
import wire
from common import RoceboxTest

RATE, DELAY = 10, 1000  # bits each ns; ns
GAP = 24                # bytes of a frame on the wire that no capture has: FCS, preamble, gap
# Two send to one, through a switch that loses nothing.
INCAST = """
devices:
  a: {nic: {address: 10.0.0.1, rate: 10Gbps}}
  b: {nic: {address: 10.0.0.2, rate: 10Gbps}}
  c: {nic: {address: 10.0.0.3, rate: 10Gbps}}
  s:
    switch:
      ports: [pa, pb, pc]
      traffic_manager: {rate: 10Gbps, buffer: 1MiB, pfc: {classes: [0], xoff: 40KiB, xon: 20KiB}}
links:
  la: {between: [a.wire, s.pa], delay: 1us}
  lb: {between: [b.wire, s.pb], delay: 1us}
  lc: {between: [c.wire, s.pc], delay: 1us}
workloads:
  incast: {hosts: [c, a, b], size: 1MB}
ports:
  a.wire: {pcap: {out: a.pcapng}}
  s.pa: {pcap: {out: pa.pcapng}}
  s.pc: {pcap: {out: pc.pcapng}}
"""
TREE = """
topology:
  leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 4, host_rate: 10Gbps, spine_rate: SPINE}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  permutation: {size: 1MB, shift: 4}
"""
# Eight flows of a leaf, and as many spines.
EQUAL_PATHS = """
topology:
  leaf_spine: {leaves: 2, spines: 8, hosts_per_leaf: 8, host_rate: 10Gbps, spine_rate: 10Gbps}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  permutation: {size: 100KB, shift: 8}
"""
# Each leaf's hosts send to the next leaf's, and there are as many spines: a path for each.
SPRAYED = """
parameters: {balance: flow, recovery: timeout_only}
topology:
  leaf_spine: {leaves: 4, spines: 4, hosts_per_leaf: 4, host_rate: 100Gbps, spine_rate: 100Gbps}
  hosts: {nic: {header_only: true, recovery: $recovery, window: 100000}}
  switches: {switch: {forward: {balance: $balance}}}
workloads:
  permutation: {size: 2MB, shift: 4}
"""
# Three tiers: what an edge switch has sent to an aggregation switch that sends on to one of its cores.
TWO_CHOICES = """
topology:
  fat_tree: {k: 4}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  all_to_all: {size: 160KB}
"""
DRAGONFLY = """
topology:
  dragonfly: {SIZE}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  permutation: {size: 100KB, order: random}
"""
PSN_OF_A_DATA_PACKET = 50  # behind the first of its flow


# Through a switch, at a rate at which a packet takes no whole nanoseconds: 1024 bytes and 82 of headers, 22.12 of them.
FAST = """
topology:
  dumbbell: {hosts_per_side: 1, host_rate: 400Gbps, bottleneck_rate: 400Gbps}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  write: {type: write_bw, hosts: [h0, h1], size: 1MiB, iters: 100, mtu: 1024}
expect: workloads.write.details.average_bits_per_second > 368Gbps
"""
# A window of the bandwidth-delay product, of more packets than a host has else, and more than a wire holds by itself.
LONG = """
topology:
  dumbbell: {hosts_per_side: 1, host_rate: 400Gbps, bottleneck_rate: 400Gbps, bottleneck_delay: 1500us}
  hosts: {nic: {header_only: true, window: 163840, retransmission_timeout: 100ms}}
  switches: {switch: {traffic_manager: {buffer: 1GiB, packets: 262144}}}
workloads:
  permutation: {size: 160MiB, mtu: 1024, timeout: 20}
"""
# The same of NICs that say nothing of it: it is the workload's.
LONG_BY_WORKLOAD = LONG.replace(", window: 163840, retransmission_timeout: 100ms", "").replace(
    "timeout: 20", "window: 163840, retransmission_timeout: 100ms")
# Over one lossy wire, each in its own way.
TWO_RECOVERIES = """
devices:
  a: {nic: {address: 10.0.0.1, rate: 10Gbps, recovery: NICS}}
  b: {nic: {address: 10.0.0.2, rate: 10Gbps, recovery: NICS}}
links:
  wire: {between: [a.wire, b.wire], delay: 5us, loss: 0.5%}
workloads:
  back: {type: write_bw, hosts: [a, b], size: 1MiB, iters: 8, recovery: go_back_n}
  some: {type: write_bw, hosts: [a, b], size: 1MiB, iters: 8, recovery: selective, window: 100, retransmission_timeout: 300us}
ports: {a.wire: {pcap: {out: a.pcapng}}}
"""
# All at once: loss, Themis or adaptive routing, marks, congestion notifications, pauses.
BUSY = """
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 3, host_rate: 100Gbps, spine_rate: 50Gbps}
  hosts: {nic: {header_only: true, recovery: rnic_sr, window: 128, retransmission_timeout: 1ms, dcqcn: {enabled: true}}}
  switches:
    switch:
      programs: [forward, themis]
      forward: {balance: flow}
      themis: {window: 128, ooo_threshold: 96}
      traffic_manager: {buffer: 1MiB, ecn: {min: 10KB, max: 40KB, probability: 50%}, pfc: {classes: [0], xoff: 20KB, xon: 10KB}}
links: {leaf0_spine0: {forward: {loss: 1%}}}
workloads:
  all: {type: all_to_all, size: 1MiB, mtu: 1024}
"""


class Fabric(RoceboxTest):
    def sim(self, text, *words):
        out = self.dir / "report.json"
        self.rocebox("sim", self.config(text), "--quiet", "--json", out, *words)
        return json.loads(out.read_text())

    def captured(self, port):
        """[(ns, frame)] of what left by a port."""
        return [(at, frame) for at, _, frame in wire.read_pcap(self.dir / f"{port}.pcapng")[0]]

    def data(self, port):
        return [(at, frame) for at, frame in self.captured(port) if (wire.parse(frame) or {"op": 0})["op"] in range(6, 12)]

    def pauses(self):
        """[(from, until)] of what the pause frames of class 0 to `a` say; each frame overrules the one before."""
        spans = []
        for at, frame in self.captured("pa"):
            if frame[12:16] != b"\x88\x08\x01\x01" or not frame[17] & 1:
                continue
            came = at + DELAY
            until = came + struct.unpack_from(">H", frame, 18)[0] * 512 // RATE
            if spans and spans[-1][1] > came:
                spans[-1] = (spans[-1][0], until)
            else:
                spans.append((came, until))
        return spans

    def test_the_time_that_a_nic_counts_as_paused_is_what_the_frames_say(self):
        report = self.sim(INCAST)
        counters = report["devices"]["a"]["kernels"]["nic"]["counters"]
        spans, end = self.pauses(), report["run"]["span_ns"]
        self.assertGreater(len(spans), 10)
        self.assertTrue(all(until <= end for _, until in spans), "the last one is over when the run is")
        paused = sum(until - start for start, until in spans) / 1000
        self.assertLessEqual(counters["rx_prio0_pause_duration"], paused)
        self.assertGreater(counters["rx_prio0_pause_duration"], paused - len(spans), "whole microseconds of each pause")
        # Two share the third one's wire, so each stands still for half of the time.
        self.assertAlmostEqual(paused * 1000 / end, 0.5, delta=0.05)
        for name in ("packet_seq_err", "local_ack_timeout_err", "out_of_sequence"):
            self.assertEqual(counters[name], 0)
        self.assertEqual(report["devices"]["s"]["counters"]["packets_dropped"], 0)

    def test_a_paused_nic_begins_no_packet(self):
        self.sim(INCAST)
        spans, data = self.pauses(), self.data("a")
        self.assertGreater(len(data), 200)
        waited = 0
        for at, frame in data:
            begins = at - -(-(len(frame) + GAP) * 8 // RATE)
            for start, until in spans:
                self.assertFalse(start < begins < until - 1, (begins, start, until))
                waited += 0 <= begins - until <= 1
        self.assertGreater(waited, len(spans) / 2, "and it goes on when the pause ends")

    def test_captures_and_the_trace_tell_the_same(self):
        hash_before = self.sim(INCAST)["hash"]
        psn = wire.parse(self.data("a")[PSN_OF_A_DATA_PACKET][1])["psn"]
        trace, comments = self.dir / "trace.txt", self.dir / "trace.pcapng"
        report = self.sim(INCAST, "--trace", f"psn={psn} src=10.0.0.1", "--trace-out", trace, "--trace-out", comments)
        self.assertEqual(report["hash"], hash_before, "who looks changes nothing")
        rows = [line.split()[:4] for line in trace.read_text().splitlines()]
        self.assertEqual([row[1:3] for row in rows],
                         [["a.nic", "emit"], ["a", "leave"], ["la", "arrive"], ["la.link", "hold"], ["la.link", "emit"], ["la", "leave"],
                          ["s", "arrive"], ["s.switch", "hold"], ["s.switch", "emit"], ["s", "leave"], ["lc", "arrive"], ["lc.link", "hold"],
                          ["lc.link", "emit"], ["lc", "leave"], ["c", "arrive"], ["c.nic", "drop"]])
        at = {(where, what): round(float(time) * 1e9) for time, where, what, _ in rows}
        for device, port in (("a", "a"), ("s", "pc")):
            [left] = [(when, frame) for when, frame in self.data(port) if wire.parse(frame)["psn"] == psn]
            self.assertEqual(left[0], at[device, "leave"])
            self.assertEqual(left[1][-4:], wire.icrc(left[1]), "its bytes are whole")
        self.assertEqual(at["s", "arrive"], at["a", "leave"] + DELAY)
        self.assertEqual(at["c", "arrive"], at["s", "leave"] + DELAY)
        self.assertEqual(len(wire.read_pcap(comments)[0]), len(rows), "each row has its packet")

    def test_an_oversubscribed_tier_shares_its_rate(self):
        # A WRITE's packets have 4096 bytes, 58 of headers and an RETH in the first one; ACKs of the other direction come in between.
        packets = -(-1_000_000 // 4096)
        bits = 8 * (1_000_000 + packets * (58 + GAP) + 16)
        for spine, shares in (("10Gbps", 4), ("20Gbps", 2), ("40Gbps", 1)):
            report = self.sim(TREE.replace("SPINE", spine))
            flows = report["workloads"]["permutation"]["flows"]
            self.assertEqual(len(flows), 8)
            took = [flow["completion_ns"] for flow in flows]
            least = bits * shares / RATE
            self.assertGreater(max(took), least)
            self.assertLess(max(took), 1.03 * least, f"{shares}:1")
            self.assertGreater(min(took), 0.97 * least, "all have the same share")

    def test_ports_send_at_their_rate_whatever_a_packet_takes(self):
        report = self.sim(FAST)
        goodput = report["workloads"]["write"]["details"]["average_bits_per_second"]
        self.assertAlmostEqual(goodput / (400e9 * 1024 / (1024 + 82)), 1, delta=0.005)
        self.assertTrue(all(0.99 < row["share"] < 1 for row in report["utilisation"] if row["from"] in ("h0.wire", "left.p1")))

    def test_a_long_fat_wire_holds_a_window_and_the_pool_has_it(self):
        for text in (LONG, LONG_BY_WORKLOAD):
            report = self.sim(text)
            # Both ways, data of one and ACKs of the other: one way, and the bytes with their headers.
            self.assertAlmostEqual(report["workloads"]["permutation"]["duration_ns"] / (1.5e6 + (160 << 20) * 8 / 400 * 1106 / 1024), 1, delta=0.02)
            self.assertEqual(report["run"]["pool_dry"], 0)
        _, said = self.rocebox("sim", self.config(LONG + "pool: {headers: 1000, small: 64, large: 16, giant: 2}\n"), "--quiet")
        self.assertIn("the pool had no packet left ", said)

    def test_workloads_over_the_same_nics_recover_each_in_its_own_way(self):
        for nics in ("go_back_n", "timeout_only"):
            report = self.sim(TWO_RECOVERIES.replace("NICS", nics))
            self.assertTrue(all(one["finished"] and not one["failed"] for one in report["workloads"].values()))
            times = collections.defaultdict(collections.Counter)  # by queue pair and PSN
            ops = collections.defaultdict(set)
            for _, frame in self.data("a"):
                packet = wire.parse(frame)
                times[packet["qpn"]][packet["psn"]] += 1
                ops[packet["qpn"]].add(packet["op"])
            self.assertEqual(sorted(map(sorted, ops.values())), [[6, 7, 8], [10]], "with direct placement each WRITE is an ONLY")
            [back] = [qpn for qpn, used in ops.items() if 10 not in used]
            [some] = [qpn for qpn, used in ops.items() if 10 in used]
            packets = 8 * (1 << 20) // 4096
            again = {qpn: sum(sent.values()) - packets for qpn, sent in times.items()}
            self.assertEqual({len(sent) for sent in times.values()}, {packets})
            # Of 2048 packets 0.5% are lost. A gap costs go-back-N what is under way: 5 us there and back, and what its peer has queued.
            self.assertTrue(0 < again[some] < 0.015 * packets, again)
            self.assertGreater(again[back], 3 * again[some])

    def test_packets_that_end_where_they_should_are_not_dropped(self):
        report = self.sim(TREE.replace("SPINE", "10Gbps"))
        for name, device in report["devices"].items():
            books = device["counters"]
            self.assertEqual(books["packets_dropped"], 0, name)
            self.assertEqual(books["packets_in"] + books["packets_made"], books["packets_out"] + books["packets_delivered"], name)

    def test_what_waits_for_answers_has_no_slowdown(self):
        text = TREE.replace("SPINE", "10Gbps").replace("permutation: {size: 1MB, shift: 4}",
                                                       "lat: {type: write_lat, hosts: [h0, h1], iters: 100}\n"
                                                       "  atomics: {type: atomic_bw, hosts: [h0, h1], iters: 100}\n"
                                                       "  bw: {type: write_bw, hosts: [h2, h3], iters: 100}")
        text += "expect: [workloads.lat.details.t_typical > 1us, workloads.bw.details.completion_time > 50us]\n"  # known by name before
        slowdown = {name: one["slowdown"]["mean"] for name, one in self.sim(text)["workloads"].items()}
        self.assertEqual(slowdown["lat"] + slowdown["atomics"], 0)
        self.assertAlmostEqual(slowdown["bw"], 1, delta=0.1)

    def test_equal_paths_are_drawn_anew_with_each_seed(self):
        reports = [self.sim(EQUAL_PATHS, "--seed", str(seed)) for seed in range(1, 9)]
        self.assertEqual(len({report["hash"] for report in reports}), 8)
        used = [sum(row["link"].startswith(leaf) and row["from"].startswith(leaf) and row["packets"] >= 25 for row in report["utilisation"])
                for report in reports for leaf in ("leaf0", "leaf1")]
        # A flow takes a spine at random: of n spines and flows n (1 - (1 - 1 / n) ^ n) are used on average; the variance is that
        # of an occupancy problem, 0.8 for 8.
        expected, deviation = 8 * (1 - (7 / 8) ** 8), (0.8 / len(used)) ** 0.5
        self.assertAlmostEqual(sum(used) / len(used), expected, delta=4 * deviation, msg=used)

    def test_the_least_queue_spreads_better_than_chance_where_order_does_not_matter(self):
        def slowdown(balance, recovery="timeout_only"):
            report = self.sim(SPRAYED, "--set", f"balance={balance}", "--set", f"recovery={recovery}")
            return report["workloads"]["permutation"]["slowdown"]["max"]

        # Of a port's time the other direction's ACKs take 2% (an ACK has 62 bytes, a packet 4154, and 24 of the wire each).
        self.assertLess(slowdown("least_queue"), 1.04)
        self.assertGreater(slowdown("random"), 1.06)
        self.assertGreater(slowdown("flow"), 1.5)
        # To a receiver that takes a gap for a loss what overtakes costs packets that are sent twice.
        self.assertGreater(slowdown("least_queue", "rnic_sr"), 1.06)

    def test_a_tier_chooses_apart_from_the_one_below(self):
        report = self.sim(TWO_CHOICES)
        up = [row for row in report["utilisation"] if "agg" in row["from"] and "core" in row["link"]]
        self.assertEqual(len({row["from"].split(".")[0] for row in up}), 8)
        busy = [row["link"] for row in up if row["packets"] >= 10]
        # Two dozen flows come up to each: that all of one go the same way by chance is one in millions.
        self.assertEqual(len(busy), 16, busy)

    def test_dragonflies_of_any_size_run_and_take_one_global_wire(self):
        for size in ("routers: 2, hosts_per_router: 1, global_links: 1", "routers: 4, hosts_per_router: 2, global_links: 2",
                     "routers: 4, hosts_per_router: 2, global_links: 2, groups: 3", "routers: 3, hosts_per_router: 2, global_links: 1"):
            report = self.sim(DRAGONFLY.replace("SIZE", size))
            groups = [(row["packets"], re.findall("group[0-9]+", row["link"])) for row in report["utilisation"]]
            crossings = sum(packets for packets, ends in groups if len(set(ends)) == 2)
            sent = sum(row["packets"] for row in report["utilisation"] if row["from"].startswith("h"))
            self.assertEqual(sum(device["counters"]["packets_dropped"] for name, device in report["devices"].items() if "router" in name), 0)
            self.assertGreater(crossings, sent / 2, size)
            self.assertLessEqual(crossings, sent, size)

    def test_headers_alone_behave_as_whole_packets(self):
        """The hash is over each counter and transfer."""
        for name, text in (("themis", BUSY),
                           ("adaptive", BUSY.replace("[forward, themis]", "[forward]").replace("balance: flow", "balance: least_queue")
                            .replace("      themis: {window: 128, ooo_threshold: 96}\n", "").replace("rnic_sr", "go_back_n"))):
            headers = self.sim(text)
            self.assertEqual(headers["hash"], self.sim(text.replace("header_only: true", "header_only: false"))["hash"], name)
            counted = {}
            for device in headers["devices"].values():
                for kernel in device["kernels"].values():
                    for counter, value in kernel["counters"].items():
                        counted[counter] = counted.get(counter, 0) + value
            for counter in ("ecn_marked_packets", "np_cnp_sent", "tx_pause_frames", "retransmitted_packets", "naks_sent",
                            *(["sprayed", "drop_nack_invalid"] if name == "themis" else [])):
                self.assertGreater(counted[counter], 0, (name, counter))

    def test_a_lone_transfer_takes_what_the_routes_make_of_it(self):
        flows = ", ".join(f"{{source: 0, destination: {i}, bytes: 4096, start: {100 * i}us}}" for i in range(1, 72))
        report = self.sim(f"""
topology:
  dragonfly: {{routers: 4, hosts_per_router: 2, global_links: 2}}
  hosts: {{nic: {{header_only: true}}}}
  switches: {{switch: {{}}}}
workloads:
  flows: {{rdma_cm: false, mtu: 4096, flows: [{flows}]}}
sim: {{packet: 4096}}
""")
        for flow in report["workloads"]["flows"]["flows"]:  # headers are not counted
            self.assertGreater(flow["slowdown"], 1, flow)
            self.assertLess(flow["slowdown"], 1.05, flow)


if __name__ == "__main__":
    unittest.main()
