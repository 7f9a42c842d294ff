#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ports that go away while a bump runs, and come back: said, counted, taken up again; and interfaces that two runs use."""
import json
import pathlib
import subprocess
import threading

import bed


class Links(bed.BedTest):
    def start_with(self, *words, **more):
        run = super().start_with(*words, **more)
        run.said = []  # lines of standard error

        def listen():
            for line in run.stderr:
                run.said.append(line)
        threading.Thread(target=listen, daemon=True).start()
        return run

    def says(self, run, text):
        """Returns when the run has said it, and forgets what it said until then."""
        def heard():
            return next((number for number, line in enumerate(run.said) if text in line), None)
        self.until(lambda: heard() is not None, f"{text}: {run.said}")
        del run.said[:heard() + 1]

    def live(self, run, port):
        return self.ask(run, "/rocebox/port", port)["live"]

    def until_link(self, run, port, state):
        self.until(lambda: self.live(run, port)["link"] == state, f"the link of {port} is {state}")

    def until_ping(self):
        self.until(lambda: subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "1", "-W", "1", "10.99.0.2"],
                                          capture_output=True).returncode == 0, "an answer")

    def top(self, run):
        """By the path of its socket: another user may have a run of this name meanwhile, as the test of the service has."""
        return json.loads(bed.sh(bed.ROCEBOX, "top", str(bed.run_folder(run.name) / bed.SOCKET), "--once", "--json"))

    def test_an_interface_is_deleted_and_made_again(self):
        for idle in ("pause", "interrupt"):
            with self.subTest(idle):
                run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n",
                                      more=f"live: {{idle: {idle}}}\n")
                self.until_ping()
                for times in (1, 2):
                    bed.sh("ip", "link", "del", self.right_end)
                    self.says(run, f"rocebox: port `bump.z` (af_packet {self.right_end}): its interface is gone; it is taken up "
                                   "again when one of that name is there\n")
                    self.until_link(run, "bump.z", "gone")  # what was said may be older than what is asked
                    self.assertEqual(self.live(run, "bump.z")["link_down_events"], times, run.said)
                    self.assertEqual([row["link"] for row in self.top(run)["ports"]], ["up", "gone"])
                    self.within(self.left, "ip", "neighbour", "flush", "all")
                    self.join_host(2)
                    self.says(run, "its interface is there again, and its link is ")
                    self.until_link(run, "bump.z", "up")
                    self.until_ping()
                report = self.stop(run)
                self.assertEqual([port["link"] for port in report["ports"]], ["up", "up"])
                self.assertEqual([port["link_down_events"] for port in report["ports"]], [0, 2])

    def test_one_that_is_made_again_at_once_is_another(self):
        """Between two looks, and with the same name; its promiscuous mode has to be set again."""
        run = self.start()
        bed.sh("sh", "-c", f"ip link del {self.right_end} && ip link add {self.right_end} type veth peer name eth netns {self.right} "
               f"&& ip link set {self.right_end} up")
        self.within(self.right, "ip", "link", "set", "eth", "up")
        self.give_addresses(2)
        self.says(run, "its interface is there again")
        self.until_ping()
        self.assertIn("promiscuity 1", bed.sh("ip", "-d", "link", "show", self.right_end))
        self.assertEqual(self.stop(run)["ports"][1]["link_down_events"], 1)

    def test_a_link_goes_down_and_comes_back(self):
        run = self.start()
        own = (["ip", "link", "set", self.right_end], "down", "up")
        peer = (["ip", "-n", self.right, "link", "set", "eth"], "down", "up")
        for words, down, up in (own, peer):
            bed.sh(*words, down)
            self.says(run, f"port `bump.z` (af_packet {self.right_end}): its link is down\n")
            self.until_link(run, "bump.z", "down")
            bed.sh(*words, up)
            self.says(run, "its link is up\n")
            self.until_link(run, "bump.z", "up")
        self.until_ping()
        report = self.stop(run)
        self.assertEqual([port["link_down_events"] for port in report["ports"]], [0, 2])

    def test_a_packet_is_sent_or_it_is_an_error(self):
        """By the kernel's own count, with the link up, down, without carrier and gone."""
        frames = [(n, 100, bytes.fromhex("020000000002020000000001" "88b5") + bytes([n]) * 86) for n in range(200)]
        capture = bed.write_pcap(self.dir / "sent.pcap", frames)

        def left():
            return int(pathlib.Path(f"/sys/class/net/{self.right_end}/statistics/tx_packets").read_text())

        def send():
            self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth", str(capture))
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{self.right_end}/disable_ipv6").write_text("1")  # it has nothing to say itself
        # Nor has who sends: of what passes between the last look at the count and its end nobody could tell.
        self.within(self.left, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/eth/disable_ipv6")
        peer = ["ip", "-n", self.right, "link", "set", "eth"]
        for down, up in ((["ip", "link", "set", self.right_end, "down"], ["ip", "link", "set", self.right_end, "up"]),
                         ([*peer, "down"], [*peer, "up"]), (["ip", "link", "del", self.right_end], None)):
            with self.subTest(" ".join(down)):
                before, run = left(), self.start()
                send()
                self.settle(run)
                sent = left() - before
                bed.sh(*down)
                self.says(run, "its")
                send()
                self.settle(run)
                if up:
                    bed.sh(*up)
                    self.until_link(run, "bump.z", "up")
                    send()
                    self.settle(run)
                    sent = left() - before
                report = self.stop(run)
                port, out = report["ports"][1], report["devices"]["bump"]["ports"]["z"]["tx_packets"]
                self.assertGreaterEqual(port["tx_packets"], len(frames))
                self.assertEqual(port["tx_packets"], sent)
                self.assertGreaterEqual(port["tx_errors"], len(frames))
                self.assertEqual(port["tx_packets"] + port["tx_errors"] + port["tx_full"], out)

    def test_the_run_ends_with_a_port_where_it_shall(self):
        run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n",
                              more="live: {port_lost: end}\n")
        bed.sh("ip", "link", "set", self.right_end, "down")  # that is no end
        self.says(run, "its link is down")
        self.assertIsNone(run.poll())
        bed.sh("ip", "link", "del", self.right_end)
        self.says(run, f"rocebox: port `bump.z` (af_packet {self.right_end}): its interface is gone: what is held leaves, and the run "
                       "ends\n")
        out = run.stdout.read()
        self.assertEqual(run.wait(bed.HANGS), 1)
        self.says(run, f"rocebox: port `bump.z` (af_packet {self.right_end}): its interface is gone, and `live: port_lost:` is `end`\n")
        report = json.loads(out)
        self.assertEqual([port["link"] for port in report["ports"]], ["up", "gone"])
        bed.check_books(self, report)

    def test_a_tap(self):
        tap = f"rbT{bed.os.getpid() % 100000}"
        for moved in (False, True):
            with self.subTest("in another namespace" if moved else "in this one"):
                run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{tap: {tap}}}\n")
                self.until_link(run, "bump.z", "up")
                ip = ["ip"]
                if moved:
                    bed.sh("ip", "link", "set", tap, "netns", self.right)
                    self.says(run, f"port `bump.z` (tap {tap}): its link is down\n")
                    ip = ["ip", "-n", self.right]
                    bed.sh(*ip, "link", "set", tap, "up")
                    self.says(run, "its link is up\n")
                    self.until_link(run, "bump.z", "up")
                bed.sh(*ip, "link", "set", tap, "down")
                self.says(run, "its link is down\n")
                bed.sh(*ip, "link", "del", tap)
                self.says(run, "its interface is gone, and what was made on it for this run with it: start the run again\n")
                self.until_link(run, "bump.z", "gone")
                self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth",
                            str(bed.CAPTURES / "rc_write_ipv6.pcap"))
                self.settle(run)
                port = self.stop(run)["ports"][1]
                self.assertEqual(port["link_down_events"], 1 + moved)
                self.assertGreaterEqual(port["tx_errors"], 12)

    def test_an_interface_that_two_runs_use_is_told(self):
        first = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{net_null: {{}}}}\n", "bump: {path: a <-> z}", "--name",
                                self.left)
        config = self.dir / "second.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports: {{a: {{af_packet: {self.left_end}}}, z: {{af_packet: "
                          f"{self.right_end}}}}}\npool: {{small: 8192}}\n")
        command = [bed.ROCEBOX, "run", str(config), "--duration", "100ms"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [line for line in done.stderr.splitlines() if "too" in line]
        self.assertEqual(told, [f"rocebox: port `bump.a` (af_packet {self.left_end}): run `{self.left}` (process {first.pid}) uses "
                                "this interface, too: what arrives there comes into both runs"])
        self.stop(first)
        self.assertNotIn("too:", subprocess.run(command, capture_output=True, text=True).stderr, "it is over")

    def test_one_interface_by_two_names_is_refused(self):
        bed.sh("ip", "link", "property", "add", "dev", self.left_end, "altname", "a-second-name-of-it")
        config = self.dir / "twice.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports:\n  a: {{af_packet: {self.left_end}}}\n"
                          "  z: {af_packet: a-second-name-of-it}\npool: {small: 8192}\n")
        done = subprocess.run([bed.ROCEBOX, "run", str(config), "--duration", "100ms"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        if "no network interface" not in done.stderr:  # this kernel finds interfaces by their first name alone
            self.assertIn(f"twice.yaml:4:6: port `bump.z` (af_packet a-second-name-of-it): this interface is that of port `bump.a` "
                          f"(af_packet {self.left_end}), too", done.stderr)


if __name__ == "__main__":
    bed.main()
