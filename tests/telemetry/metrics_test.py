#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""/metrics of a live run, read by Prometheus' own parser, and the endpoint for DPDK's exporter."""
import importlib.util
import os
import re
import socket
import threading
import unittest
import urllib.error
import urllib.request

import kit

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


CLIENTS_MAX = 64


def sockets_of(pid):
    """How many sockets a process holds. It may close some while they are counted."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def port_of(said):
    return int(re.search(r"metrics at http://.*:(\d+)/metrics", said).group(1))


@unittest.skipIf(text_string_to_metric_families is None, "python3-prometheus-client is not installed")
class Numbers(kit.RunTest):
    def scrape(self, port, host="127.0.0.1"):
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
            text = answer.read().decode()
        self.assertTrue(text.endswith("# EOF\n"))
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        samples = {}
        for family in self.families.values():
            self.assertTrue(family.documentation, family.name)
            self.assertNotEqual(family.documentation, "a count of the port", "every number has its sentence")
            self.assertNotEqual(family.type, "unknown")
            for sample in family.samples:
                self.assertEqual(sample.labels.get("instance"), "run", sample)
                samples[sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if k != "instance"))] = sample.value
        return text, samples

    def test_are_those_of_the_report(self):
        run, said = self.start(self.config(more='live: {metrics: "127.0.0.1:0"}\n'))
        self.wait_until_still(self.client("run"))
        text, samples = self.scrape(port_of(said))
        report = self.stop(run)

        def value(name, **labels):
            return samples.pop((name, tuple(sorted(labels.items()))))
        for name, device in report["devices"].items():
            for port, counters in device["ports"].items():
                for counter, number in counters.items():
                    self.assertEqual(value(f"rocebox_device_port_{counter}_total", device=name, port=port), number)
            for counter, number in device["counters"].items():
                suffix = "" if counter == "packets_held" else "_total"
                self.assertEqual(value(f"rocebox_device_{counter}{suffix}", device=name), number)
            for kernel, part in device["kernels"].items() if "kernels" in device else ():
                for counter, number in part["counters"].items():
                    suffix = "" if counter.endswith("_max") else "_total"
                    self.assertEqual(value(f"rocebox_kernel_{part['type']}_{counter}{suffix}", device=name, kernel=kernel), number)
                self.check_summary(value, "rocebox_kernel", part["latency"], device=name, kernel=kernel)
            self.check_summary(value, "rocebox_device", device["latency"], device=name)
        haul = report["links"]["haul"]
        for counter, number in haul["counters"].items():
            if counter == "packets_held":
                self.assertEqual(value("rocebox_link_packets_held", link="haul"), number)
            else:
                suffix = "" if counter.endswith("_max") else "_total"
                self.assertEqual(value(f"rocebox_kernel_link_{counter}{suffix}", link="haul"), number)
        self.check_summary(value, "rocebox_link", haul["latency"], link="haul")
        self.assertGreater(haul["latency"]["samples"], 0)
        for row in report["ports"]:
            device, port = row["port"].split(".")
            self.assertEqual(value("rocebox_port_up", device=device, port=port), row["link"] == "up")
            for counter, number in row.items():
                if isinstance(number, int) and not counter.endswith("_ns"):
                    self.assertEqual(value(f"rocebox_port_{counter}_total", device=device, port=port), number)
            for quantile, key in (("0.5", "p50"), ("0.99", "p99"), ("0.999", "p999")):
                self.same_time(value("rocebox_port_latency_seconds", device=device, port=port, quantile=quantile), row[f"latency_{key}_ns"])
            for suffix in ("count", "sum"):
                self.assertGreaterEqual(value(f"rocebox_port_latency_seconds_{suffix}", device=device, port=port), 0)
        for shard in report["shards"]:
            labels = {"shard": str(shard["shard"]), "core": str(shard["core"])}
            self.assertLessEqual(value("rocebox_shard_loops_total", **labels), shard["loops"])
            self.assertLessEqual(value("rocebox_shard_busy_seconds_total", **labels), shard["busy_ns"] / 1e9 + 1e-9)
        self.assertEqual(value("rocebox_pool_in_use_packets"), report["run"]["pool_in_use"])
        self.assertEqual(value("rocebox_pool_idle_packets"), report["run"]["pool_idle"])
        for reason in ("drop_handover_full", "drop_unbound"):
            self.assertEqual(value(f"rocebox_{reason}_total"), report["run"][reason])
        self.assertGreater(value("rocebox_elapsed_seconds"), 0)
        self.assertEqual(value("rocebox_run_info", config=report["config"], cores=report["run"]["cores"],
                               spread_by=report["run"]["spread_by"]), 1)
        self.assertEqual(samples, {}, "nothing else is told")
        self.assertIn("# HELP rocebox_kernel_link_forward_packets", text)
        self.assertIn("# UNIT rocebox_device_port_rx_bytes bytes\n", text)
        self.assertEqual(self.families["rocebox_device_drop_hop_limit"].documentation, "reflected between kernels more often than kHopsMax")

    def same_time(self, seconds, nanos):
        if nanos:
            self.assertAlmostEqual(seconds * 1e9, nanos, delta=nanos * 1e-6)
        else:
            self.assertTrue(seconds != seconds or seconds == 0, "no sample: not a number")

    def check_summary(self, value, what, latency, **labels):
        for quantile, key in (("0.5", "p50_ns"), ("0.99", "p99_ns"), ("0.999", "p999_ns")):
            self.same_time(value(f"{what}_latency_seconds", **labels, quantile=quantile), latency[key])
        self.assertEqual(value(f"{what}_latency_seconds_count", **labels), latency["samples"])
        self.assertGreaterEqual(value(f"{what}_latency_seconds_sum", **labels), 0)

    def test_of_shards_are_added_up(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("there is one CPU")
        run, said = self.start(self.config(), "--metrics", "127.0.0.1:0", "--cores", f"{cores[0]},{cores[1]}")
        self.wait_until_still(self.client("run"))
        _, samples = self.scrape(port_of(said))
        report = self.stop(run)
        self.assertEqual(samples["rocebox_device_packets_in_total", (("device", "near"),)], report["devices"]["near"]["counters"]["packets_in"])
        self.assertEqual(sum(name == "rocebox_shard_loops_total" for name, _ in samples), 2)

    def test_over_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6: {error}")
        _, said = self.start(self.config(), "--metrics", "[::1]:0")
        self.scrape(port_of(said), "[::1]")


class Server(kit.RunTest):
    def test_an_address_in_use_is_refused_with_the_mend(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            config = self.config(more=f'live: {{metrics: "127.0.0.1:{port}"}}\n')
            error = self.rocebox("run", config, status=2).stderr
            self.assertRegex(error, rf"^{config}:\d+:\d+: live: metrics: .*127\.0\.0\.1:{port}: Address already in use; choose another port")
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertFalse((self.dir / "run" / "dpdk").exists(), "nothing has been started")
            self.assertIn("--metrics: ", self.rocebox("run", self.config("other.yaml"), "--metrics", f"127.0.0.1:{port}", status=2).stderr)
        _, said = self.start(config)
        self.assertEqual(port_of(said), port)
        self.assertIn("in use", self.rocebox("run", config, status=2).stderr, "of another rocebox too")

    def test_what_is_no_address_is_refused(self):
        for address in ("9464", "localhost", "::1:9464", "127.0.0.1:70000", "127.0.0.1:x", ":9464"):
            self.assertIn("write such as", self.rocebox("run", self.config(), f"--metrics={address}", status=2).stderr)
            error = self.rocebox("check", self.config(more=f'live: {{metrics: "{address}"}}\n'), status=2).stderr
            self.assertRegex(error, r"run\.yaml:\d+:\d+: .*metrics.*write such as")
        self.assertIn("ip address", self.rocebox("run", self.config(), "--metrics", "192.0.2.1:0", status=2).stderr)
        self.assertIn("no such address", self.rocebox("run", self.config(), "--metrics", "no.such.host.invalid:0", status=2).stderr)

    def test_has_no_other_pages(self):
        _, said = self.start(self.config(), "--metrics", "localhost:0")
        port = port_of(said)
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://localhost:{port}/etc/passwd", timeout=60)
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()
        with urllib.request.urlopen(f"http://localhost:{port}/", timeout=60) as answer:
            self.assertIn(b"/metrics", answer.read())

    def test_clients_that_say_nothing_neither_pile_up_nor_hold_up_the_end(self):
        run, said = self.start(self.config(), "--metrics", "127.0.0.1:0")
        port = port_of(said)
        silent = []
        for _ in range(200):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            silent.append(client)
            self.addCleanup(client.close)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            self.assertTrue(answer.read().endswith(b"# EOF\n"), "whoever waits, who asks is answered")
        self.assertLess(sockets_of(run.pid), CLIENTS_MAX + 20)
        self.stop(run)

    def dribblers(self, port, count):
        """Clients that never come to the end of their request: a byte each 300 ms, so that no single read takes long."""
        clients = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(count)]
        done = threading.Event()

        def dribble():
            while not done.wait(0.3):
                for client in clients:
                    try:
                        client.send(b"G", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                    except OSError:
                        pass  # hung up on
        thread = threading.Thread(target=dribble)
        thread.start()

        def end():
            done.set()
            thread.join()
            for client in clients:
                client.close()
        self.addCleanup(end)

    def test_clients_that_dribble_let_others_have_their_turn(self):
        run, said = self.start(self.config(), "--metrics", "127.0.0.1:0")
        port = port_of(said)
        self.dribblers(port, CLIENTS_MAX - 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            self.assertTrue(answer.read().endswith(b"# EOF\n"))
        self.stop(run)

    def test_clients_that_dribble_do_not_hold_up_the_end(self):
        run, said = self.start(self.config(), "--metrics", "127.0.0.1:0")
        self.dribblers(port_of(said), 14)
        self.stop(run)

    def test_many_scrapes_while_packets_flow(self):
        config = self.dir / "flood.yaml"
        config.write_text("devices: {bump: {path: a <-> inspect <-> z}}\nports: {a: {net_null: {}}, z: {net_null: {}}}\n" + kit.POOL)
        run, said = self.start(config, "--metrics", "127.0.0.1:0")
        last = -1.0
        for _ in range(30):
            with urllib.request.urlopen(f"http://127.0.0.1:{port_of(said)}/metrics", timeout=60) as answer:
                now = float(re.search(r'^rocebox_port_rx_packets_total\{.*port="a"\} (\S+)$', answer.read().decode(), re.M).group(1))
            self.assertGreaterEqual(now, last)
            last = now
        self.assertGreater(last, 0)
        self.stop(run)


class Exporter(kit.RunTest):
    """configs/telemetry/rocebox.py as dpdk-telemetry-exporter.py uses it: info(), metrics(sock), sock.cmd(uri, arg)."""

    def test_tells_the_numbers_of_the_report(self):
        spec = importlib.util.spec_from_file_location("rocebox", kit.ROOT / "configs/telemetry/rocebox.py")
        endpoint = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(endpoint)
        run, _ = self.start(self.config())
        client = self.client("run")
        self.wait_until_still(client)
        values = endpoint.metrics(client)
        report = self.stop(run)
        info = endpoint.info()
        seen = {}
        for name, value, labels in values:
            description, kind = info[name]
            self.assertIn(kind, ("counter", "gauge"))
            self.assertTrue(description.endswith("."))
            self.assertIsInstance(value, (int, float))
            for label in labels:
                self.assertRegex(label, r"^[a-z]+$")
            key = (name, tuple(sorted(labels.items())))
            self.assertNotIn(key, seen, "told twice")
            seen[key] = value
        self.assertEqual({name for name, _ in seen}, set(info), "all that info() promises is there, and no more")

        def value(name, **labels):
            return seen[name, tuple(sorted(labels.items()))]
        near = report["devices"]["near"]
        self.assertEqual(value("device_port", device="near", port="a", counter="rx_bytes"), near["ports"]["a"]["rx_bytes"])
        self.assertEqual(value("kernel_counter", device="near", kernel="link", counter="forward_drop_loss"),
                         near["kernels"]["link"]["counters"]["forward_drop_loss"])
        for counter in ("forward_queue_bytes_max", "packets_held"):
            self.assertEqual(value("link_level", link="haul", counter=counter), report["links"]["haul"]["counters"][counter])
        self.assertEqual(value("link_counter", link="haul", counter="forward_packets"), report["links"]["haul"]["counters"]["forward_packets"])
        self.assertEqual(value("latency_seconds", of="link", link="haul", quantile="0.5"), report["links"]["haul"]["latency"]["p50_ns"] / 1e9)
        self.assertEqual(value("port_packets", device="far", port="d", counter="tx_packets"), report["ports"][1]["tx_packets"])


if __name__ == "__main__":
    kit.main()
