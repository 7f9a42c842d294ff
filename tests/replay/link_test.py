#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`link` through the command, on real captures, against what a few lines of Python say should come out."""
import json
import math
import random
import sys
import unittest

sys.dont_write_bytecode = True
import wire  # noqa: E402
from common import CAPTURES, HERE, RoceboxTest, tshark  # noqa: E402

DEVICE = "devices: {d: {path: a <-> link <-> b, kernels: {link: %s}}}\n"


def frames(path):
    """[(time in ns, frame bytes, QPN, PSN)] of a capture."""
    rows = []
    for at, _, frame in wire.read_pcap(str(path))[0]:
        packet = wire.parse(frame)
        rows.append((at, bytes(frame), packet["qpn"] if packet else None, packet["psn"] if packet else None))
    return rows


class Link(RoceboxTest):
    def run_link(self, capture, options, *words, name="out.pcap"):
        out = self.dir / name
        report = self.replay(self.config(DEVICE % json.dumps(options)), "--in", f"a={capture}", "--out", f"b={out}", *words)
        return frames(out), report

    def test_an_explicit_drop_list_drops_exactly_those(self):
        """By number in the direction, and by QPN, PSN and occurrence, over captures with retransmissions and PSN wrap."""
        rng = random.Random(5)
        for name in ("rc_send_loss_tx", "rc_write_psnwrap", "rc_write_reorder_rx", "rdma_cm", "multi_qp"):
            with self.subTest(name):
                capture = CAPTURES / f"{name}.pcap"
                rows = frames(capture)
                numbers = set(rng.sample(range(1, len(rows) + 1), 12))
                seen, keys = {}, []
                for number, (_, _, qpn, psn) in enumerate(rows, 1):
                    if qpn is None:
                        continue
                    seen[qpn, psn] = seen.get((qpn, psn), 0) + 1
                    keys.append((qpn, psn, seen[qpn, psn], number))
                chosen = rng.sample(keys, 12)
                events = [{"packet": n, "do": "drop"} for n in sorted(numbers)]
                events += [{"qpn": q, "psn": p, "occurrence": o, "do": "drop"} for q, p, o, _ in chosen]
                dropped = numbers | {n for _, _, _, n in chosen}
                got, report = self.run_link(capture, {"forward": {"events": events}})
                wanted = [row for number, row in enumerate(rows, 1) if number not in dropped]
                self.assertEqual(got, wanted)
                self.assertEqual(report["run"]["packets_in"] - report["run"]["packets_out"], len(dropped))

    def test_events_do_what_they_say(self):
        capture = CAPTURES / "perftest_write.pcap"
        rows = frames(capture)
        events = [{"packet": 3, "do": "duplicate", "copies": 2}, {"packet": 7, "do": "delay", "by": "3ms"},
                  {"packet": 20, "do": "reorder", "packets": 4}, {"packet": 30, "do": "corrupt", "offset": 100, "mask": 0x81}]
        got, report = self.run_link(capture, {"forward": {"events": events}})
        frame = lambda number: rows[number - 1][1]
        self.assertEqual([row[1] for row in got].count(frame(3)), 3)
        late = next(row for row in got if row[1] == frame(7))
        self.assertEqual(late[0], rows[6][0] + 3_000_000)
        order = [row[1] for row in got]
        self.assertEqual(order.index(frame(20)), order.index(frame(24)) + 1)
        flipped = bytearray(frame(30))
        flipped[100] ^= 0x81
        self.assertIn(bytes(flipped), order)
        self.assertNotIn(frame(30), order)
        link = report["devices"]["d"]["kernels"]["link"]
        self.assertEqual(link["counters"]["forward_events_fired"], 4)
        self.assertEqual([(row["event"], row["fired"]) for row in link["forward"]["events"]], [(n, 1) for n in range(1, 5)])
        numbers = {3: "duplicate", 7: "delay", 20: "reorder", 30: "corrupt"}
        self.assertEqual(link["forward"]["events_fired"],
                         [{"event": event, "at_ns": rows[number - 1][0] - rows[0][0], "packet": number,
                           "qpn": rows[number - 1][2], "psn": rows[number - 1][3], "opcode": "RC RDMA WRITE Middle",
                           "do": action, "applied": True} for event, (number, action) in enumerate(numbers.items(), 1)])

    def test_an_event_that_meets_nothing_says_so(self):
        _, report = self.run_link(CAPTURES / "perftest_write.pcap", {"forward": {"events": [
            {"packet": 10**6, "do": "corrupt"}, {"qpn": 0x39, "psn": 1, "do": "drop"}, {"packet": 1, "do": "mark"}]}})
        forward = report["devices"]["d"]["kernels"]["link"]["forward"]
        self.assertEqual([row["fired"] for row in forward["events"]], [0, 0, 1])
        self.assertEqual([(row["event"], row["do"], row["applied"]) for row in forward["events_fired"]], [(3, "mark", False)])

    def test_faults_of_one_end_spare_the_other(self):
        """Both ends of this capture use QPN 0x11: only the addresses tell data from ACKs."""
        capture = CAPTURES / "rc_write.pcap"
        rows = [(row, wire.parse(row[1])) for row in frames(capture)]
        first = next(packet["psn"] for _, packet in rows if packet["opcode"] != 0x11)
        for options, dropped in (
                ({"loss": "100%", "match": {"source": "10.77.0.1"}}, lambda p: wire.text_address(p["src"]) == "10.77.0.1"),
                ({"loss": "100%", "match": {"kind": "data", "qpn": 0x11}}, lambda p: p["opcode"] != 0x11),
                ({"loss": "100%", "match": {"kind": ["nak", "ack"]}}, lambda p: p["opcode"] == 0x11),
                ({"events": [{"qpn": 0x11, "relative_psn": 5, "occurrence": 0, "do": "drop"}]},
                 lambda p: p["opcode"] != 0x11 and p["psn"] == first + 5),
                ({"events": [{"qpn": 0x11, "psn": first + 5, "occurrence": 0, "destination": "10.77.0.2", "do": "drop"}]},
                 lambda p: p["psn"] == first + 5 and wire.text_address(p["dst"]) == "10.77.0.2")):
            with self.subTest(options):
                got, _ = self.run_link(capture, {"forward": options})
                wanted = [row for row, packet in rows if not dropped(packet)]
                self.assertLess(len(wanted), len(rows))
                self.assertEqual(got, wanted)

    def test_silent_corruption_is_silent_and_ordinary_corruption_is_not(self):
        capture = CAPTURES / "rc_write_corrupt_rx.pcap"  # some ICRCs are wrong as it comes
        rows = frames(capture)
        was = [wire.parse(row[1])["icrc_ok"] for row in rows]
        self.assertIn(False, was)
        for icrc, told in (("kept", [False] * len(rows)), ("repaired", was)):
            with self.subTest(icrc):
                got, report = self.run_link(capture, {"forward": {"corrupt": "100%", "corrupt_icrc": icrc}})
                is_now = [(wire.parse(row[1]) or {"icrc_ok": None})["icrc_ok"] for row in got]
                # A flip may hit what says that this is RoCE at all, or a wrong ICRC's own wrong bit.
                differ = [n for n, (a, b) in enumerate(zip(is_now, told)) if a is not None and a != b]
                self.assertEqual(differ, [])
                self.assertTrue(all(a[1] != b[1] for a, b in zip(rows, got)))
                self.assertEqual(report["devices"]["d"]["kernels"]["link"]["counters"]["forward_corrupted"], len(rows))

    def test_the_trace_tells_what_was_done_and_its_capture_holds_each_row(self):
        events = [{"packet": 3, "do": "corrupt", "offset": 100, "mask": 1}, {"packet": 4, "do": "trim"},
                  {"packet": 5, "do": "duplicate"}, {"packet": 6, "do": "delay", "by": "1us"},
                  {"packet": 7, "do": "reorder", "packets": 1}, {"packet": 8, "do": "drop"}]
        config = self.config(DEVICE % json.dumps({"forward": {"events": events, "delay": "2us"}}))
        text, capture = self.dir / "trace.txt", self.dir / "trace.pcapng"
        self.rocebox("replay", config, "--in", f"a={CAPTURES / 'perftest_write.pcap'}", "--trace", "all",
                     "--trace-out", text, "--trace-out", capture)
        lines = text.read_text().splitlines()
        done = [line.split()[2:] for line in lines if " d.link " in line]
        notes = [[words[0], words[1]] for words in done if words[0] not in ("hold", "emit", "drop", "pass")]
        self.assertEqual(notes, [["corrupt", "#3"], ["trim", "#4"], ["duplicate", "#5"], ["delay", "#6"], ["reorder", "#7"]])
        trimmed = [line for line in lines if "leave" in line and "#4 " in line]
        self.assertRegex(trimmed[0], "RC RDMA WRITE Middle qpn 0x39 psn 9524350$")
        comments = [row[0] for row in tshark(capture, "frame.comment")]
        self.assertEqual([" ".join(c.split()) for c in comments], [" ".join(l.split()) for l in lines])
        self.assertTrue(any(" hold " in comment for comment in comments))

    def test_the_example_of_a_lossy_wide_area_loses(self):
        """With its own seed and with the one of README.md."""
        for words in ([], ["--seed", "7"]):
            report = self.replay(HERE.parent.parent / "configs/replay/wan.yaml", *words)
            self.assertGreater(report["links"]["haul"]["counters"]["forward_drop_burst_loss"], 0)
            self.assertTrue(all(row["holds"] for row in report["expectations"]))

    def test_random_loss_is_what_the_counters_say_and_within_bounds(self):
        big = self.dir / "big.pcap"
        data = (CAPTURES / "perftest_write.pcap").read_bytes()
        big.write_bytes(data + data[24:] * 60)
        for options, rate in (({"loss": "2%"}, 0.02), ({"burst_loss": {"enter": "1%", "leave": "25%"}}, 0.01 / 0.26)):
            got, report = self.run_link(big, {"forward": options})
            sent = report["run"]["packets_in"]
            lost = sent - len(got)
            counters = report["devices"]["d"]["kernels"]["link"]["counters"]
            self.assertEqual(lost, counters["forward_drop_loss"] + counters["forward_drop_burst_loss"])
            # Losses of the Gilbert-Elliott chain are correlated: its variance is larger by (1 + c) / (1 - c), c = 1 - p - r.
            spread = (1.74 / 0.26) if "burst_loss" in options else 1
            self.assertLess(abs(lost - sent * rate), 4 * math.sqrt(sent * rate * (1 - rate) * spread))

    def test_seed_changes_the_losses_and_nothing_else_does(self):
        capture = CAPTURES / "perftest_write.pcap"
        base = self.run_link(capture, {"loss": "5%"})[0]
        self.assertEqual(self.run_link(capture, {"loss": "5%"})[0], base)
        self.assertNotEqual(self.run_link(capture, {"loss": "5%"}, "--seed", "99")[0], base)
        moved = self.run_link(capture, {"loss": "5%", "duplicate": "10%"})[0]
        self.assertEqual({row[1] for row in moved}, {row[1] for row in base})

    def test_delay_is_exact_to_the_nanosecond(self):
        capture = CAPTURES / "rc_write.pcap"
        got, _ = self.run_link(capture, {"delay": "12345678ns"})
        self.assertEqual([(at - 12345678, frame) for at, frame, _, _ in got], [(r[0], r[1]) for r in frames(capture)])


if __name__ == "__main__":
    unittest.main()
