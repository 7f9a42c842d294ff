#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`inspect` over every capture against oracle_inspect.py, which reads whole files by brute force and knows the truth of
duplicates and retransmissions from the sender's IPv4 identification."""
import json
import subprocess
import sys
import unittest

from common import CAPTURES, HERE, RoceboxTest

STREAM = ("first_psn", "last_psn", "wrapped", "unique", "missing", "lost", "duplicates", "retransmissions",
          "out_of_order", "reorder_degree_max")
FLOW = ("packets", "bytes", "payload_bytes", "acks", "rnr_naks", "cnps", "icrc_failures")


class Inspect(RoceboxTest):
    def ours(self, capture):
        report = self.replay(self.config("devices: {d: {path: a <-> inspect <-> b}}\n"), "--in", f"a={capture}")
        return report["devices"]["d"]["kernels"]["inspect"]

    def theirs(self, capture):
        done = subprocess.run([sys.executable, HERE / "oracle_inspect.py", capture], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def compare(self, capture):
        ours, theirs = self.ours(capture), self.theirs(capture)
        flows = {(f["source"], f["destination"], f["qpn_number"], f["service"]): f for f in ours["flows"]}
        self.assertEqual(len(flows), len(theirs["flows"]))
        values = 0
        for want in theirs["flows"]:
            got = flows[want["src"], want["dst"], want["qpn"], want["service"]]
            for key in FLOW + (("messages",) if want["service"] != "UD" else ()):
                self.assertEqual(got[key], want[key], (key, want["key"]))
                values += 1
            self.assertEqual(sorted(got["opcodes"].values()), sorted(want["opcodes"].values()), want["key"])
            self.assertEqual(sum(got["naks"].values()), sum(want["naks"].values()), want["key"])
            for codepoint in ("not_ect", "ect0", "ect1", "ce"):
                self.assertEqual(got["ecn"][codepoint], want["ecn"][codepoint], want["key"])
            for space in ("requests", "read_responses"):
                self.assertEqual(space in got, want.get(space) is not None, (space, want["key"]))
                for key in STREAM if want.get(space) else ():
                    if want[space][key] is None:
                        continue  # the oracle has no truth without identifications (IPv6)
                    self.assertEqual(got[space][key], want[space][key], (key, want["key"]))
                    values += 1
        self.assertEqual(self.pairs(ours), {frozenset(p) for p in theirs["pairs"]})
        for want in theirs["rtt"]:
            source, rest = want["requests"].split(">")
            destination, qpn, service = rest.split("/")
            got = flows[source, destination, int(qpn), service].get("rtt", {"count": 0})
            self.assertEqual(got["count"], want["count"], want)
            if want["count"]:
                self.assertEqual((got["min_ns"], got["max_ns"]), (want["min"], want["max"]))
                self.assertLessEqual(abs(got["mean_ns"] * want["count"] - want["sum"]), want["count"])
                values += 3
        return values

    @staticmethod
    def pairs(ours):
        """Flow keys of both halves: a flow bears the QPN of its destination."""
        return {frozenset((f"{c['a']}>{c['b']}/{c['b_qpn_number']}/RC", f"{c['b']}>{c['a']}/{c['a_qpn_number']}/RC"))
                for c in ours["connections"]}

    def test_captures(self):
        values = 0
        for capture in sorted(CAPTURES.glob("*.pcap")):
            with self.subTest(capture.name):
                values += self.compare(capture)
        self.assertGreater(values, 1000)

    def test_snapped_captures_are_exact(self):
        """Lengths come from the headers: 96 bytes of each packet tell the same, but for the ICRC."""
        subprocess.run([sys.executable, HERE / "make_derived.py", self.dir], check=True, stdout=subprocess.DEVNULL)
        whole, snapped = self.ours(CAPTURES / "rdma_cm.pcap"), self.ours(self.dir / "snapped.pcap")
        self.assertGreater(snapped["totals"]["icrc_unverified"], 0)
        self.assertEqual(whole["totals"]["icrc_unverified"], 0)
        for report in (whole, snapped):
            del report["counters"], report["totals"]["icrc_unverified"]
            for flow in report["flows"]:
                del flow["icrc_unverified"]
        self.assertEqual(snapped["flows"], whole["flows"])
        self.assertEqual(snapped["totals"]["bytes"], whole["totals"]["bytes"])


if __name__ == "__main__":
    unittest.main()
