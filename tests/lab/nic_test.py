#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A NIC on a live wire: a neighbour of Linux's own stack, and two of them with verbs between them, over veth and over memif."""
import json
import pathlib
import re

import bed

ADDRESS, ADDRESS6, MAC = "10.99.0.9", "fd99::9", "02:00:00:99:00:09"
PINGS, PING_BYTES = 100, 5000
WRITES, WRITE_BYTES, CHECKED = 200, 65536, 32


class Nic(bed.BedTest):
    def nic(self, port, address, address6, workloads="", space=None, options="", idle="interrupt"):
        """Starts a NIC at an interface, or at a port that is written out, in a namespace of its own if given; returns the process
        once packets flow."""
        if ":" not in port:
            port = f"af_packet: {port}, rx_descriptors: 2048"
        config = self.dir / f"{address}.yaml"
        config.write_text(f"devices: {{nic: {{nic: {{address: {address}, address6: '{address6}', mtu: 1500{options}}}}}}}\n"
                          f"{workloads}ports: {{nic.wire: {{{port}}}}}\nlive: {{idle: {idle}}}\n")
        return self.run_config(config, space)

    def run_config(self, config, space=None):
        words = (bed.ROCEBOX, "run", str(config), "--json", "-")
        process = self.child_within(space, *words) if space else self.child(*words)
        said = process.stderr.readline()
        self.assertIn(" port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        process.name = re.match(r"rocebox run (\S+): ", said).group(1)
        return process

    def counters(self, report):
        return report["devices"]["nic"]["kernels"]["nic"]["counters"]

    def found(self, *addresses):
        """The left host's stack asks for its MAC address and pings it, three times each."""
        for address in addresses:
            self.assertIn(" 0% packet loss", self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-s", "1400", address))
            self.assertIn(MAC, self.within(self.left, "ip", "neigh", "show", address))

    def check_answers(self, counters):
        """What it has said to that, to two addresses."""
        self.assertEqual(counters["echo_replies_sent"], 6)
        self.assertGreaterEqual(counters["arp_replies_sent"], 1)
        self.assertGreaterEqual(counters["nd_advertisements_sent"], 1)
        self.assertEqual(counters["rx_roce_packets"], 0)

    def test_linux_finds_it_and_pings_it(self):
        process = self.nic(self.left_end, ADDRESS, ADDRESS6, options=f", mac: '{MAC}'")
        self.found(ADDRESS, ADDRESS6)
        # It puts no fragments together, and says nothing to them; nor is it anybody else.
        for words in (("-s", "3000", ADDRESS), ("10.99.0.8",)):
            lost = bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "1", "-W", "0.3", *words], capture_output=True, text=True)
            self.assertNotEqual(lost.returncode, 0, lost.stdout)
        self.check_answers(self.counters(self.stop(process)))

    def test_linux_finds_it_behind_a_tap_and_then_nothing_of_it_is_left(self):
        tap, before = f"rbT{bed.os.getpid() % 100000}", self.within(self.left, "ls", "/sys/class/net")
        process = self.nic(f"tap: {tap}", "10.98.0.9", "fd98::9", space=self.left, options=f", mac: '{MAC}'")
        self.within(self.left, "ip", "link", "set", tap, "up")
        self.within(self.left, "ip", "address", "add", "10.98.0.1/24", "dev", tap)
        self.within(self.left, "ip", "address", "add", "fd98::1/64", "dev", tap, "nodad")
        self.found("10.98.0.9", "fd98::9")
        report = self.stop(process)
        self.assertEqual(report["ports"][0]["is"], f"tap {tap}")
        self.check_answers(self.counters(report))
        self.assertEqual(self.within(self.left, "ls", "/sys/class/net"), before)
        self.assertFalse(bed.run_folder(process.name).exists())

    def test_the_shipped_one_is_found_and_serves(self):
        """configs/live/nic.yaml, pinged, and then rping's client in place of the stack."""
        text = (bed.HERE.parent.parent / "configs/live/nic.yaml").read_text()
        config = self.dir / "shipped.yaml"
        config.write_text(text.replace("af_packet: nic0", f"af_packet: {self.left_end}"))
        process = self.run_config(config)
        self.within(self.left, "ip", "address", "add", "10.90.0.1/24", "dev", "eth")
        self.assertIn(" 0% packet loss", self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.90.0.2"))
        asks = self.nic("eth", "10.90.0.3", "fd90::3", "workloads: {test: {type: rping, hosts: [nic], address: 10.90.0.2, count: 10}}\n", self.left)
        details = self.ended(asks)["workloads"]["test"]["details"]
        self.assertEqual((details["pings"], details["error"]), (10, ""))
        report = self.stop(process)
        self.assertEqual((report["workloads"]["rping"]["details"]["pings"], self.counters(report)["echo_replies_sent"]), (10, 3))

    def join(self):
        """A bridge between both namespaces."""
        bridge = f"rbB{bed.os.getpid() % 100000}"
        bed.sh("ip", "link", "add", bridge, "type", "bridge")
        self.addCleanup(bed.subprocess.run, ["ip", "link", "del", bridge], capture_output=True)
        bed.sh("ip", "link", "set", bridge, "up")
        for end in (self.left_end, self.right_end):
            bed.sh("ip", "link", "set", end, "master", bridge)

    def two(self, server, client):
        """A NIC in each namespace, a bridge between them, and what their hosts run; both reports."""
        self.join()
        serves = self.nic("eth", "10.99.0.12", "fd99::12", f"workloads: {{test: {server}}}\n", self.right)
        asks = self.nic("eth", "10.99.0.11", "fd99::11", f"workloads: {{test: {client}}}\n", self.left)
        return [self.ended(process) for process in (asks, serves)]

    def ended(self, process, failed=()):
        """The report of a run that ends by itself, of which so many workloads tell of an error."""
        out, error = process.communicate(timeout=bed.HANGS)
        self.assertEqual(process.returncode, 1 if failed else 0, error)
        self.assertEqual(re.findall(r"workload `(\w+)` failed: ", error), list(failed))
        report = json.loads(out)
        bed.check_books(self, report)
        return report

    def test_two_of_them_connect_by_rdma_cm(self):
        for address in ("10.99.0.12", "'fd99::12'"):
            asks, serves = self.two(f"{{type: rping, hosts: [nic], size: {PING_BYTES}}}",
                                    f"{{type: rping, hosts: [nic], address: {address}, count: {PINGS}, size: {PING_BYTES}}}")
            bed.sh("ip", "link", "del", f"rbB{bed.os.getpid() % 100000}")
            for report in (asks, serves):
                details = report["workloads"]["test"]["details"]
                self.assertEqual((details["pings"], details["mismatches"], details["error"]), (PINGS, 0, ""))
                self.assertEqual(self.counters(report)["rx_icrc_encapsulated"], 0)
            # What each sent has come to the other: the wire loses nothing.
            self.assertEqual(self.counters(asks)["tx_roce_packets"], self.counters(serves)["rx_roce_packets"])

    def test_two_of_them_write_over_memif(self):
        """As fast as they can, and beside it messages whose every byte is compared."""
        def end(number, role, client=""):
            bulk = f"bulk: {{type: write_bw, hosts: [nic], port: 7201, iters: {WRITES}, size: {WRITE_BYTES}, mtu: 1024{client}}}"
            cases = f"{client}, messages: {CHECKED}, cases: [{{verb: write}}, {{verb: write_with_imm}}]" if client else ""
            # Its other end wakes nobody who sleeps. However long that one waits for a core, nothing is sent again.
            return self.nic(f"memif: {{socket: {self.dir}/m.sock, role: {role}}}", f"10.99.0.{number}", f"fd99::{number}",
                            f"workloads:\n  {bulk}\n  check: {{type: verbs_check, hosts: [nic], port: 7202, size: {PING_BYTES}{cases}}}\n",
                            options=", retransmission_timeout: 100s", idle="pause")
        serves = end(12, "server")
        asks, serves = (self.ended(process) for process in (end(11, "client", ", address: 10.99.0.12"), serves))
        bulk, check = (asks["workloads"][name] for name in ("bulk", "check"))
        self.assertEqual((bulk["details"]["messages"], bulk["details"]["error"], check["details"]["error"]), (WRITES, "", ""))
        self.assertEqual([(case["verb"], case["requester"], case["whole"]) for case in check["details"]["cases"]],
                         [(verb, side, CHECKED) for verb in ("write", "write_with_imm") for side in ("client", "server")])
        self.assertEqual(self.counters(serves)["rx_write_requests"], WRITES + 2 * CHECKED)
        self.assertEqual(self.counters(asks)["rx_write_requests"], 2 * CHECKED)
        for one, other in ((asks, serves), (serves, asks)):
            counters = self.counters(one)
            self.assertEqual([counters[name] for name in ("retransmitted_packets", "naks_sent", "rx_icrc_encapsulated")], [0, 0, 0])
            self.assertEqual([counters[f"tx_roce_{what}"] for what in ("packets", "bytes")],
                             [self.counters(other)[f"rx_roce_{what}"] for what in ("packets", "bytes")])
        self.assertFalse((self.dir / "m.sock").exists())

    def test_they_agree_on_a_path_mtu_that_the_wire_takes(self):
        kinds = [f"{verb}_{what}" for verb in ("write", "read", "send", "atomic") for what in ("bw", "lat")]
        def end(client=""):
            common = f"hosts: [nic], iters: 20, mtu: 1024{client}"
            return f"{{type: write_bw, {common}, size: 64KiB}}" + "".join(
                f", {kind}: {{{common}, port: {7300 + i}}}" for i, kind in enumerate(kinds))
        asks, serves = self.two(end(), end(", address: 10.99.0.12"))
        for name in ("test", *kinds):
            details = asks["workloads"][name]["details"]
            self.assertEqual((details["error"], details["messages"]), ("", 20), name)
        for verb, times in (("write", 3), ("read", 2), ("send", 2), ("atomic", 2)):
            self.assertGreaterEqual(self.counters(serves)[f"rx_{verb}_requests"], 20 * times)
        self.assertEqual(asks["ports"][0]["tx_too_long"], 0)
        config = self.dir / "10.99.0.11.yaml"
        config.write_text(config.read_text().replace("mtu: 1024", "mtu: 2048"))
        refused = bed.subprocess.run(["ip", "netns", "exec", self.left, bed.ROCEBOX, "run", str(config)], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("`mtu: 2048`, is more than the NIC of `nic` can have: 1024 with `mtu: 1500` there", refused.stderr)

    def test_two_of_them_have_every_verb(self):
        asks, _ = self.two("{type: verbs_check, hosts: [nic]}", "{type: verbs_check, hosts: [nic], address: 10.99.0.12}")
        details = asks["workloads"]["test"]["details"]
        self.assertEqual(details["error"], "")
        self.assertGreater(len(details["cases"]), 10)
        for case in details["cases"]:
            self.assertEqual((case["partial"], case["missing"], case["wrong"]), (0, 0, 0), case)
            self.assertGreater(case["whole"], 0, case)

    def test_device_programs_that_do_wrong_are_stopped_and_it_goes_on(self):
        bad = pathlib.Path(bed.ROCEBOX).resolve().parent / "tests" / "unit" / "dpa" / "bad.so"
        if not bad.is_file():
            self.skipTest(f"{bad} is not built")
        wrong = {"null_handler": "Segmentation fault (SEGV) at address 0x0, in crash",
                 "heap_handler": "right behind or before the heap, in crash",
                 "window_handler": "Segmentation fault (SEGV)"}
        if not bed.has_thread_sanitizer():  # which delivers a timer's signal only in calls of libc
            wrong["loop_handler"] = "ran too long without giving way, in crash"
        self.join()

        def workloads(address, ports):
            return "workloads:\n" + "".join(f"  {name}: {{type: dpa_program, hosts: [nic], port: {port}, {address or what}}}\n"
                                            for name, port, what in ports)
        ports = [(name, 7200 + i, f"file: {bad}, handler: {name}, host_bytes: 512") for i, name in enumerate(wrong)]
        good = ("echo", 7300, "program: echo")
        # A heap that is written from end to end long before the watchdog's time, also where each new page takes 20 us.
        serves = self.nic("eth", "10.99.0.12", "fd99::12", workloads("", [*ports, good]), self.right, ", dpa: {heap: 1MiB}")
        for which, count, more in ((ports, 1, ""), ([good], 100, ", messages: 100, echo: true")):
            asks = self.ended(self.nic("eth", "10.99.0.11", "fd99::11", workloads("address: 10.99.0.12" + more, which), self.left))
            for name, _, _ in which:
                details = asks["workloads"][name]["details"]
                self.assertEqual((details["messages"], details["mismatches"], details["error"]), (count, 0, ""), name)
            if which is ports:
                self.assertIn(" 0% packet loss", self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.99.0.12"))
        said = self.ended(serves, failed=wrong)["workloads"]
        for name, why in wrong.items():
            self.assertRegex(said[name]["details"]["error"], rf"^thread \d \(`{name}` of bad.so\): .*{re.escape(why)}")
        self.assertEqual((said["echo"]["details"]["messages"], said["echo"]["details"]["error"]), (100, ""))


if __name__ == "__main__":
    bed.main()
