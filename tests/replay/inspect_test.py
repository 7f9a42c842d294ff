#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`inspect` over every capture against oracle_inspect.py, which reads whole files by brute force and knows the truth of
duplicates and retransmissions from the sender's IPv4 identification."""
import json
import subprocess
import sys
import unittest

import make_derived
import wire
from common import CAPTURES, HERE, RoceboxTest

STREAM = ("first_psn", "last_psn", "wrapped", "unique", "missing", "lost", "duplicates", "retransmissions",
          "out_of_order", "reorder_degree_max", "undecided")
FLOW = ("packets", "bytes", "payload_bytes", "cnps", "icrc_failures")
ANSWERS = ("acks", "rnr_naks")
# IB specification, volume 1, tables 38 and 46, in the report's spelling.
PLACES = ("send_first send_middle send_last send_last_with_immediate send_only send_only_with_immediate rdma_write_first "
          "rdma_write_middle rdma_write_last rdma_write_last_with_immediate rdma_write_only "
          "rdma_write_only_with_immediate rdma_read_request rdma_read_response_first rdma_read_response_middle "
          "rdma_read_response_last rdma_read_response_only acknowledge atomic_acknowledge cmpswap fetchadd reserved "
          "send_last_with_invalidate send_only_with_invalidate").split()
SERVICES = {0: "rc", 1: "uc", 3: "ud"}
NAKS = {"0": "psn_sequence_error", "1": "invalid_request", "2": "remote_access_error", "3": "remote_operational_error",
        "4": "invalid_rd_request"}
AETH_ENDS, DETH_ENDS, RETH_ENDS = 58, 62, 70  # bytes of an Ethernet frame with IPv4: snapped shorter, these are unknown
EVENTS = 1024


def opcode_name(code):
    """The report's name of a BTH opcode."""
    return "cnp" if code == 0x81 else f"{SERVICES[code >> 5]}_{PLACES[code & 31]}"


