#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox lab`: what it builds, runs, judges, refuses, and that nothing of it stays behind, however it ends."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import bed
from bed import ROCEBOX, ROOT

LABS = ROOT / "configs" / "lab"
STATE = pathlib.Path("/run/rocebox/lab")
INSTANCES = pathlib.Path(os.environ.get("RUNTIME_DIRECTORY") or "/var/run") / "dpdk"
TAG = f"t{os.getpid()}"

TWO = """lab: NAME
hosts:
  left: {addresses: 10.97.0.1/24}
  right: {addresses: 10.97.0.2/24}
appliances:
  bump:
    devices: {bump: {path: a <-> inspect <-> z}}
    pool: {small: 8192, large: 1024, giant: 16}
wires: [left <-> bump.a, bump.z <-> right]
"""

# Holds packets for twenty seconds.
SLOW = TWO.replace("    devices: {bump: {path: a <-> inspect <-> z}}\n", """    drain: 60s
    devices: {bump: {path: a <-> one <-> two <-> z, kernels: {one: {type: link, delay: 10s}, two: {type: link, delay: 10s}}}}
""").replace("10.97.0.1/24", "10.97.0.1/24, neighbours: 10.97.0.2 02:00:00:00:00:02")


def namespaces(lab):
    return sorted(p.name for p in pathlib.Path("/run/netns").glob(f"rocebox.{lab}.*"))


def processes(words):
    """Numbers of processes whose command line has that text."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in path.read_bytes().replace(b"\0", b" ") and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


class LabTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rocebox-lab-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.labs = []
        self.addCleanup(self.take_down)

    def take_down(self):
        for lab in self.labs:
            self.rocebox("lab", "down", lab)

    def rocebox(self, *words, timeout=150, **more):
        return subprocess.run([ROCEBOX, *map(str, words)], capture_output=True, text=True, timeout=timeout, **more)

    def lab(self, text, name="lab"):
        """A file with that lab, under a name of its own, and the name."""
        lab = f"{name}-{TAG}"
        self.labs.append(lab)
        path = self.dir / f"{name}.yaml"
        path.write_text(text.replace("NAME", lab))
        return path, lab

    def two(self, more="", name="lab"):
        return self.lab(TWO + more, name)

    def assert_nothing_left(self, lab):
        self.assertEqual(namespaces(lab), [])
        self.assertFalse((STATE / lab).exists())
        self.assertEqual(processes(f"rocebox.{lab}."), [])
        self.assertEqual(processes(f"/lab/{lab}/"), [])
        self.assertEqual(list(INSTANCES.glob(f"rocebox-{lab}.*")), [])

    def wait_for(self, what, why, seconds=60):
        deadline = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), deadline, why)
            time.sleep(0.05)

    def start(self, path, *words):
        process = subprocess.Popen([ROCEBOX, "lab", "run", str(path), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        return process


class Run(LabTest):
    def shipped(self, name):
        lab = f"{name}-{TAG}"
        self.labs.append(lab)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "run", LABS / f"{name}.yaml", "--name", lab, "--json", report)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        self.assert_nothing_left(lab)
        report = json.loads(report.read_text())
        self.assertEqual(report["command"], "lab run")
        self.assertTrue(report["expectations"] and all(row["holds"] for row in report["expectations"]))
        return report, done.stdout

    def test_two_hosts(self):
        report, text = self.shipped("two_hosts")
        self.assertEqual(report["traffic"]["ping"]["received"], 10)
        self.assertEqual(report["traffic"]["fragments"]["exit"], 0)
        self.assertGreater(report["traffic"]["ping"]["elapsed_ns"], 900e6)
        self.assertGreater(report["appliances"]["bump"]["devices"]["bump"]["counters"]["packets_in"], 1000)
        self.assertRegex(text, r"yes +traffic.ping.received == 10 +10 +10")
        self.assertNotIn("sum_received.bytes 2", text)

    def test_lossy(self):
        report, _ = self.shipped("lossy")
        ping = report["traffic"]["ping"]
        self.assertGreater(ping["sent"], ping["received"])

    def test_two_appliances_in_series_and_a_router(self):
        report, _ = self.shipped("in_series")
        self.assertEqual(set(report["appliances"]), {"tap", "wire"})

    def test_ten_appliances_in_a_row(self):
        count = 10
        bumps = "".join(f"  b{i}:\n    devices: {{bump: {{path: a <-> inspect <-> z}}}}\n    live: {{idle: interrupt}}\n"
                        "    pool: {small: 4096, large: 128, giant: 4}\n" for i in range(count))
        wires = ["left <-> b0.a", *(f"b{i}.z <-> b{i + 1}.a" for i in range(count - 1)), f"b{count - 1}.z <-> right"]
        path, _ = self.lab(TWO[:TWO.index("appliances:")] + "appliances:\n" + bumps + "wires:\n" + "".join(f"  - {w}\n" for w in wires) +
                           "traffic:\n  - {name: ping, host: left, run: ping -c 20 -i 0.1 10.97.0.2, numbers: 'received = (\\d+) received'}\n"
                           "expect:\n  - traffic.ping.received == 20\n" +
                           # A core that polls makes some millions a second.
                           "".join(f"  - appliances.b{i}.run.loops < 200000\n" for i in range(count)))
        done = self.rocebox("lab", "run", path)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def test_hosts_are_as_the_file_says(self):
        path, lab = self.lab("""lab: NAME
