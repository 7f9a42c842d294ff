#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration of quickstart.sh: what its table says is what can be counted in the captures, without our own parser."""
import collections
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import CAPTURES, HERE, ROCEBOX, RoceboxTest  # noqa: E402

CONFIGS = HERE.parent.parent / "configs"
CLIENT = wire.socket.inet_aton("10.77.0.2")
RTT_NANOS = 10_000_000
PSN_SPAN = 1 << 24


def requests(path):
    """[(when, PSN)] of the client's RC requests in a capture."""
    rows = []
    for record in wire.read_pcap(str(path))[0]:
        packet = wire.parse(bytes(record[2]))
        if packet and packet["src"] == CLIENT and packet["service"] == wire.RC and packet["op"] <= 0x0b:
            rows.append((record[0], packet["psn"]))
    return rows


def go_back_n(rows, sent):
    """(stops, packets sent again): each loss that shows is asked for at once, and until what is sent again could come, a round
    trip later, everything is in vain. `sent`: the PSNs of the client in its order, of which `rows` lacks some."""
    place = {psn: number for number, psn in enumerate(sent)}
    expected, until, stops, again = place[rows[0][1]], None, 0, 0
    for when, psn in rows:
        at = place[psn]
        if until is not None and when >= until:
            until = None
        if at > expected and until is None:
            until, stops = when + RTT_NANOS, stops + 1
        if until is not None:
            again += at + 1 - expected
        expected = at + 1
    return stops, again


class Quickstart(RoceboxTest):
    def run_both(self, *options):
        """{config: (report, the client's requests as the server's site gets them)}"""
        both = {}
        for name in ("quickstart_bare.yaml", "quickstart.yaml"):
            out = self.dir / "far.pcap"
            report = self.replay(CONFIGS / name, "--out", f"far.host={out}", *options)
            both[name] = report, requests(out)
        return both

    def test_the_reports_agree_with_the_captures_for_many_seeds(self):
        sent = [psn for _, psn in requests(CAPTURES / "perftest_write.pcap")]
        self.assertEqual(len(set(sent)), len(sent), "the client itself sends nothing again")
        seen = collections.Counter()
        for seed in range(1, 13):
            for name, (report, rows) in self.run_both("--seed", seed).items():
                with self.subTest(name, seed=seed):
                    totals = report["devices"]["far"]["kernels"]["site"]["totals"]
                    arrived = [psn for _, psn in rows]
                    inside = sent[sent.index(arrived[0]):sent.index(arrived[-1]) + 1]
                    self.assertEqual(totals["missing"], len(inside) - len(arrived), "the ends of a stream show no hole")
                    stops, again = go_back_n(rows, sent)
                    self.assertEqual((totals["go_backs"], totals["go_back_n_packets"]), (stops, again))
                    self.assertEqual([psn for psn in sent if psn in set(arrived)], arrived, "in order")
                    seen[name] += again
        # One that stays lost costs as much as many: what is saved is less than what is rebuilt.
        self.assertGreater(seen["quickstart_bare.yaml"], 2 * seen["quickstart.yaml"])

    def test_the_table_is_that_of_the_reports(self):
        done = subprocess.run([sys.executable, CONFIGS / "quickstart.py", ROCEBOX], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        table = {line[:46].strip(): [int(number) for number in re.findall(r"\d+", line[46:])] for line in done.stdout.splitlines()
                 if re.search(r" {2,}\d", line[44:])}
        (bare, bare_rows), (coded, coded_rows) = self.run_both().values()
        sites = [report["devices"]["far"]["kernels"]["site"]["totals"] for report in (bare, coded)]
        self.assertEqual(table["packets that the client sent"], [128, 128])
        lost = table["of the client's packets"]
        self.assertLessEqual(lost[1], table["all packets lost on the link"][1])
        self.assertEqual(lost[0], 128 - len(bare_rows))
        self.assertEqual(table["missing where the server stands"], [128 - len(bare_rows), 128 - len(coded_rows)])
        self.assertEqual(table["rebuilt by the server's gateway"], [lost[1] - (128 - len(coded_rows))])
        self.assertEqual(table["sent again by go-back-N for these, at least"], [site["go_back_n_packets"] for site in sites])
        self.assertEqual(table["in how many stops of a round trip"], [site["go_backs"] for site in sites])
        # What makes it a demonstration.
        self.assertGreater(table["rebuilt by the server's gateway"][0], 0)
        self.assertGreater(sites[0]["go_back_n_packets"], 3 * sites[0]["missing"])
        self.assertEqual(len(coded_rows), 128)
        self.assertLess(len(done.stdout.splitlines()), 25, "to be read in a minute")

    def test_what_fails_is_said(self):
        done = subprocess.run([sys.executable, CONFIGS / "quickstart.py", ROCEBOX, "--seed", "x"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--seed x", done.stderr)


if __name__ == "__main__":
    unittest.main()
