#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two LoWAR gateways, each a `rocebox run` of its own, with a wire between them: every RC and UC capture goes in at one side
and comes out at the other byte for byte, with no loss and with loss that the coding can repair."""
import collections
import json
import sys
import time

import bed

sys.path.insert(0, str(bed.ROOT / "tests" / "replay"))
import lowar_test as replayed  # noqa: E402

# A sender that is kept from its CPU for a while is not to look like a loss: nobody waits so long on a real link.
CODING = {"r": 8, "c": 1, "hold_min": "500ms", "hold_max": "1s", "link_mtu": "4500B"}
SECONDS_TO_REPAIR = 2  # more than `hold_max`
SLOWER = 1, 2, 5  # a machine that has no time for the packets is given more


class Lowar(bed.BedTest):
    mtu = 4500

    def setUp(self):
        super().setUp()
        tag = self.left_end[3:]
        self.near_end, self.far_end = f"rbN{tag}", f"rbF{tag}"
        self.addCleanup(bed.subprocess.run, ["ip", "link", "del", self.near_end], capture_output=True)
        bed.sh("ip", "link", "add", self.near_end, "mtu", str(self.mtu), "type", "veth", "peer", "name", self.far_end,
               "mtu", str(self.mtu))
        for end in (self.near_end, self.far_end):
            bed.sh("ip", "link", "set", end, "up")

    def sent(self):
        """All captures, one behind the other, as one file; and its frames."""
        frames = replayed.one_behind_the_other()
        path = self.dir / "all.pcap"
        replayed.write_pcap(path, frames)
        return path, frames

    def gateway(self, host, wan, path="host <-> lowar <-> wan", link=None, coding=CODING):
        kernels = {"lowar": coding, **({"link": link} if link else {})}
        return self.start_with(f"  host: {{af_packet: {host}}}\n  wan: {{af_packet: {wan}}}\n",
                               f"gateway: {{path: {path}, kernels: {json.dumps(kernels)}}}", "--name", f"lowar-{wan}")

    def missed(self, reports):
        """Packets that the gateways' ports missed: none where the machine had time for them."""
        return sum(port[name] for report in reports for port in report["ports"] for name in ("rx_missed", "rx_no_packet", "tx_full"))

    def attempt(self, cross, *words):
        """What `cross` returns, of the first attempt in which no port missed anything: else nothing could be told."""
        for slower in SLOWER:
            sent, arrived, reports = cross(*words, slower)
            if not self.missed(reports):
                return sent, arrived, reports
        self.fail(f"{len(SLOWER)} times packets were lost at the gateways' ports, the last time {self.missed(reports)}")

    def cross(self, events, coding=CODING):
        """Sends everything from left to right; returns what was sent, what arrived, and both reports."""
        return self.attempt(self.cross_one_way, events, coding)

    def cross_one_way(self, events, coding, slower):
        path, sent = self.sent()
        near = self.gateway(self.left_end, self.near_end, "host <-> lowar <-> link <-> wan", {"forward": {"events": events}}, coding)
        far = self.gateway(self.right_end, self.far_end, coding=coding)
        arrived = self.dir / "arrived.pcap"
        tool = bed.PYTHON, str(bed.HERE / "wire_tool.py")
        receiver = self.receiver(self.right, arrived)
        self.within(self.left, *tool, "send", "eth", str(path), str(100 * slower))
        reports = self.rest(near, far)
        self.finish(receiver)
        return sent, bed.roce_frames(arrived), reports

    def rest(self, near, far):
        """Ends both gateways when nothing is on its way any more: not before the encoders' last repair packets, either."""
        time.sleep(SECONDS_TO_REPAIR)
        self.settle(near, far, near)
        return self.stop(near), self.stop(far)

    def arrives_as_sent(self, sent, arrived):
        wanted = [frame for frame in sent if replayed.stream(frame) is None or replayed.wire.parse(frame)["icrc_ok"]]
        got = replayed.by_stream(arrived)
        for key, frames in replayed.by_stream(wanted).items():
            if key is not None:  # what is no RoCE mingles with what the hosts say of themselves
                self.assertEqual(got[key], frames)
        self.assertGreater(len(arrived), 3900)

    def counters(self, report):
        return report["devices"]["gateway"]["kernels"]["lowar"]["counters"]

    def test_without_loss(self):
        sent, arrived, (near, far) = self.cross([])
        self.arrives_as_sent(sent, arrived)
        self.assertGreater(self.counters(near)["encode_repairs"], 400)
        self.assertEqual(self.counters(far).get("decode_recovered", 0), 0)

    def cross_both_ways(self, events, coding, slower):
        """Sends everything both ways at once; returns what was sent, what arrived by side, and both reports."""
        path, sent = self.sent()
        near = self.gateway(self.left_end, self.near_end, "host <-> lowar <-> link <-> wan", {"events": events}, coding)
        far = self.gateway(self.right_end, self.far_end, coding=coding)
        tool = bed.PYTHON, str(bed.HERE / "wire_tool.py")
        spaces = {"right": self.right, "left": self.left}
        arrived = {side: self.dir / f"{side}.pcap" for side in spaces}
        receivers = [self.receiver(space, arrived[side]) for side, space in spaces.items()]
        senders = [self.child_within(space, *tool, "send", "eth", str(path), str(1000 * slower)) for space in spaces.values()]
        for child in senders:
            self.finish(child)
        reports = self.rest(near, far)
        for receiver in receivers:
            self.finish(receiver)
        return sent, {side: bed.roce_frames(file) for side, file in arrived.items()}, reports

    def test_both_ways_at_once_with_the_default_holds(self):
        """Both hosts send all captures; the link loses some each way. What is not waited for long enough, for a CPU that was
        busy, may be given up, but nothing else is lost, nothing is doubled and nothing is made up."""
        events = [{"kind": replayed.PROTECTED, "occurrence": n, "do": "drop"} for n in range(20, 5000, 80)]
        sent, arrived, reports = self.attempt(self.cross_both_ways, events, {"r": 8, "c": 1, "link_mtu": "4500B"})
        wanted = replayed.by_stream(frame for frame in sent if (replayed.wire.parse(frame) or {"icrc_ok": True})["icrc_ok"])
        fired = reports[0]["devices"]["gateway"]["kernels"]["link"]
        for side, way, report in (("right", "forward", reports[1]), ("left", "reverse", reports[0])):
            with self.subTest(to=side):
                got, counters = replayed.by_stream(arrived[side]), self.counters(report)
                lost = [row for row in fired[way]["events_fired"] if row["qpn"] != replayed.MAD_QPN]
                absent = []
                for key, frames in wanted.items():
                    if key is None:
                        continue
                    self.assertEqual(collections.Counter(got[key]) - collections.Counter(frames), collections.Counter())
                    self.assertLessEqual(replayed.descents(got[key]), replayed.descents(frames), "out of order")
                    absent += (collections.Counter(frames) - collections.Counter(got[key])).elements()
                self.assertGreater(len(lost), 40)
                self.assertEqual(counters["decode_recovered"] + len(absent), len(lost))
                places = collections.Counter((row["qpn"], row["psn"]) for row in lost)
                packets = map(replayed.wire.parse, absent)
                self.assertEqual(collections.Counter((p["qpn"], p["psn"]) for p in packets) - places, collections.Counter())
                self.assertEqual(counters.get("decode_rebuild_failed", 0), 0)
                self.assertGreater(counters["decode_recovered"], 0.8 * len(lost))

    def test_loss_that_can_be_repaired(self):
        """Single losses, and bursts of c packets of data: wherever they fall, no two are of one share."""
        for r, c in ((8, 1), (16, 4)):
            with self.subTest(r=r, c=c):
                events = [{"kind": replayed.PROTECTED, "occurrence": n + i, "do": "drop"} for n in range(20, 5000, 80 * c) for i in range(c)]
                sent, arrived, (near, far) = self.cross(events, {**CODING, "r": r, "c": c})
                self.arrives_as_sent(sent, arrived)
                fired = near["devices"]["gateway"]["kernels"]["link"]["forward"]["events_fired"]
                lost = [row for row in fired if row["qpn"] != replayed.MAD_QPN]
                self.assertGreater(len(lost), 40)
                self.assertEqual(self.counters(far)["decode_recovered"], len(lost))
                self.assertEqual(self.counters(far).get("decode_rebuild_failed", 0), 0)


if __name__ == "__main__":
    bed.main()
