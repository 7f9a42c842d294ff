#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two ToRs with Themis, each a `rocebox run` of its own, joined by four veth pairs as spine paths: forwarding, spraying, which
NACKs pass, pairing by configuration, RDMA CM and learning, and that a ToR with spraying off is invisible."""
import json
import sys
from collections import Counter

import bed

sys.path.insert(0, str(bed.ROOT / "tests" / "replay"))
import themis_test as replayed  # noqa: E402

PATHS = ["s1", "s2", "s3", "s4"]
COUNT, LOST = 400, 203
NEAR = {"local": replayed.NEAR_IP, "local_qpn": replayed.NEAR_QPN, "remote": replayed.FAR_IP, "remote_qpn": replayed.FAR_QPN}
FAR = {"local": replayed.FAR_IP, "local_qpn": replayed.FAR_QPN, "remote": replayed.NEAR_IP, "remote_qpn": replayed.NEAR_QPN}


def write(psn):
    return replayed.frame(True, replayed.WRITE_MIDDLE, psn, bytes(256))


def answer(psn, syndrome):
    return replayed.frame(False, replayed.ACKNOWLEDGE, psn, bytes([syndrome, 0, 0, 1]))


class Themis(bed.BedTest):
    macs = (replayed.NEAR_MAC, replayed.FAR_MAC)

    def setUp(self):
        super().setUp()
        self.tors = []  # that run
        tag = self.left_end[3:]
        self.spines = [(f"rbn{path}{tag}", f"rbf{path}{tag}") for path in PATHS]
        for near, far in self.spines:
            self.addCleanup(bed.subprocess.run, ["ip", "link", "del", near], capture_output=True)
            bed.sh("ip", "link", "add", near, "type", "veth", "peer", "name", far)
            for end in (near, far):
                bed.sh("sysctl", "-q", f"net.ipv6.conf.{end}.disable_ipv6=1")  # nothing of its own on the wire
                bed.sh("ip", "link", "set", end, "up")

    def tor(self, side, **themis):
        """The ToR of host 0 (left) or 1 (right)."""
        host = (self.left_end, self.right_end)[side]
        ports = f"  h: {{af_packet: {host}}}\n" + "".join(
            f"  {path}: {{af_packet: {ends[side]}}}\n" for path, ends in zip(PATHS, self.spines))
        macs = [{"mac": self.macs[side], "ports": ["h"]}, {"mac": self.macs[1 - side], "ports": PATHS}]
        switch = {"ports": ["h", *PATHS], "programs": ["forward", "themis"],
                  "forward": {"learning": False, "unknown": "drop_all", "macs": macs}, "themis": {"hosts": ["h"], "paths": 4, **themis}}
        run = self.start_with(ports, f"t: {json.dumps({'switch': switch})}", "--name", f"themis-{host}")
        self.tors.append(run)
        return run

    def cross(self, side, frames):
        """Sends frames from one host; gives those that the other receives."""
        spaces, tool = (self.left, self.right), (bed.PYTHON, str(bed.HERE / "wire_tool.py"))
        sent, arrived = self.dir / "sent.pcap", self.dir / "arrived.pcap"
        bed.write_pcap(sent, [(i, len(frame), frame) for i, frame in enumerate(frames)])
        receiver = self.receiver(spaces[1 - side], arrived)
        self.within(spaces[side], *tool, "send", "eth", str(sent), "200")
        self.settle(*self.tors)
        self.finish(receiver)
        return bed.roce_frames(arrived)

    def end(self, *runs):
        """What the switches count, with their connections and ports."""
        reports = []
        for run in runs:
            self.tors.remove(run)
            device = self.stop(run)["devices"]["t"]
            switch = device["kernels"]["switch"]
            reports.append((switch["counters"], switch["themis"]["connections"], device["ports"]))
        return reports

    def test_sprays_and_judges(self):
        near, far = self.tor(0, connections=[NEAR]), self.tor(1, connections=[{**FAR, "first_psn": 0}])
        frames = [write(psn) for psn in range(COUNT) if psn != LOST]
        arrived = self.cross(0, frames)
        self.assertEqual(Counter(arrived), Counter(frames))
        # The lost packet's NACK passes, the other does not.
        passed = self.cross(1, [answer(201, 0x1F), answer(LOST, 0x60), answer(LOST + 1, 0x60)])
        self.assertEqual(passed, [answer(201, 0x1F), answer(LOST, 0x60)])
        self.assertEqual(self.cross(0, [write(LOST)]), [write(LOST)])
        (near_counts, near_pairs, _), (counts, pairs, ports) = self.end(near, far)
        self.assertEqual((counts["nack_valid"], counts["drop_nack_invalid"]), (1, 1))
        self.assertEqual(near_counts["rerouted_nacked"], 1)
        self.assertEqual([row["paired_by"] for row in near_pairs + pairs], ["configuration"] * 2)
        # What came in one burst with the first packet had no state yet, and took the path that ECMP gives it.
        before = COUNT - near_counts["sprayed"]
        self.assertLess(before, COUNT / 8)
        for path in PATHS:
            self.assertAlmostEqual(ports[path]["rx_packets"], COUNT / 4, delta=before + 3, msg=path)

    def test_the_number_of_paths_is_reloaded(self):
        """A far ToR that has 4 paths in mind, then 2: a packet of the same half says that another is lost."""
        self.tor(0, connections=[NEAR])
        far = self.tor(1, connections=[{**FAR, "first_psn": 0}], ooo_threshold=0, stash_timeout="0ns")
        self.cross(0, [write(psn) for psn in range(20)])
        self.cross(0, [write(21)])
        nack = answer(20, 0x60)
        self.assertEqual(self.cross(1, [answer(19, 0x1F), nack]), [answer(19, 0x1F)], "undetermined")
        # The name that the run has, and the file that it read last: that of the far ToR.
        config = self.dir / "run.yaml"
        command = [bed.ROCEBOX, "reload", f"themis-{self.right_end}"]
        for before, after, status, said in (("4", "2", 0, "themis.paths is now 2, was 4"), ("2", "9", 2, "`paths` is 9, and no destination has so many equal ports")):
            text = config.read_text().replace(f'"paths": {before},', f'"paths": {after},')
            config.write_text(text.replace('"ports": ["s1", "s2", "s3", "s4"]', '"ports": ["s1", "s2"]'))  # N equal ports
            done = bed.subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stdout + done.stderr)
        self.assertEqual(self.cross(0, [write(22)]), [write(22)])
        (counts, _, _), = self.end(far)
        self.assertEqual(counts["drop_nack_undetermined"], 1)
        self.assertEqual(counts["paths_changed"], 1, "the refused one is none")

    def test_spraying_off_is_invisible(self):
        near, far = self.tor(0, spray="off"), self.tor(1, spray="off")
        frames = [write(psn) for psn in range(COUNT)]
        self.assertEqual(self.cross(0, frames), frames, "in order, untouched")
        nacks = [answer(psn, 0x60) for psn in (5, 7, 9)]
        self.assertEqual(self.cross(1, nacks), nacks)
        for counts, pairs, _ in self.end(near, far):
            self.assertEqual((counts["sprayed"], counts["qps_made"], pairs), (0, 0, []))

    def test_learns_a_connection_from_its_acks(self):
        near, far = self.tor(0), self.tor(1)
        for start in range(100, 140, 10):
            self.cross(0, [write(psn) for psn in range(start, start + 10)])
            self.cross(1, [answer(psn, 0x1F) for psn in range(start, start + 10)])
        for counts, pairs, _ in self.end(near, far):
            self.assertEqual([row["paired_by"] for row in pairs], ["learnt"])
            self.assertEqual(counts["pairs_undone"], 0)

    def test_overhears_the_connection_manager(self):
        frames = bed.roce_frames(bed.CAPTURES / "rdma_cm.pcap")
        self.macs = frames[0][6:12].hex(":"), frames[0][0:6].hex(":")
        disconnect = next(i for i, frame in enumerate(frames) if int.from_bytes(frame[47:50], "big") == 1 and frame[78:80] == b"\0\x15")
        # The handshake with a few packets behind it, then all: what a DREQ has ended is in no report.
        for part in (frames[:6], frames):
            near, far = self.tor(0, learning=False), self.tor(1, learning=False)  # or the ACKs would pair it as well
            ended = len(part) > disconnect
            while part:  # one side's frames at a time
                side = 0 if part[0][6:12].hex(":") == self.macs[0] else 1
                run = next((i for i, frame in enumerate(part) if frame[6:12] != part[0][6:12]), len(part))
                self.assertEqual(Counter(self.cross(side, part[:run])), Counter(part[:run]))
                part = part[run:]
            for counts, pairs, _ in self.end(near, far):
                self.assertEqual((counts["qps_made"], counts["qps_ended"]), (1, int(ended)), "ended by its DREQ, and by nothing else")
                self.assertEqual([row["paired_by"] for row in pairs], [] if ended else ["cm"])


if __name__ == "__main__":
    bed.main()
