#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox sim`: exit status, settings, sweeps, signals, files; workloads in a live run."""
import contextlib
import csv
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
import wire
from common import ROCEBOX, RoceboxTest

STATIONS = os.environ.get("STATIONS", str(pathlib.Path(ROCEBOX).parent / "tests/sim/stations.so"))
FABRIC = f"""
plugins: [{STATIONS}]
parameters: {{bytes: 10kB, loss: 0}}
topology:
  leaf_spine: {{leaves: 2, spines: 2, hosts_per_leaf: 2, host_rate: 10Gbps, spine_rate: 10Gbps}}
  hosts: {{station: {{}}}}
  switches: {{switch: {{}}}}
  links: {{loss: $loss}}
workloads: {{shout: {{bytes: $bytes}}}}
"""
LIVE = """
devices:
  a: {nic: {address: 10.0.0.1}}
  b: {nic: {address: 10.0.0.2}}
  idle: {path: left <-> right}
links: {cable: {between: [a.wire, b.wire], delay: 10us}}
workloads:
  server: {type: rping, hosts: [b], size: 9000B}
  client: {type: rping, hosts: [a], address: 10.0.0.2, count: 50, size: 9000B, start: 1ms}
ports: {idle.left: {devargs: 'net_null0,no-rx=1'}}   # a live run has a port
"""

# Every workload whose messages have bytes, and tell peers where to write and read.
BYTES = """
devices:
  a: {nic: {address: 10.0.0.1, dpa: {heap: 32MiB}}}
  b: {nic: {address: 10.0.0.2, dpa: {heap: 32MiB}}}
links: {cable: {between: [a.wire, b.wire], delay: 1us}}
ports: {a.wire: {pcap: {out: CAPTURE}}}
workloads:
  rping_server: {type: rping, hosts: [b]}
  rping: {type: rping, hosts: [a], address: 10.0.0.2, count: 2, start: 1us}
  check_server: {type: verbs_check, hosts: [b]}
  check: {type: verbs_check, hosts: [a], address: 10.0.0.2, messages: 2, size: 1500B, start: 1us}
  write_server: {type: write_bw, hosts: [b], iters: 4}
  write: {type: write_bw, hosts: [a], address: 10.0.0.2, iters: 4, start: 1us}
  many_server: {type: ucmatose, hosts: [b]}
  many: {type: ucmatose, hosts: [a], address: 10.0.0.2, start: 1us}
  writes: {type: write_bw, hosts: [a, b], iters: 4}
  reads: {type: read_lat, hosts: [a, b], iters: 4}
  sdr: {type: sdr_messages, hosts: [a, b], messages: 2, max_size: 64KiB, rtt: 1ms}
  all: {type: multicast_allgather, hosts: [a, b], size: 16KiB}
  program: {type: dpa_program, hosts: [b], program: bitmap, host_bytes: 512}
  writer: {type: dpa_program, hosts: [a], address: 10.0.0.2, verb: write_imm, messages: 8, start: 1us}
"""


# Full packets; links lose, and switches choose at random.
LOSSY = """
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 2}
  hosts: {nic: {}}
  switches: {switch: {forward: {balance: random}}}
  links: {loss: 1%}
workloads:
  sum: {type: all_reduce, size: 512KiB}
  reads: {type: read_bw, hosts: [h0, h3], iters: 10}
"""
# NICs whose packets are lost, and sent again in another way.
RECOVERY = """
parameters: {recovery: go_back_n}
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}
  hosts: {nic: {header_only: true, recovery: $recovery}}
  switches: {switch: {}}
  links: {loss: 1%}
workloads: {permutation: {size: 500KB}}
"""
# What is cut off when `sum` has finished.
BACKGROUND = """
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 2, host_rate: 100Gbps, spine_rate: 100Gbps, spine_delay: 5us}
  hosts: {nic: {header_only: true}}
  switches: {switch: {}}
workloads:
  sum: {type: permutation, size: 1MB, shift: 2}
  noise: {type: permutation, size: 400MB, background: true}
"""
ALL_PORTS = [f"h{host}.wire" for host in range(4)] + [f"leaf{leaf}.p{port}" for leaf in range(2) for port in range(4)] \
    + [f"spine{spine}.p{port}" for spine in range(2) for port in range(2)]
