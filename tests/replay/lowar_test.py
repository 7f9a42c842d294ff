#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two `lowar` gateways with a link between them, on real captures: what comes out at the far end is what went in."""
import collections
import json
import sys
import unittest

sys.dont_write_bytecode = True
import lowar_decoder  # noqa: E402
import wire  # noqa: E402
from common import RoceboxTest  # noqa: E402
from lowar_captures import MAD_QPN, RC_UC, by_stream, frames, is_coded, one_behind_the_other, stream, write_pcap  # noqa: E402

DEVICES = """  near_%(name)s: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
  far_%(name)s: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
"""
LINK = "  haul_%(name)s: {between: [near_%(name)s.wan, far_%(name)s.wan], delay: 20us, events: %(events)s}\n"
PORTS = """  near_%(name)s.host: {pcap: {in: %(capture)s, filter: ether src %(mac)s, out: near_%(name)s.pcap}}
  far_%(name)s.host: {pcap: {in: %(capture)s, filter: not ether src %(mac)s, out: far_%(name)s.pcap}}
"""
# Two gateways with a link that loses, and the same two encoders alone: what they put on the link does not depend on what it loses.
LOSSY_DEVICES = DEVICES + """  alone_near_%(name)s: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
  alone_far_%(name)s: {path: host <-> lowar <-> wan, kernels: {lowar: %(lowar)s}}
"""
LOSSY_LINK = "  haul_%(name)s: {between: [near_%(name)s.wan, far_%(name)s.wan], delay: 20us, forward: %(forward)s, reverse: %(reverse)s}\n"
LOSSY_PORTS = PORTS + """  alone_near_%(name)s.host: {pcap: {in: %(copy)s, filter: ether src %(mac)s}}
  alone_near_%(name)s.wan: {pcap: {out: forward_%(name)s.pcap}}
  alone_far_%(name)s.host: {pcap: {in: %(copy)s, filter: not ether src %(mac)s}}
  alone_far_%(name)s.wan: {pcap: {out: reverse_%(name)s.pcap}}
"""
RANDOM, BURSTS = {"loss": "3%"}, {"burst_loss": {"enter": "1.2%", "leave": "33%"}}
PROTECTED = ["data", "read_request", "read_response", "atomic"]


def descents(packets):
    """How often the PSN goes back; leaving packets out never makes it more."""
    psns = [(wire.parse(packet) or {"psn": 0})["psn"] for packet in packets]
    return sum((b - a) % (1 << 24) >= 1 << 23 for a, b in zip(psns, psns[1:]))


def repairable(coded, lost):
    """By the format alone. `coded`: what went onto the link; `lost`: the places in it of what the link lost. Returns the places
    of lost packets that their shares bring back; whether each share has at most one loss; streams that lost an announcement."""
    latest, back, whole, unannounced = {}, set(), True, set()
    for place, frame in enumerate(coded):
        packet, fields = lowar_decoder.lowar(frame), wire.parse(frame)
        if packet is None:
            if is_coded(frame):
                latest[stream(frame), fields["psn"]] = place
            continue
        key = fields["src"], fields["dst"], packet["qpn"], bool(packet["flags"] & 4)
        if packet["type"] == lowar_decoder.NEGOTIATION:
            unannounced |= {key} if place in lost else set()
            continue
        missing = [latest[key, psn] for psn in lowar_decoder.covers(packet) if latest[key, psn] in lost]
        if len(missing) + (place in lost) > 1:
            whole = False
        elif missing:
            back.add(missing[0])
    return back, whole, unannounced


