#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox check --strict` on programs that no hardware could run: status 1, and each access by name. The program comes as a
plugin (faulty_switch.cc)."""
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
from common import HERE, RoceboxTest  # noqa: E402

PLUGIN = os.environ.get("FAULTY_SWITCH", str(HERE.parent.parent / "build/release/tests/replay/faulty_switch.so"))
STAGE_4 = "program faulty, ingress, stage 4, register `late`: "
FAULTS = {  # as in faulty_switch.cc; accesses of one packet that cannot be
    1: {STAGE_4 + "a second access by one packet": 1},
    2: {STAGE_4 + "a second access by one packet": 4},
    3: {"program faulty, ingress, stage 1, register `early`: back to an earlier stage than `late` of stage 4": 1},
    4: {STAGE_4 + "an index beyond the array": 1},
    5: {"program faulty, egress, stage 5, register `leaving`: touched by the ingress control": 1},
    6: {"program faulty, ingress, stage 2, exact table `qps`: a second access by one packet": 1},
}
CLEAN = "strict: no access that the hardware could not do"


class Strict(RoceboxTest):
    def check(self, fault, *words, status, more=""):
        config = self.config("devices: {d: {switch: "
                             f"{{ports: [a, b], programs: [faulty], faulty: {{fault: {fault}}}{more}}}}}}}\n")
        return "".join(self.rocebox("check", config, "--plugin", PLUGIN, *words, status=status))

    def found(self, text):
        """{what: how many times}"""
        return {what: int(times) for what, times in re.findall(r"^# device d: (program .*) \((\d+) times\)$", text, re.M)}

    def test_what_hardware_can_do_passes(self):
        text = self.check(0, "--strict", status=0)
        self.assertIn(CLEAN, text)
        self.assertEqual(self.found(text), {})

    def test_each_access_that_it_cannot_is_named(self):
        packets = None
        for fault, expected in FAULTS.items():
            with self.subTest(fault=fault):
                text = self.check(fault, "--strict", status=1)
                self.assertNotIn(CLEAN, text)
                found = self.found(text)
                self.assertEqual(found.keys(), expected.keys(), text)
                packets = packets or next(iter(found.values()))  # as many as `check` sends
                self.assertEqual(found, {what: times * packets for what, times in expected.items()})

    def test_what_no_packet_comes_to_is_not_good_unless_it_is_accepted(self):
        hidden = 7
        text = self.check(hidden, "--strict", status=1)
        self.assertIn(CLEAN, text)
        self.assertIn("program faulty: no trial packet came to leaving\n", text)
        self.assertIn("write `accept_unjudged: [faulty.leaving]`", text)
        text = self.check(hidden, "--strict", status=0, more=", accept_unjudged: [faulty.leaving]")
        self.assertIn("no trial packet came to leaving, which is accepted\n", text)
        text = self.check(0, "--strict", status=0, more=", accept_unjudged: [faulty.leaving]")
        self.assertIn("`accept_unjudged` need not name faulty.leaving", text)
        text = self.check(0, "--strict", status=2, more=", accept_unjudged: [faulty.leavin]")
        self.assertIn("did you mean `faulty.leaving`?", text)

    def test_shipped_switches_are_judged_whole(self):
        for name in ("replay/acl", "replay/switch", "replay/themis", "replay/themis_nacks", "live/switch", "live/themis_tor"):
            with self.subTest(name=name):
                text, _ = self.rocebox("check", HERE.parent.parent / f"configs/{name}.yaml", "--strict")
                self.assertIn(CLEAN, text)
                self.assertNotIn("no trial packet", text)
                unused = re.findall(r"program themis: not in use, since .*: (.*)", text)
                self.assertEqual(unused, {"replay/themis": ["path_map"] * 2, "live/themis_tor": ["path_map"],
                                          "replay/themis_nacks": ["path_map", "next_hop_again"]}.get(name, []))

    def test_only_strict_looks(self):
        for words in ((), ("--resources",)):
            self.assertNotIn("second access", self.check(1, *words, status=0))


if __name__ == "__main__":
    unittest.main()
