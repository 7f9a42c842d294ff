#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a live run tells on DPDK's telemetry socket, and the names under which it does."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import urllib.request

import kit


class Endpoints(kit.RunTest):
    def test_tell_what_the_report_tells(self):
        run, _ = self.start(self.config())
        client = self.client("run")
        self.wait_until_still(client)
        told = client.cmd("/rocebox/run")
        lists = {what: client.cmd(f"/rocebox/{what}s") for what in ("port", "device", "kernel", "link")}
        parts = {what: {name: client.cmd(f"/rocebox/{what}", name) for name in listed["names"]} for what, listed in lists.items()}
        report = self.stop(run)
        self.assertEqual(told["instance"], "run")
        self.assertEqual(told["config"], report["config"])
        self.assertEqual([shard["core"] for shard in told["shards"].values()], [shard["core"] for shard in report["shards"]])
        self.assertGreater(told["elapsed_ns"], 0)
        self.assertLess(told["elapsed_ns"], report["run"]["elapsed_ns"])
        for what, names in (("port", ["near.a", "near.b", "far.c", "far.d"]), ("device", ["near", "far"]),
                            ("kernel", ["near.link", "near.inspect"]), ("link", ["haul"])):
            self.assertEqual(lists[what], {"count": len(names), "names": names})
        rows = {row.pop("port"): row for row in report["ports"]}
        for name, answer in parts["port"].items():
            device, port = name.split(".")
            self.assertEqual(answer["port"], name)
            self.assertEqual(answer["device"], report["devices"][device]["ports"][port])
            self.assertEqual("live" in answer, name in rows)
            if name in rows:
                self.assertEqual({**answer["live"], "is": ""}, {**rows[name], "is": ""})
                self.assertTrue(rows[name]["is"].startswith(answer["live"]["is"].removesuffix("...")), "cut to 127 bytes")
        self.assertGreater(parts["port"]["near.a"]["device"]["rx_packets"], 1000)
        self.assertGreater(parts["port"]["far.d"]["device"]["tx_packets"], 1000)
        for name, answer in parts["device"].items():
            for key in ("counters", "latency"):
                self.assertEqual(answer[key], report["devices"][name][key])
        for name, answer in parts["kernel"].items():
            device, kernel = name.split(".")
            for key in ("type", "counters", "latency"):
                self.assertEqual(answer[key], report["devices"][device]["kernels"][kernel][key])
        self.assertGreater(parts["kernel"]["near.link"]["counters"]["forward_drop_loss"], 10)
        for key in ("counters", "latency", "between"):
            self.assertEqual(parts["link"]["haul"][key], report["links"]["haul"][key])
        peaks = {"forward_queue_bytes_max": "peak", "reverse_queue_bytes_max": "peak"}
        self.assertEqual({name: answer["kinds"] for name, answer in parts["kernel"].items()}, {"near.link": peaks, "near.inspect": {}})
        self.assertEqual([answer["kinds"] for answer in parts["device"].values()], 2 * [{"packets_held": "level"}])
        self.assertEqual(parts["link"]["haul"]["kinds"], {"packets_held": "level", **peaks})

    def test_names_that_are_none_are_answered_with_the_nearest(self):
        self.start(self.config())
        client = self.client("run")
        self.assertIn("did you mean `near.a`", client.cmd("/rocebox/port", "naer.a")["error"])
        self.assertIn("near.link", client.cmd("/rocebox/kernel", "near.lnik")["error"])
        self.assertIn("/rocebox/links lists them", client.cmd("/rocebox/link")["error"])
        self.assertIn("number of the first", client.cmd("/rocebox/ports", "x")["error"])
        self.assertEqual(client.cmd("/rocebox/ports", "3"), {"count": 4, "names": ["far.d"]})
        self.assertEqual(client.cmd("/rocebox/ports", "9")["names"], [])

    def test_are_there_for_dpdk_s_own_client(self):
        if not shutil.which("dpdk-telemetry.py"):
            self.skipTest("dpdk-telemetry.py is not installed")
        self.start(self.config("wan.yaml"))
        done = subprocess.run(["dpdk-telemetry.py", "-f", "rocebox-wan"], input="/\n/rocebox/run\n/help,/rocebox/port\n", text=True,
                              capture_output=True, env=self.env, timeout=60)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertLessEqual({f"/rocebox/{c}" for c in ("run", "ports", "port", "devices", "device", "kernels", "kernel", "links", "link")},
                             set(next(a["/"] for a in answers if "/" in a)), done.stdout + done.stderr)
        self.assertEqual(next(a["/rocebox/run"] for a in answers if "/rocebox/run" in a)["instance"], "wan")
        self.assertIn("name", json.dumps(next(a["/help"] for a in answers if "/help" in a)))

    def test_a_client_that_stays_does_not_hold_up_the_end(self):
        run, _ = self.start(self.config())
        client = self.client("run")
        client.cmd("/rocebox/run")
        self.stop(run)

    def test_questions_to_the_last_moment_do_not_crash_the_run(self):
        asked = []

        def ask():
            try:
                with self.client("run") as client:
                    while True:
                        for question in ("/mempool/list", "/eal/lcore/list", "/ethdev/list", "/rocebox/run"):
                            client.cmd(question)
                        asked.append(self)
            except (OSError, ValueError):
                pass  # the run is over

        for _ in range(4):
            run, _ = self.start(self.config())
            askers = [threading.Thread(target=ask) for _ in range(4)]
            for asker in askers:
                asker.start()
            asked.clear()
            self.wait_until(lambda: len(asked) > 100, "all are asking")
            self.stop(run)  # which looks at the exit status
            for asker in askers:
                asker.join()

    def test_clients_that_do_not_wait_for_the_answer_do_no_harm(self):
        run, _ = self.start(self.config())
        for _ in range(200):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.connect(str(self.folder("run") / kit.SOCKET))
            try:
                client.send(b"/rocebox/run")
            except BrokenPipeError:
                pass  # ten others are being answered
            client.close()
        def answers():
            try:
                with kit.Client(self.folder("run") / kit.SOCKET) as client:
                    return client.cmd("/rocebox/run")["instance"] == "run"
            except (OSError, ValueError):
                return False  # ten others are being answered still
        self.wait_until(answers, "the run goes on")
        self.assertIsNone(run.poll())
        self.stop(run)

    def test_numbers_may_be_asked_for_by_many_while_packets_flow(self):
        config = self.config(top="devices: {near: {path: a <-> inspect <-> b}, far: {path: c <-> d}}\n"
                                 "links: {haul: {between: [near.b, far.c]}}\n")
        text = config.read_text()
        begin = text.index("devargs"), text.index("}", text.index("devargs"))
        config.write_text(text[:begin[0]] + "net_null: {packet_bytes: 128B}" + text[begin[1]:])
        run, _ = self.start(config)
        clients = [self.client("run") for _ in range(8)]
        last = 0
        for _ in range(40):
            for client in clients:
                now = client.cmd("/rocebox/port", "near.a")["device"]["rx_packets"]
                self.assertGreaterEqual(now, last)
                last = now
        self.assertGreater(last, 0)
        report = self.stop(run)
        self.assertGreaterEqual(report["devices"]["near"]["ports"]["a"]["rx_packets"], last)
        busy = sum(shard["busy_ns"] for shard in report["shards"])
        self.assertGreater(busy, report["run"]["elapsed_ns"] // 4, "packets came all the time")
        self.assertLessEqual(busy, report["run"]["elapsed_ns"] * len(report["shards"]))

    def test_threads_keep_off_the_polling_core(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("there is one CPU")
        run, _ = self.start(self.config(), "--cores", str(cores[-1]), "--metrics", "127.0.0.1:0")
        self.client("run").cmd("/rocebox/run")
        seen = {}
        for task in pathlib.Path(f"/proc/{run.pid}/task").iterdir():
            seen[(task / "comm").read_text().strip() + task.name] = os.sched_getaffinity(int(task.name))
        polling = [name for name, cpus in seen.items() if cpus == {cores[-1]}]
        self.assertEqual(len(polling), 1, seen)
        self.assertGreater(len(seen), 4, seen)
        astray = [name for name, cpus in seen.items() if name not in polling and cores[-1] in cpus]
        # ThreadSanitizer has a thread of its own, which is there before us.
        self.assertLessEqual(len(astray), kit.has_thread_sanitizer(), seen)


class Names(kit.RunTest):
    def test_come_from_the_configuration_and_are_numbered_when_taken(self):
        config = self.config("wan.yaml")
        first, said = self.start(config)
        self.assertIn("rocebox run wan: ", said)
        second, said = self.start(config)
        self.assertIn("rocebox run wan-2: ", said)
        _, said = self.start(config)
        self.assertIn("rocebox run wan-3: ", said)
        self.stop(second)
        self.assertFalse(self.folder("wan-2").exists(), "nothing stays behind")
        _, said = self.start(config)
        self.assertIn("rocebox run wan-2: ", said)
        self.assertEqual(self.client("wan").cmd("/rocebox/run")["instance"], "wan")
        self.stop(first, signal.SIGTERM)
        self.assertFalse(self.folder("wan").exists())

    def test_odd_file_names_make_plain_names(self):
        for file, name in (("a b$c.yaml", "a_b_c"), ("-x.yaml", "run-x"), ("x" * 100 + ".yaml", "x" * 40)):
            run, said = self.start(self.config(file))
            self.assertIn(f"rocebox run {name}: ", said)
            self.stop(run)

    def test_given_names_are_kept_or_refused(self):
        config = self.config()
        run, said = self.start(config, "--name", "tor-7")
        self.assertIn("rocebox run tor-7: ", said)
        error = self.rocebox("run", config, "--name", "tor-7", status=2).stderr
        self.assertIn("--name tor-7", error)
        self.assertIn("choose another", error)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertEqual(self.client("tor-7").cmd("/rocebox/run")["instance"], "tor-7", "the other one goes on")
        for bad in ("a/b", "", ".x", "x" * 49, "a b"):
            if bad:
                self.assertIn("a name is", self.rocebox("run", config, f"--name={bad}", status=2).stderr)
        self.assertIn("--name", self.rocebox("run", config, "--", "--file-prefix", "x", status=2).stderr)
        self.stop(run)

    def test_what_a_killed_run_leaves_is_taken_over(self):
        config = self.config()
        run, _ = self.start(config, "--name", "tor")
        run.kill()
        run.wait()
        self.assertTrue((self.folder("tor") / kit.SOCKET).exists())
        self.assertEqual(self.rocebox("top", "--list").stdout, "", "nobody is there")
        run, said = self.start(config, "--name", "tor")
        self.assertIn("rocebox run tor: ", said)
        self.assertEqual(self.client("tor").cmd("/rocebox/run")["instance"], "tor")
        self.stop(run)
        self.assertFalse(self.folder("tor").exists())

    def test_a_refused_run_leaves_nothing(self):
        config = self.config(more="expect: [near.a.rx_pakets == 0]\n")
        self.rocebox("run", config, status=2)
        self.assertEqual([str(p) for p in (self.dir / "run").rglob("*") if p.name != "dpdk"], [])

    def test_directories_of_systemd_and_of_the_user(self):
        config = self.config()
        both = {**self.env, "RUNTIME_DIRECTORY": f"{self.dir}/run:{self.dir}/xdp"}
        run, _ = self.start(config, env=both)  # systemd parts several by colons
        self.client("run").cmd("/rocebox/run")
        self.stop(run)
        if os.geteuid() == 0:
            return
        (self.dir / "xdg").mkdir()
        own = {name: value for name, value in self.env.items() if name != "RUNTIME_DIRECTORY"}
        run, _ = self.start(config, env=own)
        with kit.Client(self.folder("run", self.dir / "xdg") / kit.SOCKET) as client:
            client.cmd("/rocebox/run")
        self.stop(run)

    def test_without_a_folder_the_run_goes_on_and_says_so_once(self):
        for directory in ("/proc/no", f"{self.dir}/{'x' * 90}"):
            if not directory.startswith("/proc"):
                os.mkdir(directory)
            run, said = self.start(self.config(), "--metrics", "127.0.0.1:0", env={**self.env, "RUNTIME_DIRECTORY": directory})
            self.assertEqual(said.count("without telemetry"), 1, said)
            self.assertNotIn("rocebox run run:", said)
            page = re.search(r"http://[\d.:]+/metrics", said).group()

            def come():
                with urllib.request.urlopen(page, timeout=60) as answer:
                    return re.search(rb'^rocebox_port_rx_packets_total\{.*port="a"\} [1-9]', answer.read(), re.M)
            self.wait_until(come, "packets come")
            self.stop(run)

    def test_a_configuration_that_became_a_pipe_is_not_waited_for(self):
        """A reload is refused at once, though nobody writes into the pipe; the run and its telemetry go on, with what it had."""
        config = self.config("piped.yaml")
        run, _ = self.start(config)
        text = config.read_text()
        config.unlink()
        os.mkfifo(config)
        for _ in range(2):
            said = self.rocebox("reload", "piped", status=2).stderr
            self.assertIn(f"{config}: cannot be read: is a pipe or a device, and a regular file is needed here\n", said)
            self.assertIn("not reloaded; the configuration before it stays in force\n", said)
        self.assertIn("elapsed_ns", self.client("piped").cmd("/rocebox/run"))
        config.unlink()
        config.write_text(text.replace("loss: 10%", "loss: 11%"))
        self.assertIn("loss is now 11%, was 10%", self.rocebox("reload", "piped").stdout)
        self.stop(run)

    def test_who_wants_no_telemetry_has_none(self):
        run, said = self.start(self.config(), "--", "--no-telemetry")
        self.assertEqual(said.count("\n"), 1)
        self.assertFalse((self.dir / "run" / "dpdk").exists())
        self.stop(run)
        self.assertIn("--name", self.rocebox("run", self.config(), "--name", "x", "--", "--no-telemetry", status=2).stderr)


if __name__ == "__main__":
    kit.main()
