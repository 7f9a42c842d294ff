#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox top`, in a pipe and on a terminal."""
import json
import os
import pty
import signal

import kit


class Top(kit.RunTest):
    def flood(self, name="flood.yaml"):
        """Packets come out of nothing into a bump, and what passes goes into nothing."""
        path = self.dir / name
        path.write_text("devices: {bump: {path: a <-> link <-> z, kernels: {link: {forward: {loss: 10%}, reverse: {loss: 100%}}}}}\n"
                        "ports: {a: {net_null: {packet_bytes: 128B}}, z: {net_null: {packet_bytes: 256B}}}\n" + kit.POOL)
        return path

    def test_one_block_has_rates_drops_latencies_and_shares(self):
        self.start(self.flood())
        block = json.loads(self.rocebox("top", "--once", "--json", "--interval", "500ms").stdout)
        self.assertEqual(block["instance"], "flood")
        self.assertGreater(block["interval_ns"], 400_000_000)
        (shard,) = block["shards"]
        self.assertGreater(shard["busy"], 0.2)
        ports = {row["port"]: row for row in block["ports"]}
        self.assertEqual(set(ports), {"bump.a", "bump.z"})
        a = ports["bump.a"]
        self.assertGreater(a["rx_packets_per_second"], 1000)
        # Not all at one instant: bytes are read behind packets, while more come.
        self.assertAlmostEqual(a["rx_bits_per_second"] / (a["rx_packets_per_second"] * 128 * 8), 1, places=2)
        self.assertEqual(a["tx_packets_per_second"], 0, "the link loses all of them")
        z = ports["bump.z"]
        self.assertAlmostEqual(z["tx_packets_per_second"] / a["rx_packets_per_second"], 0.9, delta=0.05)
        self.assertGreater(z["latency_p50_ns"], 0)
        self.assertLessEqual(z["latency_p50_ns"], z["latency_p999_ns"])
        (device,) = block["devices"]
        self.assertGreater(device["dropped_packets_per_second"], 0)
        (kernel,) = block["kernels"]
        self.assertEqual(kernel["kernel"], "bump.link")
        self.assertGreater(kernel["packets_per_second"], a["rx_packets_per_second"])
        drops = {(row["at"], row["reason"]): row for row in block["drops"]}
        self.assertEqual(set(drops), {("bump.link", "forward_drop_loss"), ("bump.link", "reverse_drop_loss")})
        for row in drops.values():
            self.assertGreater(row["packets_per_second"], 0)
            self.assertGreater(row["packets"], 0)

    def test_a_kernel_that_is_busy_shows_what_it_does(self):
        """Also one that counts packets under names of its own: lowar."""
        path = self.dir / "fec.yaml"
        path.write_text("devices: {bump: {path: a <-> lowar <-> z}}\n"
                        "ports: {a: {net_null: {packet_bytes: 128B}}, z: {net_null: {packet_bytes: 256B}}}\n" + kit.POOL)
        self.start(path)
        block = json.loads(self.rocebox("top", "--once", "--json", "--interval", "500ms").stdout)
        (kernel,) = block["kernels"]
        came = sum(row["rx_packets_per_second"] for row in block["ports"])
        self.assertGreater(came, 1000)
        self.assertGreater(kernel["packets_per_second"], came / 2, "of the same time but for a moment")

    def test_the_numbers_are_those_of_the_report(self):
        run, _ = self.start(self.config())
        self.wait_until_still(self.client("run"))
        block = json.loads(self.rocebox("top", "run", "--once", "--json", "--interval", "100ms").stdout)
        report = self.stop(run)
        self.assertEqual([row["packets"] for row in block["drops"]],
                         [report["devices"]["near"]["kernels"]["link"]["counters"]["forward_drop_loss"]])
        for row in block["ports"]:
            self.assertEqual((row["rx_packets_per_second"], row["tx_bits_per_second"]), (0, 0), "nothing moves")
        self.assertEqual([row["link"] for row in block["links"]], ["haul"])
        self.assertGreaterEqual(block["links"][0]["latency_p50_ns"], 1_000_000)

    def test_a_pipe_gets_blocks_without_escape_codes(self):
        self.start(self.flood())
        top = self.child(kit.ROCEBOX, "top", "--interval", "100ms")
        said = ""
        while said.count("bump.link  ") < 4:
            said += top.stdout.readline()
        top.send_signal(signal.SIGINT)
        more, error = top.communicate(timeout=20)
        self.assertEqual((top.returncode, error), (0, ""))
        self.assertNotIn("\033", said + more)
        self.assertRegex(said, r"(?m)^flood  .*flood.yaml  up ")
        self.assertRegex(said, r"(?m)^shard +core +busy$")
        self.assertRegex(said, r"(?m)^port +link +rx +tx +p50 +p99 +p99.9$")
        self.assertRegex(said, r"(?m)^bump\.a +up +[\d.]+ [kM]?pps +[\d.]+ [kMG]?bps +0 pps +0 bps")
        self.assertRegex(said, r"(?m)^bump\.link +forward_drop_loss +\d+ +[\d.]+ [kM]?pps$")

    def test_a_terminal_is_drawn_anew(self):
        self.start(self.flood())
        ours, theirs = pty.openpty()
        process = self.child(kit.ROCEBOX, "top", "--interval", "100ms", stdout=theirs)
        os.close(theirs)
        said = b""
        while said.count(b"\033[H") < 3:
            said += os.read(ours, 4096)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(said.startswith(b"\033[2J"))
        self.assertIn(b"bump.link", said)
        self.assertNotIn(b"\033[H\r\n", said)

    def test_ends_with_the_run(self):
        run, _ = self.start(self.flood())
        top = self.child(kit.ROCEBOX, "top", "flood", "--interval", "100ms")
        top.stdout.readline()
        self.stop(run)
        _, error = top.communicate(timeout=20)
        self.assertEqual(top.returncode, 0)
        self.assertIn("flood", error)

    def test_says_which_runs_there_are(self):
        self.assertIn("no live run", self.rocebox("top", status=2).stderr)
        self.assertEqual(self.rocebox("top", "--list").stdout, "")
        self.start(self.config("one.yaml"))
        self.start(self.config("two.yaml"))
        error = self.rocebox("top", status=2).stderr
        self.assertRegex(error, r"\n  one  .*\n  two  ")
        self.assertRegex(self.rocebox("top", "three", status=2).stderr, r"no run `three`.*\n  one  .*\n  two  ")
        self.assertEqual(json.loads(self.rocebox("top", "--list", "--json").stdout)[1],
                         {"instance": "two", "socket": str(self.folder("two") / kit.SOCKET)})
        socket = self.folder("two") / kit.SOCKET
        self.assertEqual(json.loads(self.rocebox("top", socket, "--once", "--json", "--interval", "100ms").stdout)["instance"], "two")
        self.assertIn("nobody listens", self.rocebox("top", f"{self.dir}/no", status=2).stderr)

    def test_refuses_an_interval_that_is_none(self):
        for interval in ("fast", "0", "10ms", "-1s"):
            self.assertIn("write such as 1s", self.rocebox("top", f"--interval={interval}", status=2).stderr)


if __name__ == "__main__":
    kit.main()
