# SPDX-License-Identifier: BSD-3-Clause
"""The transport error cases of tests/conformance, played to Linux's Soft-RoCE. Mixed into a test that has the machines."""
import base64
import os
import pathlib
import subprocess
import sys

import yaml

import bed
import raw_peer

CONFORMANCE = bed.ROOT / "tests" / "conformance"
sys.path.insert(0, str(CONFORMANCE))
import conformance_test  # noqa: E402
import model  # noqa: E402

PLAYER = os.environ.get("CASE_PLAYER", "")
RIGHTS = {"write": 2, "read": 4, "atomic": 8}
# Soft-RoCE's timers count in the kernel's ticks of 4 ms, and fire before a sleep that is longer. With timeout 0 none runs that
# would count how slow the machine is; a case that waits for timeouts waits for all of them.
WAIT_LEAST, WAIT_MOST, WAIT_FOR_TIMEOUTS = 40_000, 300_000, 1_000_000
MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}


def microseconds(text):
    unit = text.lstrip("0123456789")
    return int(text[:-len(unit)]) * MICROSECONDS[unit]


class SoftRocePlayer:
    """Plays cases to the machine behind `peer`; says what the NIC's own player says of them."""

    def __init__(self, peer):
        self.peer = peer
        peer.make_beacon()

    def run(self, case):
        qp, peer = case.get("qp", {}), self.peer
        waits = [microseconds(step.split()[1]) for step in case["do"] if step.startswith("wait")]
        timeout = qp.get("timeout", 8 if max(waits, default=0) >= WAIT_FOR_TIMEOUTS else 0)
        self.service = qp.get("type", "RC")
        access = 1 | sum(RIGHTS[right] for right in qp.get("access", RIGHTS))
        self.keys = peer.keys(peer.tell(
            "begin", self.service, access, qp.get("psn", 0), qp.get("max_dest_rd_atomic", 16), qp.get("min_rnr_timer", 1),
            qp.get("retry_cnt", 2), qp.get("rnr_retry", 2), qp.get("max_rd_atomic", 16), timeout,
            int("window" in str(case["do"]) or "LOCAL_INV" in str(case["do"])), raw_peer.OUR_ADDRESS))
        peer.out.clear()
        for text in case["do"]:
            self.play(text)
        peer.settle()
        state, *completions = peer.tell("end").split("\n")
        return {"out": list(peer.out), "completions": completions, "state": state, "memory": self.memory(0),
                "received": self.memory(1, 40 if self.service == "UD" else 0)}

    def play(self, text):
        verb, _, rest = text.partition(" ")
        if verb == "wait":
            self.peer.do("wait", min(max(microseconds(rest), WAIT_LEAST), WAIT_MOST if microseconds(rest) > WAIT_FOR_TIMEOUTS
                                     else WAIT_FOR_TIMEOUTS))
        elif verb == "remove":
            self.peer.do("remove", rest)
        elif verb == "receive":
            step = model.Step("RECEIVE " + rest)
            self.peer.do("receive", step.psn, step.text("lkey", "receive"))
        elif verb == "post":
            step = model.Step(rest)
            key = step.text("rkey", "window") if step.name == "LOCAL_INV" else step.text("lkey", "good")
            self.peer.do("post", step.name, 8 if step.name == "FETCH_ADD" else step.number("bytes"), step.number("at"), key)
        else:
            for one in rest.split("; "):
                self.peer.send_step(model.Step(one), self.keys, self.service)
        self.peer.settle()

    def memory(self, which, skipped=0):
        """Where bytes are that are not 0, as model.runs() says it."""
        bytes_there, at = bytearray(model.RECEIVES), skipped
        while (said := self.peer.tell("memory", which, at)) != "end":
            place, run = said.split()
            run = bytes.fromhex(run)
            at = int(place) + len(run)
            bytes_there[int(place):at] = run
        return model.runs(bytes_there)


def same_memory(said, seen):
    """Runs of bytes by their place; what is said may be their number alone."""
    said = {str(place): run for place, run in said.items()}
    return said.keys() == seen.keys() and all(run in (seen[place], len(seen[place]) // 2) for place, run in said.items())


def differences(said, seen):
    """What is not the same, a line each."""
    rows = [("out", said["out"], seen["out"])]
    rows += zip(("send", "receive"), conformance_test.split(said["completions"]), conformance_test.split(seen["completions"]))
    wrong = [f"{what}: {expected}, not {got}" for what, expected, got in rows
             if len(expected) != len(got) or not all(map(conformance_test.same, expected, got))]
    if said["state"] != seen["state"]:
        wrong.append(f"state: {said['state']}, not {seen['state']}")
    return wrong + [f"{what}: {said[what]}, not {seen[what]}" for what in ("memory", "received")
                    if not same_memory(said[what], seen[what])]


class ConformanceCases:
    def install_player(self):
        """The program into the machine, whose image need not know it."""
        packed = base64.b64encode(pathlib.Path(PLAYER).read_bytes()).decode()
        self.left.run("sh", "-c", f"echo {packed} | base64 -d >/bin/case_player && chmod 755 /bin/case_player")
        self.left.run("ip", "neigh", "replace", raw_peer.OUR_ADDRESS, "lladdr", raw_peer.OUR_MAC.hex(":"), "nud", "permanent",
                      "dev", "eth0")
        mac = self.left.run("cat", "/sys/class/net/eth0/address").strip()
        player = self.left.begin("case_player", seconds=600)
        self.addCleanup(self.end_server, player)
        self.left.run("sh", "-c", f"until grep -q ':{raw_peer.PLAYER_PORT:04X} ' /proc/net/udp; do sleep 0.2; done")
        peer = raw_peer.RawPeer(self.left.tap, mac, self.left.address)
        self.addCleanup(peer.close)
        return player, peer

    def test_d_transport_errors_have_soft_roces_own_answers(self):
        if not PLAYER:
            self.skipTest("no case_player: libibverbs-dev was not here when this was configured")
        differs = yaml.safe_load((CONFORMANCE / "soft_roce.yaml").read_text())
        names = [case["name"] for case in conformance_test.CASES]
        self.assertEqual([name for name in differs["cannot"] | differs["differs"] if name not in names], [], "names of no case")
        player, peer = self.install_player()
        judge, played = SoftRocePlayer(peer), 0
        for case in conformance_test.CASES:
            if case["name"] in differs["cannot"]:
                continue
            played += 1
            with self.subTest(case["name"]):
                said = model.run(case)
                own = {key: value for key, value in differs["differs"].get(case["name"], {}).items() if key != "because"}
                self.assertEqual(differences({**said, **own}, judge.run(case)), [])
                if own:
                    self.assertNotEqual(differences(said, {**said, **own}), [], "it does what the model says, and stands here")
        peer.tell("quit")
        self.assertEqual((player.wait(60), peer.wrong_icrcs), (0, 0))
        print(f"  Soft-RoCE: {played} of {len(names)} cases, {len(differs['differs'])} of them in its own way", flush=True)