hosts:
  left:
    mac: 02:00:00:00:00:aa
    mtu: 3000
    addresses: [10.97.0.1/24, "fd97::1/64"]
    neighbours: 10.97.0.9 02:00:00:00:00:09
    offloads: {tso: on, gro: off, tx_checksum: off}
    sysctls: net.ipv4.ip_default_ttl=17
    routes: [10.96.0.0/16 via 10.97.0.2, "fd96::/64 via fd97::2"]
  right: {mtu: 3000}
wires: left <-> right
traffic:
  - {host: left, run: ip link show eth0, output: link.txt}
  - {host: left, run: ip -6 address show eth0; ip address show eth0, output: address.txt}
  - {host: left, run: ip neighbour, output: neighbour.txt}
  - {host: left, run: ethtool -k eth0, output: offloads.txt}
  - {host: left, run: cat /proc/sys/net/ipv4/ip_default_ttl, output: ttl.txt}
  - {host: left, run: ip route; ip -6 route, output: routes.txt}
""")
        done = self.rocebox("lab", "run", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {file.stem: file.read_text() for file in self.dir.glob("*.txt")}
        self.assertIn("mtu 3000", said["link"])
        self.assertIn("02:00:00:00:00:aa", said["link"])
        self.assertIn("10.97.0.1/24", said["address"])
        self.assertRegex(said["address"], r"fd97::1/64 scope global (nodad )?\n")
        self.assertRegex(said["neighbour"], r"10\.97\.0\.9 dev eth0 lladdr 02:00:00:00:00:09 PERMANENT")
        for setting in ("tcp-segmentation-offload: on", "generic-segmentation-offload: off", "generic-receive-offload: off",
                        "tx-checksumming: off"):
            self.assertIn(setting, said["offloads"].replace(" [requested on]", ""))
        self.assertEqual(said["ttl"], "17\n")
        self.assertIn("10.96.0.0/16 via 10.97.0.2", said["routes"])
        self.assertIn("fd96::/64 via fd97::2", said["routes"])
        self.assert_nothing_left(lab)

    def test_appliances_with_taps(self):
        if not os.access("/dev/net/tun", os.W_OK):
            self.skipTest("there is no /dev/net/tun")
        path, lab = self.lab(TWO.replace("  bump:\n", "  bump:\n    bind: tap\n", 1)
                             + "traffic: [{host: left, run: ping -c 3 -i 0.1 10.97.0.2}]\n"
                             + "expect: [appliances.bump.bump.packets_dropped == 0]\n")
        done = self.rocebox("lab", "run", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_nothing_left(lab)

    def test_two_labs_at_once(self):
        more = "traffic: [{host: left, run: ping -c 5 -i 0.2 10.97.0.2}]\nexpect: [appliances.bump.bump.packets_dropped == 0]\n"
        labs = [self.two(more, name) for name in ("one", "other")]
        for process in [self.start(path) for path, _ in labs]:
            out, error = process.communicate(timeout=150)
            self.assertEqual(process.returncode, 0, out + error)
        for _, lab in labs:
            self.assert_nothing_left(lab)


    def test_one_name_is_one_lab(self):
        path, lab = self.two("traffic: [{host: left, run: sleep 3}]\n")
        processes = [self.start(path) for _ in range(2)]
        said = [process.communicate(timeout=150)[1] for process in processes]
        self.assertEqual(sorted(process.returncode for process in processes), [0, 2], said)
        self.assert_nothing_left(lab)


class Judges(LabTest):
    def run_two(self, more, status):
        path, lab = self.two(more)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "run", path, "--json", report)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assert_nothing_left(lab)
        return done, json.loads(report.read_text())

    def test_an_expectation_that_does_not_hold(self):
        done, report = self.run_two("traffic: [{name: ping, host: left, run: ping -c 2 -i 0.1 10.97.0.2}]\n"
                                    "expect: [traffic.ping.exit == 0, appliances.bump.bump.a.rx_packets == 0]\n", 1)
        self.assertEqual([row["holds"] for row in report["expectations"]], [True, False])
        self.assertRegex(done.stdout, r"no +appliances.bump.bump.a.rx_packets == 0")
        self.assertRegex(done.stderr, r"lab.yaml:\d+:\d+: expected `appliances.bump.bump.a.rx_packets == 0`: `appliances\S+` is [1-9]")

    def test_a_command_that_fails_is_the_end_and_shows_what_it_said(self):
        done, report = self.run_two("traffic:\n  - {host: left, run: 'echo broken >&2; exit 3'}\n  - {name: never, host: left, run: 'true'}\n", 1)
        self.assertRegex(done.stderr, r"lab.yaml:11:\d+: `step_1` in left: exit status 3, expected 0; it said:\nbroken")
        self.assertEqual(list(report["traffic"]), ["step_1"])
        self.assertEqual(len(report["failures"]), 1)

    def test_exit_statuses_as_wanted(self):
        self.run_two("traffic:\n  - {host: left, run: exit 3, exit: 3}\n  - {host: left, run: exit 4, exit: -1}\n"
                     "  - {host: left, run: kill -9 $$, exit: 137}\n", 0)

    def test_a_command_that_takes_too_long(self):
        done, report = self.run_two("traffic: [{host: left, run: sleep 60, timeout: 300ms}]\n", 1)
        self.assertIn("not done after 0.300 s", done.stderr)
        self.assertTrue(report["traffic"]["step_1"]["timed_out"])
        self.assertLess(report["traffic"]["step_1"]["elapsed_ns"], 60e9)

    def test_commands_in_the_background(self):
        _, report = self.run_two("traffic:\n"
                                 "  - {name: words, host: right, background: true, ready: go, run: 'sleep 0.2; echo go; exec sleep 50'}\n"
                                 "  - {name: port, host: right, background: true, ready_port: 8123, run: exec python3 -m http.server 8123 --bind 10.97.0.2}\n"
                                 "  - {name: done, host: right, background: true, run: exit 0}\n"
                                 "  - host: left\n    run: python3 -c \"import socket; socket.create_connection(('10.97.0.2', 8123), 5)\"\n"
                                 "expect: [traffic.words.ended_by_lab == 1, traffic.words.elapsed >= 200ms]\n", 0)
        self.assertFalse(report["traffic"]["done"]["ended_by_lab"])

    def test_a_server_that_dies_or_is_never_ready(self):
        done, _ = self.run_two("traffic: [{host: right, background: true, ready: go, run: 'echo no such thing >&2; exit 1'}]\n", 1)
        self.assertIn("it has ended, and was never ready; it said:\nno such thing", done.stderr)
        done, _ = self.run_two("traffic: [{host: right, background: true, ready: go, run: sleep 60, timeout: 300ms}]\n", 1)
        self.assertIn("not ready after 0.300 s", done.stderr)
        done, _ = self.run_two("traffic:\n  - {name: bad, host: right, background: true, run: exit 5}\n  - {host: left, run: sleep 0.3}\n", 1)
        self.assertIn("`bad` in right: exit status 5", done.stderr)

    def test_an_appliance_that_dies_while_traffic_runs(self):
        path, lab = self.two("traffic: [{name: long, host: left, run: sleep 4007}]\n")
        process = self.start(path)
        appliance = lambda: [p for p in processes(f"/lab/{lab}/") if "rocebox" in os.readlink(f"/proc/{p}/exe")]
        self.wait_for(lambda: processes("sleep 4007") and appliance(), "the traffic has begun")
        os.kill(appliance()[0], signal.SIGKILL)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, out + error)
        self.assertIn("appliance `bump` has ended with exit status 137", error)
        self.assert_nothing_left(lab)


class Ends(LabTest):
    def in_traffic(self):
        path, lab = self.two("traffic:\n  - {host: right, background: true, run: 'sleep 5007 & sleep 5017'}\n  - {host: left, run: sleep 6007}\n")
        process = self.start(path)
        self.wait_for(lambda: processes("sleep 6007"), "the traffic has begun")
        return path, lab, process

    def test_ctrl_c_and_sigterm_leave_nothing(self):
        for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
            _, lab, process = self.in_traffic()
            process.send_signal(number)
            out, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1, out + error)
            self.assertIn(f"interrupted by {name}", error)
            self.assertIn("appliances", out, "what there is of a report comes")
            self.assert_nothing_left(lab)

    def test_ctrl_c_while_it_is_built_leaves_nothing(self):
        path, lab = self.two()
        process = self.start(path)
        self.wait_for(lambda: namespaces(lab), "it is being built")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, out + error)
        self.assert_nothing_left(lab)

    def test_ctrl_c_twice_kills_appliances_that_still_drain(self):
        path, lab = self.lab(SLOW + "traffic: [{host: left, run: ping -c 2 -i 0.2 -W 1 10.97.0.2, exit: -1}]\n")
        process = self.start(path)
        self.wait_for(lambda: processes("ping -c 2 -i 0.2 -W 1 10.97.0.2"), "the traffic has begun")
        self.wait_for(lambda: not processes("ping -c 2 -i 0.2 -W 1 10.97.0.2"), "the traffic has ended")
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline() + process.stderr.readline()
        self.assertIn("interrupted by SIGINT: appliances let out what they hold; once more kills them", said)
        self.assertTrue(processes(f"--name {lab}.bump"), "one signal lets them have their time")
        time.sleep(0.4)  # at once it would say the same again
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(process.returncode, 1, out + error)
        self.assertIn("appliance `bump` was killed by a second signal", error)
        self.assert_nothing_left(lab)

    def test_a_lab_that_was_killed_is_taken_down_by_down(self):
        path, lab, process = self.in_traffic()
        process.kill()
        process.wait()
        self.assertEqual(len(namespaces(lab)), 3)
        again = self.rocebox("lab", "run", path)
        self.assertEqual(again.returncode, 2)
        self.assertIn(f"rocebox lab down {lab}", again.stderr)
        path.write_text(f"lab: {lab}\nhosts: what has become of it\n")  # the name is enough
        done = self.rocebox("lab", "down", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"lab {lab} is down\n")
        self.assert_nothing_left(lab)
        for sleeper in ("sleep 5007", "sleep 5017", "sleep 6007"):
            self.assertEqual(processes(sleeper), [])

    def test_down_clears_away_what_killed_appliances_leave_and_no_more(self):
        path, lab = self.two()
        other, near = self.two(name=f"lab-{TAG}-x")
        for each in (path, other):
            self.assertEqual(self.rocebox("lab", "up", each).returncode, 0)
        for process in processes(f"--name {lab}.bump"):
            os.kill(process, signal.SIGKILL)
        self.wait_for(lambda: not processes(f"--name {lab}.bump"), "it is gone")
        self.assertTrue((INSTANCES / f"rocebox-{lab}.bump").exists())
        self.assertEqual(self.rocebox("lab", "down", lab).returncode, 0)
        self.assert_nothing_left(lab)
        self.assertEqual(self.rocebox("top", f"{near}.bump", "--once").returncode, 0)
        self.assertEqual(self.rocebox("lab", "down", near).returncode, 0)
        self.assert_nothing_left(near)

    def test_down_finds_a_lab_whose_folder_is_gone(self):
        path, lab = self.two()
        self.assertEqual(self.rocebox("lab", "up", path).returncode, 0)
        shutil.rmtree(STATE / lab)
        refused = self.rocebox("lab", "up", path)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"rocebox lab down {lab}", refused.stderr)
        self.assertEqual(self.rocebox("lab", "down", lab).returncode, 0)
        self.assert_nothing_left(lab)


class Stands(LabTest):
    def test_up_stands_until_down(self):
        path, lab = self.two("traffic: [{host: left, run: 'false'}]\n")
        done = self.rocebox("lab", "up", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"ip netns exec rocebox.{lab}.left", done.stdout)
        self.assertIn(f"rocebox lab down {lab}", done.stdout)
        self.assertEqual(namespaces(lab), [f"rocebox.{lab}.{node}" for node in ("bump", "left", "right")])
        bed.sh("ip", "netns", "exec", f"rocebox.{lab}.left", "ping", "-c", "3", "-i", "0.1", "10.97.0.2")
        self.assertIn(f"rocebox top {lab}.bump", done.stdout)
        top = json.loads(self.rocebox("top", f"{lab}.bump", "--once", "--json").stdout)
        self.assertEqual(top["instance"], f"{lab}.bump")
        for command in ("up", "run"):
            again = self.rocebox("lab", command, path)
            self.assertEqual((again.returncode, again.stdout), (2, ""))
            self.assertIn("stands already", again.stderr)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "down", path, "--json", report)
        self.assertEqual((done.returncode, done.stdout), (0, f"lab {lab} is down\n"), done.stderr)
        counters = json.loads(report.read_text())["appliances"]["bump"]["devices"]["bump"]["counters"]
        self.assertGreaterEqual(counters["packets_in"], 6)
        self.assert_nothing_left(lab)
        done = self.rocebox("lab", "down", path)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"nothing of lab {lab} is here", done.stdout)

    def test_up_tells_of_top_where_the_run_has_that_name(self):
        path, lab = self.two(name="long-" * 8 + "name")
        done = self.rocebox("lab", "up", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("appliance bump\n", done.stdout)
        self.assertNotIn("rocebox top", done.stdout)
        self.assertEqual(self.rocebox("lab", "down", path).returncode, 0)
        self.assert_nothing_left(lab)

    def test_down_waits_for_what_drains_longer_than_most(self):
        path, lab = self.lab(SLOW)
        done = self.rocebox("lab", "up", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run(["ip", "netns", "exec", f"rocebox.{lab}.left", "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.97.0.2"], capture_output=True)
        report = self.dir / "report.json"
        done = self.rocebox("lab", "down", path, "--json", report)
        self.assertEqual((done.returncode, done.stdout), (0, f"lab {lab} is down\n"), done.stderr)
        counters = json.loads(report.read_text())["appliances"]["bump"]["devices"]["bump"]["counters"]
        self.assertGreaterEqual(counters["packets_in"], 2)
        self.assertEqual(counters["packets_held"], 0)

    def test_a_lab_in_other_hands_is_left_alone(self):
        path, lab = self.two("traffic: [{host: left, run: sleep 7007}]\n")
        process = self.start(path)
        self.wait_for(lambda: processes("sleep 7007"), "the traffic has begun")
        for command in ("down", "up"):
            done = self.rocebox("lab", command, path)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"in the hands of process {process.pid}", done.stderr)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assert_nothing_left(lab)

    def test_down_from_inside_is_refused(self):
        path, lab = self.two()
        self.assertEqual(self.rocebox("lab", "up", path).returncode, 0)
        done = subprocess.run(["ip", "netns", "exec", f"rocebox.{lab}.left", ROCEBOX, "lab", "down", lab], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("inside lab", done.stderr)
        self.assertEqual(self.rocebox("lab", "down", lab).returncode, 0)


class Refusals(LabTest):
    """Exit 2, every mistake with its place, and nothing built."""

    def refused(self, text, *said):
        path, lab = self.lab(text)
        for command in (("lab", "run"), ("lab", "up")):
            done = self.rocebox(*command, path)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            for words in said:
                self.assertIn(words, done.stderr)
            self.assert_nothing_left(lab)

    def test_mistakes_with_their_places(self):
        self.refused(TWO.replace("10.97.0.1/24", "10.97.0.1").replace("bump.a", "bump.b").replace("right]", "rigth]")
                     + "traffic: [{host: lefd, run: ls, exti: 1}]\nexpectt: []\n",
                     "lab.yaml:3:", "expected an address with prefix length", "there is no port `b`", "did you mean `right`?",
                     "lab.yaml:10:", "did you mean `left`?", "did you mean `exit`?", "lab.yaml:11:1: unknown key `expectt`")

    def test_expectations_that_lead_nowhere(self):
        self.refused(TWO + "expect:\n  - appliances.bump.bump.packets_droped == 0\n  - traffic.ping.exit == 0\n  - appliances.bump.run.pool_idle > 0\n",
                     "lab.yaml:11:5: ", "did you mean `packets_dropped`?", "lab.yaml:12:5: ")

    def test_appliances_that_cannot_be(self):
        self.refused(TWO.replace("    pool:", "    cores: '4000'\n    pool:"), "lab.yaml:7:", "core 4000 is not there")
        self.refused(TWO.replace("small: 8192", "small: 64"), "appliance `bump` does not start", "raise `pool: small:`")
        (self.dir / "bump.yaml").write_text("devices: {bump: {path: a <-> inspekt <-> z}}\n")
        self.refused(re.sub(r"  bump:\n.*\n.*\n", "  bump: {config: bump.yaml}\n", TWO), "lab.yaml:6:", "bump.yaml:1:", "unknown kernel `inspekt`")

    def test_what_ip_refuses(self):
        self.refused(TWO.replace("{addresses: 10.97.0.1/24}", "{addresses: 10.97.0.1/24, routes: default via 192.168.9.9}"),
                     "lab.yaml:3:", "route add default via 192.168.9.9", "Nexthop")

    def test_a_lab_is_no_run_and_a_run_is_no_lab(self):
        path, _ = self.two()
        done = self.rocebox("run", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("rocebox lab run", done.stderr)
        done = self.rocebox("lab", "run", ROOT / "configs/live/bump.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("`rocebox run` takes this file", done.stderr)

    def test_names(self):
        path, _ = self.two()
        for words in (("run", path, "--name", "a/b"), ("down", "no/such file"), ("down", "x.y")):
            self.assertEqual(self.rocebox("lab", *words).returncode, 2, words)

    def test_without_the_right_to(self):
        path, lab = self.two()
        self.dir.chmod(0o755)
        shutil.copy(ROCEBOX, self.dir / "rocebox")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(self.dir / "rocebox"), "lab", "run", str(path)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("CAP_SYS_ADMIN", done.stderr)
        self.assert_nothing_left(lab)


class PortOption(LabTest):
    """`rocebox run --port`, which labs start their appliances with."""

    def test_takes_the_place_of_the_configuration(self):
        path = self.dir / "run.yaml"
        path.write_text("devices: {bump: {path: a <-> z}}\nports: {a: {af_packet: nosuch0}}\npool: {small: 8192}\n")
        done = self.rocebox("run", path, "--duration", "200ms", "--port", "a={ring: r}", "--port", "bump.z={ring: r}", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([port["is"] for port in json.loads(done.stdout)["ports"]], ["ring r", "ring r"])

    def test_refusals(self):
        path = self.dir / "run.yaml"
        path.write_text("devices: {bump: {path: a <-> z}}\npool: {small: 8192}\n")
        for port, said in (("a={af_packet: nosuch0}", "run.yaml: --port: port `bump.a` (af_packet nosuch0): "), ("b={ring: r}", "there is no port `b`"),
                           ("a={rong: r}", "did you mean `ring`?")):
            done = self.rocebox("run", path, "--duration", "1s", "--port", port)
            self.assertEqual((done.returncode, done.stdout), (2, ""), port)
            self.assertIn(said, done.stderr)


class Check(LabTest):
    def test_check_takes_labs(self):
        for path in sorted(LABS.glob("*.yaml")):
            done = self.rocebox("check", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(": good. What `rocebox lab run` would build:", done.stdout)
        path, _ = self.two("expect: [nothing.at.all > 0]\n")
        done = self.rocebox("check", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_check_tells_what_has_no_effect(self):
        text = ("lab: notes\nhosts: {left: {}, right: {}}\nappliances:\n  one: {devices: {a: {path: x <-> y}, n: {nic: {address: 10.0.0.1, "
                "retransmit_stall: 1us}}}}\n  two: {devices: {b: {path: x <-> y}}}\nwires: [left <-> one.x, one.y <-> two.x, two.y <-> right]\n")
        path = self.dir / "notes.yaml"
        path.write_text(text)
        done = self.rocebox("check", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^\S+notes.yaml:4:\d+: note: `retransmit_stall` has no effect with `recovery: go_back_n`, but for workloads that have another\n$")

    def test_schema_is_the_one_in_the_tree_and_takes_the_labs(self):
        text = self.rocebox("lab", "schema").stdout
        self.assertEqual(text, (ROOT / "configs/rocebox-lab.schema.json").read_text(),
                         "run: rocebox lab schema > configs/rocebox-lab.schema.json")
        import jsonschema
        import yaml
        for path in LABS.glob("*.yaml"):
            jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(text))


if __name__ == "__main__":
    bed.main()