# Two hosts and a few packets.
PAIR = """
parameters: {s: 7, iters: 2}
seed: $s
topology: {back_to_back: {}, hosts: {nic: {header_only: true}}}
workloads: {write: {type: write_bw, iters: $iters}}
"""
LAYOUTS = {"MALLOC_TOP_PAD_": "0"}, {"MALLOC_MMAP_THRESHOLD_": "64"}


class Command(RoceboxTest):
    def sim(self, *words, text=FABRIC, status=0):
        """Runs a simulation with --json; returns the report."""
        out = self.dir / "report.json"
        self.rocebox("sim", self.config(text), "--json", out, *words, status=status)
        return json.loads(out.read_text())

    def table(self, name):
        with (self.dir / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def test_runs_and_reports(self):
        config = self.config(FABRIC)
        shown, said = self.rocebox("sim", config)
        self.assertEqual(said, "")
        for words in ("all workloads had finished", "shout", "hash of counters and transfers"):
            self.assertIn(words, shown)
        report = self.sim()
        self.assertEqual(report["workloads"]["shout"]["transfers_done"], 4)
        self.assertEqual(report["workloads"]["shout"]["bytes"], 40_000)

    def test_settings_take_the_place_of_what_is_written(self):
        self.assertEqual(self.sim("--set", "bytes=20kB")["workloads"]["shout"]["bytes"], 80_000)
        self.assertEqual(self.sim("--set", "topology.leaf_spine.hosts_per_leaf=3")["workloads"]["shout"]["bytes"], 60_000)
        hashes = {self.sim("--set", "loss=10%", "--set", "sim.time=1ms", "--seed", seed)["hash"] for seed in (1, 2, 1)}
        self.assertEqual(len(hashes), 2)
        for setting, words in (("bites=1", "with `bites=1`: unknown key `bites`"), ("loss=200%", "with `loss=200%`: "),
                               ("schedule.x={at: 1ms, devices: {leaf0: {switch: {traffic_manager: {buffer: 1MiB}}}}}", "buffer: 1MiB}}}}}`: "),
                               ("expect=[a b c]", "with `expect=[a b c]`: "), ("bytes", "write KEY=VALUE"), ("seed.x=1", "`seed` must be a whole number, found a mapping")):
            self.assertIn(words, self.rocebox("sim", self.config(FABRIC), "--set", setting, status=2)[1])

    def test_packets_do_not_tell_where_in_the_process_memory_is(self):
        captures = []
        for layout in LAYOUTS:
            out = self.dir / "capture.pcapng"
            shown, _ = self.rocebox("sim", self.config(BYTES.replace("CAPTURE", str(out))), env=os.environ | layout)
            self.assertIn("all workloads had finished", shown)
            captures.append(wire.read_pcap(out)[0])
        self.assertGreater(len(captures[0]), 300)
        self.assertEqual(*captures)

    def test_equal_runs_with_loss_have_equal_bytes_at_every_port(self):
        """And another seed has others."""
        text = LOSSY + "ports:\n" + "".join(f"  {port}: {{pcap: {{out: {self.dir / port}.pcapng}}}}\n" for port in ALL_PORTS)
        runs = []
        for seed, layout in ((1, LAYOUTS[0]), (1, LAYOUTS[1]), (2, {})):
            shown, _ = self.rocebox("sim", self.config(text), "--seed", seed, env=os.environ | layout)
            self.assertIn("all workloads had finished", shown)
            runs.append([(self.dir / f"{port}.pcapng").read_bytes() for port in ALL_PORTS])
        self.assertEqual(*runs[:2])
        for port, one, other in zip(ALL_PORTS, runs[0], runs[2]):
            self.assertNotEqual(one, other, port)
        frames = [wire.read_pcap(self.dir / f"h{host}.wire.pcapng")[0] for host in range(4)]
        sent = [frame for host in frames for _, _, frame in host]
        self.assertGreater(len(sent), len(set(sent)), "what was lost was sent again")

    def test_a_run_that_cannot_end_says_why(self):
        said = self.rocebox("sim", self.config(FABRIC), "--set", "loss=100%", status=1)[1]
        self.assertIn("nothing advances any more since", said)
        self.assertIn("workload shout", said)
        said = self.rocebox("sim", self.config(FABRIC.split("workloads")[0]), status=2)[1]
        self.assertIn("nothing says when the run ends", said)

    def test_a_run_that_stands_still_fails_before_its_time_though_a_packet_is_held(self):
        words = ("--set", "topology.hosts.station.keeps=true")
        for time, status in ((), 1), (("--set", "sim.time=60s"), 1), (("--set", "sim.time=9s"), 0):
            report = self.sim(*words, *time, status=status)
            self.assertEqual(report["run"]["end"], "nothing advanced any more" if status else "its time was over")
            self.assertGreater(report["run"]["held_at_end"], 0)

    def test_what_has_not_begun_in_the_background_does_not_begin_in_the_drain(self):
        report = self.sim("--set", "drain=100us", text=BACKGROUND.replace("background:", "after: [sum], start: 100ns, background:"))
        noise = report["workloads"]["noise"]
        self.assertEqual((noise["transfers"], noise["start_ns"], noise["duration_ns"]), (0, 0, 0))
        self.assertEqual((report["run"]["held_at_end"], report["run"]["drain_cut"]), (0, False))

    def test_goodput_over_time_has_the_steps_of_the_series_and_sees_a_program_stall(self):
        report = self.sim(text="""
topology:
  back_to_back: {host_rate: 10Gbps, host_delay: 1us}
  hosts: {nic: {header_only: true}}
workloads: {write_bw: {hosts: [h0, h1], size: 4KiB, iters: 2000, timeout: 8}}
sim: {sample: 100ns}
schedule:
  cut: {at: 500us, links: {h0_h1: {up: false}}}
  back: {at: 4ms, links: {h0_h1: {up: true}}}
""")
        at = [row["at_ns"] for row in report["goodput"]]
        self.assertEqual(at, report["series"]["at_ns"])
        self.assertGreater(at[1], 100, "so many samples have no room")
        rate = {row["at_ns"]: row["write_bw_bits_per_second"] for row in report["goodput"]}
        share = lambda begin, end: sum(bits for when, bits in rate.items() if begin <= when < end) * at[1] / (end - begin) / 1e10
        self.assertGreater(share(100_000, 400_000), 0.9)
        self.assertLess(share(1_000_000, 3_000_000), 0.1)
        carried = sum(bits * min(at[1], report["run"]["span_ns"] - when) for when, bits in rate.items()) / 8e9
        self.assertAlmostEqual(carried, 2000 * 4096, delta=1e5)

    def test_a_collective_that_cannot_connect_says_who_could_not(self):
        said = self.rocebox("sim", self.config("""
topology:
  back_to_back: {}
  hosts: {nic: {cm_retries: 1}}
  links: {match: {opcode: 0x64}, loss: 100%}
workloads: {sum: {type: all_reduce, rdma_cm: true}}
sim: {watchdog: 60s}
"""), status=1)
        self.assertIn("workload `sum` failed: no connection from `h0` to `h1`: no answer\n", said[1])
        self.assertIn("all workloads had finished", said[0], "nothing is waited for")

    def test_the_table_of_a_sweep_is_the_same_for_any_number_of_jobs(self):
        tables = []
        words = ("--sweep", "recovery=go_back_n,rnic_sr", "--seeds", "2")
        for jobs in (1, 3):
            report = self.sim(*words, "--jobs", jobs, "--csv", self.dir / f"csv{jobs}", text=RECOVERY)
            tables.append((report, (self.dir / f"csv{jobs}/sweep.csv").read_bytes()))
        self.assertEqual(tables[0], tables[1])
        rows = self.table("csv1/sweep.csv")
        self.assertEqual([(row["recovery"], row["seed"], row["finished"]) for row in rows],
                         [(recovery, seed, "true") for recovery in ("go_back_n", "rnic_sr") for seed in "12"])
        self.assertEqual(len({row["hash"] for row in rows}), 4, "each loses other packets, or sends others again")
        means = tables[0][0]["means"]
        self.assertEqual([(row["seeds"], row["finished_runs"], row["counted_runs"]) for row in means], [(2, 2, 2)] * 2)
        durations = [int(row["duration_ns"]) for row in rows]
        self.assertEqual(means[0]["duration_ns"], (durations[0] + durations[1]) / 2)

    def test_means_are_over_runs_that_came_to_an_end(self):
        """What is lost is not sent again: some runs finish, some have one of two transfers, some none, and some lose an ACK only."""
        text = RECOVERY.replace("size: 500KB", "size: 4KB, retry_cnt: 0").replace("loss: 1%", "loss: 12%")
        report = self.sim("--seeds", 8, "--jobs", 2, text=text, status=1)
        done = [row for row in report["runs"] if row["transfers_done"] > 0]
        good = [row for row in report["runs"] if row["finished"]]
        self.assertTrue(any(row["transfers_done"] == 2 and not row["finished"] for row in report["runs"]), "a queue pair failed")
        self.assertTrue(0 < len(good) < 8 and len(done) < 8, report["runs"])
        mean = report["means"][0]
        self.assertEqual((mean["seeds"], mean["finished_runs"], mean["counted_runs"]), (8, len(good), len(done)))
        for key, rows in ("completion_mean_ns", done), ("slowdown_mean", done), ("duration_ns", good):
            self.assertAlmostEqual(mean[key], sum(row[key] for row in rows) / len(rows), places=3, msg=key)

    def test_a_sweep_tells_mistakes_before_anything_runs(self):
        said = self.rocebox("sim", self.config(FABRIC), "--sweep", "loss=0,2", "--csv", self.dir / "csv", status=2)[1]
        self.assertIn("`loss` must be", said)
        self.assertFalse((self.dir / "csv").exists())
        said = self.rocebox("sim", self.config(FABRIC), "--sweep", "loss=0,100%", status=1)[1]
        self.assertIn("with loss=100% seed=1:", said)

    def test_a_sweep_has_each_key_once(self):
        config = self.config(PAIR)
        for more, told in ((("--sweep", "iters=2"), "--sweep iters=2: `iters` has values by another --sweep: give all in one"),
                           (("--set", "iters=3"), "--set iters=3 and --sweep iters=1 both say what `iters` is: give one of both")):
            self.assertIn(told, self.rocebox("sim", config, "--sweep", "iters=1", *more, status=2)[1])

    def test_results_have_a_place_before_the_run(self):
        (self.dir / "taken").write_text("a file")
        for words in (("--csv", self.dir / "taken"), ("--csv", self.dir / "taken", "--sweep", "iters=1,2")):
            shown, said = self.rocebox("sim", self.config(PAIR), *words, status=2)
            self.assertEqual(shown, "")
            self.assertIn("taken: the folder cannot be made", said)

    def test_a_workload_that_fails_is_told(self):
        """A client without a server: it has ended, and the run has failed."""
        text = PAIR.replace("{nic: {header_only: true}}", "{nic: {}}")
        text = text.replace("{write: {type: write_bw, iters: $iters}}", "{client: {type: write_bw, hosts: [h0], address: 10.255.255.9}}")
        shown, said = self.rocebox("sim", self.config(text), status=1)
        self.assertIn("workload `client` failed: ", said)
        self.assertIn("client", shown)
        for expected, words in ("1", []), ("0", ["workload `client` failed: ", "`workloads.client.failed` is 1"]):
            said = self.rocebox("sim", self.config(text + f"expect: workloads.client.failed == {expected}\n"), status=min(len(words), 1))[1]
            self.assertTrue(all(word in said for word in words) and bool(said) == bool(words), said)

    def test_a_sweep_makes_each_run_before_the_first_one_starts(self):
        """What is wrong with a workload is known when it is made."""
        text = PAIR.replace("back_to_back: {}", "leaf_spine: {leaves: 1, spines: 1, hosts_per_leaf: 7}, switches: {switch: {}}")
        text = text.replace("write: {type: write_bw, iters: $iters}", "sum: {type: all_reduce, size: 1KiB, groups: $iters}")
        words = ("--sweep", "iters=2,1,3", "--csv", self.dir / "csv", "--json", self.dir / "none.json")
        said = self.rocebox("sim", self.config(text), *words, "--seeds", 2, status=2)[1]
        self.assertRegex(said, r"^\S+:5:\d+: workload `sum`: .* \(with iters=2\)\n$", "once, though iters=3 has it, too")
        self.assertFalse((self.dir / "csv").exists() or (self.dir / "none.json").exists())

    def test_a_sweep_of_seeds_has_a_run_of_each(self):
        config = self.config(PAIR)
        for words, seeds in ((("--sweep", "s=1,5", "--seeds", 2), [1, 2, 5, 6]), (("--sweep", "seed=3,4"), [3, 4]),
                             (("--seeds", 2, "--seed", 9), [9, 10]), (("--sweep", "iters=1,2", "--set", "seed=4"), [4, 4])):
            report = self.sim(*words, text=PAIR)
            self.assertEqual([row["seed"] for row in report["runs"]], seeds, words)
            if len(seeds) == 4:
                self.assertEqual([(row["s"], row["seeds"]) for row in report["means"]], [("1", 2), ("5", 2)])
        for words in (("--sweep", "seed=1,2", "--seed", 3), ("--sweep", "seed=1,2", "--seeds", 3), ("--sweep", "s=1,2", "--seed", 3)):
            self.assertIn("give one of both", self.rocebox("sim", config, *words, status=2)[1])
        most = 2**63 - 1
        self.assertIn("there are not as many", self.rocebox("sim", config, "--seeds", 2, "--seed", most, status=2)[1])
        other = self.config(PAIR.replace("{s: 7,", "{s: 7, seed: 1,"))
        self.assertIn("is not the seed of the run", self.rocebox("sim", other, "--sweep", "seed=1,2", status=2)[1])

    def test_runs_of_a_sweep_write_no_file_together(self):
        text = PAIR.replace("iters: 2}", "iters: 2, capture: pair.pcap}") + "ports: {h0.wire: {pcap: {out: $capture}}}\n"
        config = self.config(text)
        for words in (("--sweep", "iters=1,2"), ("--sweep", "capture=a.pcap,b.pcap", "--seeds", 2), ("--set", "capture='-'", "--sweep", "iters=1")):
            said = self.rocebox("sim", config, *words, status=2)[1]
            self.assertRegex(said, r"^\S+:6:\d+: port `h0.wire` has its capture in .*, which several runs of the sweep would write: leave it out, or")
        self.assertFalse(list(self.dir.glob("*.pcap")))
        self.rocebox("sim", config, "--sweep", "capture=a.pcap,b.pcap")
        self.assertEqual(sorted(path.name for path in self.dir.glob("*.pcap")), ["a.pcap", "b.pcap"])
        self.rocebox("sim", config, "--seeds", 2, "--set", "capture=/dev/null")
        self.assertIn("--trace-out is for a single run", self.rocebox("sim", config, "--seeds", 2, "--trace-out", "x", status=2)[1])

    def run_of(self, sweep, word):
        """The process of that run of a sweep, when its check is over."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sweep.poll() is None:
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = path.read_bytes().decode().split("\0")
                except (OSError, UnicodeDecodeError):
                    continue  # it has ended
                if str(self.dir / "config.yaml") in words and word in words and "--only-check" not in words:
                    return int(path.parent.name)
            time.sleep(0.01)
        self.fail(f"there was no run with {word}")

    def test_a_run_of_a_sweep_that_is_killed_is_told(self):
        sweep = subprocess.Popen([ROCEBOX, "sim", self.config(FABRIC), "--sweep", "bytes=10kB,1GB", "--set", "sim.time=1000s",
                                  "--csv", self.dir / "csv"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(sweep.kill)
        os.kill(self.run_of(sweep, "bytes=1GB"), signal.SIGKILL)
        said = sweep.communicate(timeout=60)[1]
        self.assertEqual(said, "rocebox: with bytes=1GB seed=1:\nrocebox: signal 9 (Killed) ended this run: the table has no row of it\n")
        self.assertEqual(sweep.returncode, 1)
        self.assertEqual([row["bytes"] for row in self.table("csv/sweep.csv")], ["10kB"])

    def test_the_table_of_a_sweep_has_the_columns_of_all_runs(self):
        one = "{a: {type: write_bw, iters: 2}"
        self.sim("--sweep", f"workloads={one}}},{one}, b: {{type: write_bw, iters: 3}}}}", "--csv", self.dir / "csv", text=PAIR)
        alone, two = self.table("csv/sweep.csv")
        self.assertEqual([row["end"] for row in (alone, two)], ["all workloads had finished"] * 2)
        self.assertEqual((alone["transfers_done"], alone["a.transfers_done"], two["transfers_done"], two["b.transfers_done"]), ("1", "", "", "1"))
        self.assertEqual((list(alone)[1], list(alone)[-1]), ("seed", "hash"))

    def test_tables(self):
        self.sim("--csv", self.dir / "csv")
        transfers = self.table("csv/transfers.csv")
        self.assertEqual([(row["source"], row["destination"], row["bytes"]) for row in transfers],
                         [(f"h{i}", f"h{(i + 1) % 4}", "10000") for i in range(4)])
        self.assertEqual({path.name for path in (self.dir / "csv").iterdir()},
                         {"workloads.csv", "transfers.csv", "goodput.csv", "links.csv", "series.csv", "load.csv"})
        series, load = self.table("csv/series.csv"), self.table("csv/load.csv")
        self.assertEqual([row["at_ns"] for row in series], [row["at_ns"] for row in load])

    def test_the_table_of_transfers_has_those_that_the_report_leaves_out(self):
        report = self.sim("--csv", self.dir / "csv", "--set", "bytes=64B", "--set", "workloads.shout.times=5500")
        self.assertEqual((report["workloads"]["shout"]["transfers"], report["workloads"]["shout"]["transfers_omitted"]), (22_000, 2_000))
        self.assertEqual(len(report["workloads"]["shout"]["flows"]), 20_000)
        transfers = self.table("csv/transfers.csv")
        self.assertEqual(len(transfers), 22_000)
        times = sorted(int(row["completion_ns"]) for row in transfers)
        self.assertEqual(report["workloads"]["shout"]["completion"]["p999_ns"], times[22_000 * 999 // 1000 - 1])

    def test_two_hosts_of_one_address_are_refused(self):
        lone = "devices: {a: {nic: {address: 10.0.0.1}}, b: {nic: {address: 10.0.0.1}}}\nworkloads: {write_bw: {hosts: [a, b], iters: 5}}\n"
        joined = lone + "links: {cable: {between: [a.wire, b.wire]}}\n"
        for command in "sim", "check":
            said = self.rocebox(command, self.config(joined), status=2)[1]
            self.assertRegex(said, r"config.yaml:1:61: devices `a` and `b`, which links join, have the address 10.0.0.1: give each its own")
        self.rocebox("check", self.config(lone))

    def test_no_table_is_written_over_an_input(self):
        flows = self.dir / "transfers.csv"
        flows.write_text("1\n0 1 3 9 1\n")
        config = self.config("topology: {back_to_back: {}, hosts: {nic: {header_only: true}}}\n"
                             "workloads: {flows: {ns3: transfers.csv}}\n")
        for words in (("--json", flows), ("--csv", self.dir), ("--sweep", "seed=1,2", "--json", flows), ("--sweep", "seed=1,2", "--json", config)):
            said = self.rocebox("sim", config, *words, status=2)[1]
            self.assertIn("an output must be a file of its own", said)
        self.assertEqual(flows.read_text(), "1\n0 1 3 9 1\n")

    def test_a_terminal_sees_how_far_it_is_and_a_signal_ends_it_with_a_report(self):
        config = self.config(FABRIC.replace("$bytes", "1GB"))
        out = self.dir / "report.json"
        # A trace is begun when packets flow: then it is there.
        trace = self.dir / "trace.txt.part"
        terminal, its_end = os.openpty()
        self.addCleanup(os.close, terminal)
        run = subprocess.Popen([ROCEBOX, "sim", config, "--set", "sim.time=1000s", "--json", out, "--trace", "psn=1", "--trace-out", str(trace)[:-5]],
                               stdout=subprocess.DEVNULL, stderr=its_end)
        os.close(its_end)
        said, deadline = "", time.monotonic() + 60
        while not (trace.exists() and re.search(r"sim  \d+\.\d+ (us|ms|s)  0 of 1 workloads  \d+\.\d\d M events/s  \d+ s left", said)):
            self.assertTrue(time.monotonic() < deadline and run.poll() is None, said)
            if select.select([terminal], [], [], 0.02)[0]:
                said += os.read(terminal, 4096).decode()
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 1, said)
        report = json.loads(out.read_text())
        self.assertEqual(report["run"]["end"], "a signal ended it")

    def test_a_sweep_that_a_signal_ends_says_what_did_not_begin(self):
        config = self.config(FABRIC.replace("$bytes", "1GB"))
        error = self.dir / "error.txt"
        with error.open("w") as its_end:
            run = subprocess.Popen([ROCEBOX, "sim", config, "--quiet", "--set", "sim.time=1000s", "--seeds", "3"],
                                   stdout=subprocess.DEVNULL, stderr=its_end)

        def a_run_waits_for_signals():
            for child in pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
                try:
                    process = pathlib.Path("/proc", child)
                    waits = int(re.search(r"SigBlk:\s*(\w+)", (process / "status").read_text())[1], 16)
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    # Before it has its own words, a child has those of the sweep, whose signals are blocked, too.
                    if b"--seed" in words and b"--only-check" not in words and waits & 1 << signal.SIGINT - 1:
                        return True
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it has ended meanwhile
            return False

        deadline = time.monotonic() + 60
        while not a_run_waits_for_signals():
            self.assertTrue(time.monotonic() < deadline and run.poll() is None, error.read_text())
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 1, error.read_text())
        self.assertIn("a signal ended the sweep: 2 of 3 runs did not begin", error.read_text())

    def test_two_signals_in_a_moment_are_one_wish(self):
        """As timeout(1) has them: the process first, then its group. The report comes."""
        out = self.dir / "report.json"
        trace = self.dir / "trace.txt"
        run = subprocess.Popen([ROCEBOX, "sim", self.config(FABRIC.replace("$bytes", "1GB")), "--quiet", "--set", "sim.time=1000s", "--json", out,
                                "--trace", "psn=1", "--trace-out", trace], stdout=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        deadline = time.monotonic() + 60
        while not trace.with_suffix(".txt.part").exists():
            self.assertTrue(time.monotonic() < deadline and run.poll() is None)
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 1)
        self.assertEqual(json.loads(out.read_text())["run"]["end"], "a signal ended it")
        self.assertEqual(list(self.dir.glob("*.part")), [])

    def test_two_signals_in_a_moment_leave_a_sweep_its_table(self):
        sweep = subprocess.Popen([ROCEBOX, "sim", self.config(FABRIC), "--quiet", "--sweep", "bytes=10kB,1GB", "--set", "sim.time=1000s", "--csv", self.dir / "csv"],
                                 stderr=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(self.dir)})
        self.addCleanup(sweep.kill)
        self.run_of(sweep, "bytes=1GB")
        sweep.send_signal(signal.SIGINT)
        sweep.send_signal(signal.SIGTERM)
        self.assertEqual(sweep.wait(timeout=60), 1)
        self.assertEqual(self.table("csv/sweep.csv")[0]["bytes"], "10kB")
        self.assertEqual(list(self.dir.glob("rocebox-sweep-*")), [])

    def test_a_terminal_sees_how_many_runs_of_a_sweep_are_over(self):
        terminal, its_end = os.openpty()
        self.addCleanup(os.close, terminal)
        sweep = subprocess.Popen([ROCEBOX, "sim", self.config(PAIR), "--sweep", "iters=1,2,3"], stdout=subprocess.DEVNULL, stderr=its_end)
        os.close(its_end)
        said = b""
        with contextlib.suppress(OSError):  # its end
            while more := os.read(terminal, 4096):
                said += more
        self.assertEqual(sweep.wait(timeout=60), 0)
        lines = [f"sweep  {over} of 3 runs{what}" for what in (" checked", "") for over in range(3)]
        shown = said.decode().split("\r\033[K")
        self.assertEqual(shown[0], "")
        self.assertEqual([line for line in shown if line], lines)
        self.assertEqual(shown[-1], "", "the table has the place")

    def test_a_terminal_sees_the_time_left_of_a_run_that_ends_with_its_workloads(self):
        terminal, its_end = os.openpty()
        self.addCleanup(os.close, terminal)
        config = self.config(BACKGROUND.replace("1MB", "900GB"))
        run = subprocess.Popen([ROCEBOX, "sim", config], stdout=subprocess.DEVNULL, stderr=its_end)
        os.close(its_end)
        said, deadline = "", time.monotonic() + 60
        while not re.search(r"0 of 2 workloads  \d+\.\d\d M events/s  \d+ s left", said):
            self.assertTrue(time.monotonic() < deadline and run.poll() is None, said)
            if select.select([terminal], [], [], 0.02)[0]:
                said += os.read(terminal, 4096).decode()
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 1, said)

    def test_check_tells_of_topologies(self):
        shown = self.rocebox("check", self.config(FABRIC))[0]
        for words in ("topology: 4 hosts, 4 switches, 8 links", "host h0: 10.0.0.1", "workload shout: shout on h0, h1, h2, h3"):
            self.assertIn(words, shown)
        routes = self.rocebox("check", self.config(FABRIC), "--routes")[0].splitlines()
        self.assertIn("leaf0 10.0.0.1/32 h0", routes)
        self.assertIn("leaf0 10.0.1.0/24 spine0 spine1", routes)
        self.assertIn("spine1 10.0.1.0/24 leaf1", routes)

    def test_check_takes_settings_as_a_simulation_does(self):
        config = self.config(FABRIC)
        self.assertRegex(self.rocebox("check", config, "--set", "bytes=20kB", "--set", "seed=7")[0], r"(?s)seed: 7\n.*bytes: 20kB")
        for setting in "loss=200%", "topology.leaf_spine.hosts_per_leaf=x", "bytes":
            said = [self.rocebox(command, config, "--set", setting, status=2)[1] for command in ("check", "sim")]
            self.assertEqual(*said)
        said = self.rocebox("check", "--from", "x.pcap", "--set", "seed=7", "--", "link", status=2)[1]
        self.assertIn("--set is for a configuration in a file", said)
        said = self.rocebox("check", self.config("lab: two\nhosts: {a: {}}\n"), "--set", "lab=x", status=2)[1]
        self.assertIn("and this is a lab", said)

    def test_an_option_without_effect_is_noted_and_a_sweep_over_choices_has_none(self):
        config = self.config(PAIR.replace("header_only: true", "header_only: true, retransmit_stall: 1us"))
        note = r":4:\d+: note: `retransmit_stall` has no effect with `recovery: go_back_n`, but for workloads that have another\n$"
        for words in ("check",), ("sim", "--quiet"), ("sim", "--sweep", "iters=2"):
            self.assertRegex(self.rocebox(words[0], config, *words[1:])[1], r"^\S+" + note)
        self.assertEqual(self.rocebox("sim", config, "--sweep", "topology.hosts.nic.recovery=go_back_n")[1], "")

    def test_replay_refuses_workloads(self):
        said = self.rocebox("replay", self.config(FABRIC), status=2)[1]
        self.assertIn("give the configuration to `rocebox sim` or `rocebox run`", said)

    def test_schedules_are_for_simulations(self):
        config = self.config("devices: {d: {path: a <-> wire <-> b, kernels: {wire: {type: link}}}}\n"
                             "schedule: {cut: {at: 1ms, devices: {d: {kernels: {wire: {up: false}}}}}}\n")
        for command, words in ("replay", "in `rocebox sim` only"), ("run", "takes over what changes by `rocebox reload`"):
            said = self.rocebox(command, config, status=2)[1]
            self.assertRegex(said, r":2:\d+: what `schedule:` changes")
            self.assertIn(words, said)
        self.assertIn("#   1ms: cut of d", self.rocebox("check", config)[0])

    def test_a_live_run_has_workloads_and_ends_with_them(self):
        out = self.dir / "report.json"
        self.rocebox("run", self.config(LIVE), "--json", out)
        report = json.loads(out.read_text())
        for name in ("server", "client"):
            ran = report["workloads"][name]
            self.assertEqual((ran["finished"], ran["details"]["pings"], ran["details"]["error"]), (True, 50, ""))
        self.assertEqual(report["workloads"]["client"]["details"]["mismatches"], 0)
        self.assertEqual(report["run"]["pool_in_use"], report["run"]["pool_idle"])
        wrong = LIVE.replace("hosts: [b]", "hosts: [idle]").replace("address: 10.0.0.1}", "address: 10.0.0.1, retransmit_stall: 1us}", 1)
        said = self.rocebox("run", self.config(wrong), status=2)[1]
        self.assertIn("workload `server` cannot run on device `idle`", said)
        self.assertIn(":3:50: note: `retransmit_stall` has no effect", said)


if __name__ == "__main__":
    unittest.main()
