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
from common import CAPTURES, RoceboxTest  # noqa: E402

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
        fired = json.dumps(report["devices"]["d"]["kernels"]["link"])
        for word in ("duplicate", "delay", "reorder", "corrupt"):
            self.assertIn(word, fired)
        self.assertEqual(report["devices"]["d"]["kernels"]["link"]["counters"]["forward_events_fired"], 4)

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
