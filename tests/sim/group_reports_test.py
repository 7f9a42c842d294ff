#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NICs that tell a switch with snooping which groups they have joined: who is a member gets the group's datagrams, who is
none gets nothing, and without reports nobody does."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay"))
from common import RoceboxTest

CONFIG = """
devices:
  a: {nic: {address: 10.0.0.1, address6: 'fd00::1', mac: 02:00:00:00:00:01, group_reports: REPORTS}}
  b: {nic: {address: 10.0.0.2, address6: 'fd00::2', mac: 02:00:00:00:00:02, group_reports: REPORTS}}
  c: {nic: {address: 10.0.0.3, mac: 02:00:00:00:00:03, group_reports: REPORTS}}
  s:
    switch:
      ports: [pa, pb, pc]
      programs: [forward, snooping]
      snooping: {unknown: drop, querier: true, query_interval: 100ms, response_time: 50ms, last_member_time: 10ms}
links:
  la: {between: [a.wire, s.pa], delay: 1us}
  lb: {between: [b.wire, s.pb], delay: 1us}
  lc: {between: [c.wire, s.pc], delay: 1us}
workloads:
  server: {type: verbs_check, hosts: [b]}
  client:
    {type: verbs_check, hosts: [a], address: 10.0.0.2, settle: 1s, start: 1ms, size: 500B, messages: 20, cases: [
      {transport: UD, group: 239.1.2.3, requester: client}, {transport: UD, group: 'ff05::77', requester: client},
      {transport: UD, group: 239.1.2.4, requester: server}]}
"""


class GroupReports(RoceboxTest):
    def run_with(self, reports):
        out = self.dir / f"{reports}.json"
        self.rocebox("sim", self.config(CONFIG.replace("REPORTS", reports)), "--quiet", "--json", out)
        report = json.loads(out.read_text())
        cases = report["workloads"]["client"]["details"]["cases"]
        counters = {name: next(iter(device["kernels"].values()))["counters"] for name, device in report["devices"].items()}
        return [(case["whole"], case["missing"], case["wrong"]) for case in cases], counters

    def test_members_get_datagrams_and_others_do_not(self):
        for reports in ("new", "old"):
            cases, counters = self.run_with(reports)
            self.assertEqual(cases, [(20, 0, 0)] * 3, reports)
            self.assertGreaterEqual(counters["b"]["group_reports_sent"], 2)
            self.assertGreaterEqual(counters["b"]["group_leaves_sent"], 2)
            self.assertGreater(counters["b"]["group_queries"], 2)
            self.assertEqual(counters["b"]["group_messages_bad"], 0)
            self.assertEqual(counters["c"]["multicast_rcv_packets"], 0)
            self.assertEqual([counters["s"][f"drop_membership_{why}"] for why in ("length", "checksum", "hop_limit", "address")],
                             [0, 0, 0, 0])

    def test_without_reports_nobody_does(self):
        cases, counters = self.run_with("off")
        self.assertEqual(cases, [(0, 20, 0)] * 3)
        self.assertEqual(counters["s"]["drop_unknown_group"], 60)
        self.assertEqual(counters["b"]["group_reports_sent"], 0)


if __name__ == "__main__":
    unittest.main()