class Inspect(RoceboxTest):
    def ours(self, capture):
        config = self.config(f"devices: {{d: {{path: a <-> inspect <-> b, kernels: {{inspect: {{events: {EVENTS}}}}}}}}}\n")
        report = self.replay(config, "--in", f"a={capture}")
        return report["devices"]["d"]["kernels"]["inspect"]

    def theirs(self, capture):
        done = subprocess.run([sys.executable, HERE / "oracle_inspect.py", capture], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def compare(self, ours, theirs, snap=65535):
        """Number of values compared. Of a file snapped at `snap`, what is not held is left out: it is unknown."""
        flows = {(f["source"], f["destination"], f["qpn_number"], f["service"]): f for f in ours["flows"]}
        self.assertEqual(len(flows), len(theirs["flows"]))
        values = 0
        for want in theirs["flows"]:
            got = flows[want["src"], want["dst"], want["qpn"], want["service"]]
            for key in FLOW + (("messages",) if want["service"] != "UD" else ()):
                self.assertEqual(got[key], want[key], (key, want["key"]))
                values += 1
            self.assertEqual(got["opcodes"], {opcode_name(int(code)): n for code, n in want["opcodes"].items()}, want["key"])
            self.compare_answers(got, want, snap)
            for codepoint in ("not_ect", "ect0", "ect1", "ce"):
                self.assertEqual(got["ecn"][codepoint], want["ecn"][codepoint], want["key"])
            for space in ("requests", "read_responses"):
                self.assertEqual(space in got, want.get(space) is not None, (space, want["key"]))
                if want.get(space):
                    values += self.compare_space(got, want, space)
            if want["service"] != "UD" and (snap >= RETH_ENDS or "rc_rdma_read_request" not in got["opcodes"]):
                self.compare_summary(got.get("message_bytes"), want["message_bytes"], want["key"])
                values += 3
        self.assertEqual(self.pairs(ours), {frozenset(p) for p in theirs["pairs"]})
        for table, suffix in (("rtt", "_ns"), ("completion", "_ns")) if snap >= AETH_ENDS else ():
            for want in theirs[table]:
                source, rest = want["requests"].split(">")
                destination, qpn, service = rest.split("/")
                got = flows[source, destination, int(qpn), service].get(table)
                self.compare_summary(got, want, (table, want["requests"]), suffix)
                values += 3
        if snap >= DETH_ENDS:
            self.assertEqual([{key: got[key] for key in want} for got, want in zip(ours["ud_senders"], theirs["ud_senders"])],
                             theirs["ud_senders"])
            values += len(theirs["ud_senders"])
        return values

    def compare_answers(self, got, want, snap):
        naks = {NAKS.get(code, "reserved"): n for code, n in want["naks"].items()}
        if snap >= AETH_ENDS:
            self.assertEqual(got["naks"], naks, want["key"])
            for key in ANSWERS:
                self.assertEqual(got[key], want[key], (key, want["key"]))
            self.assertEqual(got["aeth_unknown"], 0)
        else:
            self.assertEqual(got["aeth_unknown"], sum(naks.values()) + sum(want[key] for key in ANSWERS), want["key"])
        if want["rnr_naks"] and snap >= AETH_ENDS:  # README of the captures: timer code 12
            self.assertEqual((got["rnr_timer_min_ns"], got["rnr_timer_max_ns"]), (640_000, 640_000))

    def compare_space(self, got, want, space):
        values = 0
        for key in STREAM:
            if want[space][key] is None:
                continue  # the oracle has no truth without identifications (IPv6)
            self.assertEqual(got[space][key], want[space][key], (key, want["key"]))
            values += 1
        if want[space]["lost_psns"] is not None:
            self.assertEqual(got["events_not_listed"], 0)
            listed = {kind: [(e["psn"] + i) % 2**24 for e in got["events"] if e["event"] == kind and e["of"] == space
                             for i in range(e["psns"])] for kind in ("lost", "retransmitted")}
            self.assertEqual(sorted(listed["lost"]), sorted(want[space]["lost_psns"]), want["key"])
            self.assertEqual(listed["retransmitted"], want[space]["retransmitted_psns"], want["key"])
            values += len(listed["lost"]) + len(listed["retransmitted"])
        return values

    def compare_summary(self, got, want, what, suffix=""):
        """Of sizes or times."""
        got = got or {"count": 0}
        self.assertEqual(got["count"], want["count"], what)
        if want["count"]:
            self.assertEqual((got["min" + suffix], got["max" + suffix]), (want["min"], want["max"]), what)
            self.assertLessEqual(abs(got["mean" + suffix] * want["count"] - want["sum"]), want["count"], what)

    @staticmethod
    def pairs(ours):
        """Flow keys of both halves: a flow bears the QPN of its destination."""
        return {frozenset((f"{c['a']}>{c['b']}/{c['b_qpn_number']}/RC", f"{c['b']}>{c['a']}/{c['a_qpn_number']}/RC"))
                for c in ours["connections"]}

    def test_captures(self):
        values = 0
        for capture in sorted(CAPTURES.glob("*.pcap")):
            with self.subTest(capture.name):
                values += self.compare(self.ours(capture), self.theirs(capture))
        self.assertGreater(values, 1000)

    def test_snapped_captures_are_exact(self):
        """Lengths come from the headers: from 54 bytes of each packet on, which hold BTH, all but a few fields is known."""
        for name in ("rc_write", "rc_send_loss_rx", "rc_write_reorder_rx", "rc_send_rnr", "rc_atomic_loss_rx", "multi_qp",
                     "rc_read_pipelined", "uc_send_loss_rx", "ecn_rx", "ud_send", "rdma_cm"):
            theirs = self.theirs(CAPTURES / f"{name}.pcap")
            for snap in (54, 57, 60, 64, 68, 128):
                with self.subTest(name, snap=snap):
                    snapped = self.dir / "snapped.pcap"
                    snapped.write_bytes(make_derived.pcap(make_derived.load(f"{name}.pcap"), snap=snap))
                    ours = self.ours(snapped)
                    self.compare(ours, theirs, snap)
                    self.assertEqual(ours["counters"]["truncated"], 0)
                    if snap <= 60:  # below the shortest frame, an ACK
                        self.assertGreater(ours["totals"]["icrc_unverified"], 0)

    def test_a_qp_number_used_again(self):
        """Two connections of the same QPNs in one file, the second with lower PSNs."""
        once = self.theirs(CAPTURES / "rc_write.pcap")["flows"]
        make_derived.main_to(self.dir)
        ours = self.ours(self.dir / "psn_restart.pcap")
        for flow, want in zip(ours["flows"], once):
            for key in ("packets", "payload_bytes", "messages", "acks"):
                self.assertEqual(flow[key], 2 * want[key], key)
        requests = ours["flows"][0]["requests"]
        self.assertEqual([requests[key] for key in ("restarts", "beyond_window", "missing", "lost", "unique")],
                         [1, 0, 0, 0, 2 * once[0]["requests"]["unique"]])
        self.assertEqual(requests["goodput_bytes"], 2 * once[0]["message_bytes"]["sum"])
        self.assertEqual(ours["flows"][0]["message_bytes"]["count"], 2 * once[0]["message_bytes"]["count"])

    def test_a_handshake_tells_of_a_restart(self):
        """The RDMA CM connects the same QPNs again, to begin within the window of the first connection."""
        once = self.theirs(CAPTURES / "rdma_cm.pcap")["flows"]
        make_derived.main_to(self.dir)
        ours = self.ours(self.dir / "cm_restart.pcap")
        for flow, want in zip(ours["flows"], once):
            self.assertEqual(flow["messages"], 2 * want["messages"], want["key"])
            for space in ("requests", "read_responses"):
                if want.get(space) and flow["service"] == "RC":
                    got = {key: flow[space][key] for key in ("restarts", "missing", "lost", "retransmissions", "unique")}
                    self.assertEqual(got, {"restarts": 1, "missing": 0, "lost": 0, "retransmissions": 0,
                                           "unique": 2 * want[space]["unique"]}, want["key"])

    def test_what_is_late_at_the_start_of_a_flow_is_undecided(self):
        """A packet every 10 ms, one of them 15 ms late, or doubled after 15 ms: two comparisons of identifications tell nothing."""
        records = [r for r in make_derived.load("rc_write.pcap") if (wire.parse(r[2]) or {}).get("op") in wire.REQUEST_OPS][:5]
        start, gap = records[0][0], 10_000_000
        paced = [(start + n * gap, *rest) for n, (_, *rest) in enumerate(records)]
        for late in (1, 2, 3):
            _, *rest = paced[late]
            delayed = (start + late * gap + 15_000_000, *rest)
            for doubled, decided in ((False, "out_of_order"), (True, "duplicates")):
                with self.subTest(late=late, doubled=doubled):
                    kept = paced if doubled else paced[:late] + paced[late + 1:]
                    capture = self.dir / "late.pcap"
                    capture.write_bytes(make_derived.pcap(sorted(kept + [delayed])))
                    ours = self.ours(capture)
                    self.compare(ours, self.theirs(capture))
                    # Comparisons: of the packets before it but the first, of itself when it was there, and of the one behind it.
                    name = "undecided" if late - 1 + doubled + 1 < 3 else decided
                    got = ours["flows"][0]["requests"]
                    counts = {key: got[key] for key in ("undecided", "out_of_order", "duplicates", "retransmissions") if got[key]}
                    self.assertEqual(counts, {name: 1})
                    self.assertEqual(ours["counters"][name], 1)

    def test_trimmed_packets_stay_in_their_flow(self):
        config = self.config("seed: 2\ndevices: {d: {path: a <-> link <-> inspect <-> b, kernels: {link: {trim: 20%}}}}\n")
        report = self.replay(config, "--in", f"a={CAPTURES / 'rc_write.pcap'}")["devices"]["d"]["kernels"]
        trimmed = report["link"]["counters"]["forward_trimmed"]
        self.assertGreater(trimmed, 10)
        got = report["inspect"]
        self.assertEqual((got["totals"]["trimmed"], got["counters"]["trimmed"]), (trimmed, trimmed))
        self.assertEqual((got["totals"]["missing"], got["totals"]["lost"], got["counters"]["truncated"]), (0, 0, 0))
        self.assertEqual(got["flows"][0]["requests"]["only_trimmed"], trimmed)
        whole = self.ours(CAPTURES / "rc_write.pcap")
        self.assertLess(got["flows"][0]["requests"]["goodput_bytes"], whole["flows"][0]["requests"]["goodput_bytes"])

    def test_suspected_timeouts(self):
        """README of the captures: ACKs were lost, requests retransmitted after a timeout; the others had NAKs."""
        lost_acks = self.ours(CAPTURES / "rc_write_ackloss_tx.pcap")
        self.assertGreater(lost_acks["counters"]["timeouts_suspected"], 0)
        self.assertEqual(self.ours(CAPTURES / "rc_send_rnr.pcap")["counters"]["timeouts_suspected"], 0)

    def test_every_row_of_the_summary_shows_its_zeros(self):
        words = ("replay", self.config("devices: {d: {path: a <-> inspect <-> b}}\n"), "--in", f"a={CAPTURES / 'rc_write.pcap'}")
        short, _ = self.rocebox(*words)  # columns that are too many for the line go from the right
        self.assertIn("lost", next(line for line in short.splitlines() if line.split()[:2] == ["source", "destination"]))
        text, _ = self.rocebox(*words, "--full")
        lines = text.splitlines()
        at = next(n for n, line in enumerate(lines) if line.strip().startswith("summary (2)"))
        head, row = lines[at + 1].split(), lines[at + 2].split()
        values = dict(zip(head, row))
        self.assertEqual([values[key] for key in ("lost", "retransmissions", "out_of_order", "naks")], ["0"] * 4)


if __name__ == "__main__":
    unittest.main()