class Lowar(RoceboxTest):
    def copies(self, capture, count):
        """Each packet of a file goes to one port, so each pair of gateways has a file of its own."""
        paths = [self.dir / f"copy{number}.pcap" for number in range(count)]
        for path in paths:
            path.write_bytes(capture.read_bytes())
        return [json.dumps(str(path)) for path in paths]

    def cross(self, capture, variants):
        """Replays a capture through a pair of gateways for each variant, (options of lowar, events of the link). Of each: what
        went in, (client to server, server to client); what came out; the counters of the two gateways; the link's report."""
        rows = frames(capture)
        mac = rows[0][6:12]
        values = [{"name": number, "lowar": json.dumps(lowar), "events": json.dumps(list(events)), "capture": copy,
                   "mac": ":".join("%02x" % byte for byte in mac)}
                  for number, (copy, (lowar, events)) in enumerate(zip(self.copies(capture, len(variants)), variants))]
        parts = ["".join(part % value for value in values) for part in (DEVICES, LINK, PORTS)]
        report = self.replay(self.config("devices:\n%slinks:\n%sports:\n%s" % tuple(parts)))
        sent = [row for row in rows if row[6:12] == mac], [row for row in rows if row[6:12] != mac]
        for number in range(len(variants)):
            devices = [report["devices"][f"{side}_{number}"] for side in ("near", "far")]
            self.assertEqual([device["counters"].get("packets_held", 0) for device in devices], [0, 0])
            yield (sent, (frames(self.dir / f"far_{number}.pcap"), frames(self.dir / f"near_{number}.pcap")),
                   [device["kernels"]["lowar"]["counters"] for device in devices], report["links"][f"haul_{number}"])

    def wanted(self, rows):
        """A wrong ICRC that comes from the host cannot be told from one that the link made: such packets end."""
        return [row for row in rows if (wire.parse(row) or {"icrc_ok": True})["icrc_ok"]]

    def test_without_loss_every_capture_crosses_unchanged(self):
        self.assertGreater(len(RC_UC), 40)
        variants = [({"r": 8, "c": 1}, ()), ({"r": 64, "c": 8}, ())]
        for capture in RC_UC:
            for (lowar, _), (sent, got, gateways, _) in zip(variants, self.cross(capture, variants)):
                with self.subTest(capture=capture.stem, **lowar):
                    for rows, came in zip(sent, got):
                        self.assertEqual(came, self.wanted(rows))
                    for counters in gateways:
                        for name in ("decode_recovered", "decode_rebuild_failed", "drop_lowar_icrc", "drop_lowar_malformed"):
                            self.assertEqual(counters.get(name, 0), 0, name)

    def test_what_the_link_loses_is_rebuilt_byte_for_byte(self):
        """Every seventieth protected packet of each direction, from three beginnings: never two in a block."""
        recovered = 0
        variants = [({"r": 8, "c": 1}, [{"kind": PROTECTED, "occurrence": n, "do": "drop"} for n in range(first, 430, 70)])
                    for first in (1, 2, 20)]
        for capture in RC_UC:
            for number, (sent, got, gateways, haul) in enumerate(self.cross(capture, variants)):
                with self.subTest(capture=capture.stem, variant=number):
                    lost = [row for way in ("forward", "reverse") for row in haul[way]["events_fired"] if row["qpn"] != MAD_QPN]
                    rebuilt = sum(counters.get("decode_recovered", 0) for counters in gateways)
                    recovered += rebuilt
                    for rows, came in zip(sent, got):
                        self.assertEqual(by_stream(came), by_stream(self.wanted(rows)))
                    if capture.stem != "rc_write_corrupt_rx":  # there an event may drop what would end anyway
                        self.assertEqual(rebuilt, len(lost))
        self.assertGreater(recovered, 150)

    def test_of_connections_that_begin_again_nothing_is_late(self):
        """All captures one behind the other, through one pair of gateways. Connections that were captured at both ends so begin
        twice within a second, with the same packets; UC's, too. What is rebuilt is what was lost, and nothing is dropped."""
        path = self.dir / "all.pcap"
        rows = one_behind_the_other()
        for microseconds_between in (20, 200):
            write_pcap(path, rows, microseconds_between)
            for r, c in ((8, 1), (16, 4)):
                events = [{"kind": PROTECTED, "occurrence": n + i, "do": "drop"} for n in range(20, 5000, 80 * c) for i in range(c)]
                values = {"name": 0, "lowar": json.dumps({"r": r, "c": c}), "events": json.dumps(events)}
                ports = '  near_0.host: {pcap: {in: %s}}\n  far_0.host: {pcap: {out: far.pcap}}\n' % json.dumps(str(path))
                report = self.replay(self.config("devices:\n%slinks:\n%sports:\n%s" % (DEVICES % values, LINK % values, ports)))
                with self.subTest(r=r, c=c, microseconds_between=microseconds_between):
                    lost = [row for row in report["links"]["haul_0"]["forward"]["events_fired"] if row["qpn"] != MAD_QPN]
                    far = report["devices"]["far_0"]["kernels"]["lowar"]["counters"]
                    self.assertGreater(len(lost), 50)
                    self.assertEqual((far["decode_recovered"], far["drop_late"], far["decode_released"]), (len(lost), 0, 0))
                    self.assertEqual(by_stream(frames(self.dir / "far.pcap")), by_stream(self.wanted(rows)))

    def losses(self, trace, haul):
        """Of each direction, the places of what the link lost among all that came to it; and how many came."""
        ways = {"forward": [], "reverse": []}
        lost = {"forward": [], "reverse": []}
        for line in trace:
            words = line.split(None, 5)
            if words[1] == haul and words[2] == "arrive":
                ways["forward" if words[3] == "a" else "reverse"].append(words[4])
            elif words[1] == haul + ".link" and words[2] == "drop":
                lost[words[3].split("_")[0]].append(words[4])
        return {way: ({numbers.index(number) for number in lost[way]}, len(numbers)) for way, numbers in ways.items()}

    def lossy(self, capture, seed, variants):
        """Replays a capture through a pair of gateways for each variant, (options of lowar, the link forward, the link back).
        Of each and each direction: its number, what went in, what went onto the link, the places in it of what was lost, what
        came out."""
        rows = frames(capture)
        mac, copies = rows[0][6:12], self.copies(capture, 2 * len(variants))
        values = [{"name": number, "capture": copies[2 * number], "copy": copies[2 * number + 1],
                   "mac": ":".join("%02x" % byte for byte in mac), "lowar": json.dumps(lowar), "forward": json.dumps(forward),
                   "reverse": json.dumps(reverse)} for number, (lowar, forward, reverse) in enumerate(variants)]
        parts = ["".join(part % value for value in values) for part in (LOSSY_DEVICES, LOSSY_LINK, LOSSY_PORTS)]
        trace = self.dir / "trace.txt"
        self.replay(self.config("seed: %d\ndevices:\n%slinks:\n%sports:\n%s" % (seed, *parts)), "--trace", "all", "--trace-out", trace)
        lines = [line for line in trace.read_text().splitlines() if " haul_" in line]
        for number in range(len(variants)):
            losses = self.losses(lines, f"haul_{number}")
            for way, out in (("forward", "far"), ("reverse", "near")):
                coded = frames(self.dir / f"{way}_{number}.pcap")
                lost, arrived = losses[way]
                self.assertEqual(arrived, len(coded))
                yield (number, [row for row in rows if (row[6:12] == mac) == (way == "forward")], coded, lost,
                       frames(self.dir / f"{out}_{number}.pcap"))

    def judge(self, rows, coded, lost, came):
        """What left the far gateway, against what the format says can be repaired; how many it brought back, how many were given
        up, and whether all was repaired."""
        back, whole, unannounced = repairable(coded, lost)
        over = [frame for place, frame in enumerate(coded) if place not in lost and lowar_decoder.lowar(frame) is None]
        due = [frame for place, frame in enumerate(coded)
               if (place not in lost or place in back) and lowar_decoder.lowar(frame) is None]
        over, due, came_by, sent = (by_stream(frames) for frames in (self.wanted(over), self.wanted(due), came, self.wanted(rows)))
        self.assertLessEqual(set(came_by), set(sent))
        for key, packets in sent.items():
            if whole and key not in unannounced:
                self.assertEqual(came_by[key], due[key], key)
                continue
            # Where an announcement is lost, some of what could be repaired may be given up.
            least, most, got = (collections.Counter(by[key]) for by in (over if key in unannounced else due, due, came_by))
            self.assertEqual([stream(frame) for frame in least - got], [], "not handed over")
            self.assertEqual([stream(frame) for frame in got - most], [], "not sent, or too often")
            self.assertLessEqual(descents(came_by[key]), descents(packets), "out of order")
            if not descents(packets):
                rest = iter(packets)
                self.assertTrue(all(packet in rest for packet in came_by[key]), "out of order")
        given_up = sum(map(len, sent.values())) - sum(map(len, came_by.values()))
        return len(back), given_up, whole and not unannounced

    def test_random_and_burst_losses_are_repaired_as_the_format_says(self):
        """Each capture through both codings at once, with single losses one way and bursts the other, by turns."""
        repaired = equal = beyond = 0
        for number, capture in enumerate(RC_UC):
            variants = [({"r": r, "c": c, "hold_min": "1s", "hold_max": "1s"},  # time is no reason to give up
                         (RANDOM, BURSTS)[(number + turn) % 2], (BURSTS, RANDOM)[(number + turn) % 2])
                        for turn, (r, c) in enumerate(((8, 2), (64, 8)))]
            for variant, *what in self.lossy(capture, number + 1, variants):
                with self.subTest(capture=capture.stem, variant=variant):
                    back, _, all_of_it = self.judge(*what)
                    repaired += back
                    equal += all_of_it and back > 0
                    beyond += not all_of_it
        self.assertGreater(repaired, 100)
        self.assertGreater(equal, 10)
        self.assertGreater(beyond, 10)

    def test_beyond_repair_nothing_is_wrong_or_out_of_order(self):
        """Every third packet of each direction is lost: what comes out is what went in but for those that were lost, of which
        short messages have some back."""
        drops = range(5, 600, 3)
        link = {"events": [{"packet": number, "do": "drop"} for number in drops]}
        lost_data = repaired = given_up = 0
        for capture in RC_UC:
            for _, rows, coded, lost, came in self.lossy(capture, 1, [({"r": 8, "c": 1}, link, link)]):
                with self.subTest(capture=capture.stem):
                    self.assertEqual(lost, {number - 1 for number in drops if number <= len(coded)})
                    back, its, _ = self.judge(rows, coded, lost, came)
                    lost_data += sum(is_coded(coded[place]) for place in lost)
                    repaired, given_up = repaired + back, given_up + its
        self.assertGreater(lost_data, 1500)
        self.assertGreater(given_up, 1400)
        self.assertGreater(repaired, 100)


if __name__ == "__main__":
    unittest.main()
