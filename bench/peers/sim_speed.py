#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The virtual drive's speed and memory: packet-hops a second on one core, beside htsim's RoCE model for the same traffic.
usage: sim_speed.py BUILD_FOLDER [HTSIM_CHECKOUT]
A packet-hop is one packet, data or ACK, over one link. Hosts send to the host of the same place behind the next leaf, so that each
packet goes over four links; 4096 bytes a packet, an ACK for each, 100 Gbit/s, headers alone, deep queues. A run's start is taken
off: what counts is the CPU time between a short transfer and a long one, the least of several rounds, in which the simulators, or the
fabrics of several sizes, take turns: a neighbour that takes the cache or the memory bus away slows down most what waits for memory.
Each round runs a new copy of the program: where the pages of one file lie in memory makes it up to 15% slower or faster than another.
Ours are counted as the links' counters say: an ACK that finds another one of its queue pair waiting goes with that.

HTSIM_CHECKOUT is a checkout of csg-htsim (github.com/Broadcom/csg-htsim), which is copied and built with its own makefiles; what it
has built already is used. `sim/datacenter/htsim_roce` runs the same flows (a connection matrix) in a fat tree of two tiers, which for
128 nodes is 16 leaves of 8 hosts and 8 spines, with its own defaults for all that HTSIM_OPTIONS do not say: links of 1 us, lossless input
queues. Each packet of data crosses four links and has an ACK that does, too; a run in which a flow does not finish or anything is sent
again is none. Its sources seed their paths by the clock, so that no two runs collide alike: rounds are there for that, too.
Exit status: 0 all bounds hold, 1 one does not, 2 not measured."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROUNDS, ROUNDS_BESIDE = 4, 7
SHORT_MIB, LONG_MIB = 1, 17  # of 128 hosts and more; of fewer as many bytes in all
PACKETS_A_MIB = (1 << 20) // 4096
HOPS = 4
LEAVES, SPINES, HOSTS = 16, 8, 8  # 128 hosts
SIZES = ((4, 4, 4), (16, 8, 8), (32, 32, 32))  # leaves, spines, hosts of a leaf: 16, 128 and 1024 hosts, none oversubscribed
HOPS_A_SECOND, GROWTH, GIBIBYTES = 3e6, 2.0, 4.0
# What fits in a core's own cache, and what 1024 hosts touch in a microsecond: 20 lines a packet-hop (cachegrind, last level of 1 MiB), of
# which there are 4000 (flows that share a path are slower than their links), on some 14,000 pages (cachegrind with lines of 4 KiB).
PROBED_KIB = (512, 14000 * 64 // 1024, 20 * 4000 * 64 // 1024)
RATIO = 2.5  # to htsim: 3 million beside the 1.2 million that it made where the goal was set
FABRIC = """parameters: {{size: {mib}MiB}}
topology:
  leaf_spine: {{leaves: {leaves}, spines: {spines}, hosts_per_leaf: {hosts}, host_rate: 100Gbps, spine_rate: 100Gbps}}
  hosts: {{nic: {{header_only: true, ack_every: 1}}}}
  switches: {{switch: {{traffic_manager: {{buffer: 1GiB, packets: 65536}}}}}}
workloads:
  permutation: {{size: $size, shift: {hosts}, timeout: 20}}
"""
# Mbit/s; bytes; a path a flow, by its hash; packets that a queue holds, and at which its sender may go on and is paused; us.
HTSIM_OPTIONS = ("-nodes {nodes} -tiers 2 -linkspeed 100000 -mtu 4096 -strat ecmp_host -paths 64 -q 10000 -pfc_thresholds 100 200 "
                 "-end 1000000")


def fail(text):
    print(f"sim_speed: {text}", file=sys.stderr)
    sys.exit(2)


def cpu_seconds(argv, log):
    """CPU seconds and peak resident KiB of one run."""
    with open(log, "wb") as out:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        fail(f"{' '.join(argv)} failed: {pathlib.Path(log).read_text(errors='replace')[-500:]}")
    return usage.ru_utime, usage.ru_maxrss


class Program:
    """One that is measured, from `source`; it runs as a copy in `work`."""

    def __init__(self, source, work):
        self.source, self.work, self.copy = source, work, f"{work}/copy-of-{pathlib.Path(source).name}"

    def renew(self):
        pathlib.Path(self.copy).unlink(missing_ok=True)
        shutil.copy2(self.source, self.copy)


class Rocebox(Program):
    def __init__(self, build, work, leaves, spines, hosts, mib):
        super().__init__(f"{build}/rocebox", work)
        self.report = f"{work}/report.json"
        self.config = f"{work}/{leaves * hosts}.yaml"
        pathlib.Path(self.config).write_text(FABRIC.format(mib=mib, leaves=leaves, spines=spines, hosts=hosts))

    def run(self, mib):
        argv = [self.copy, "sim", self.config, "--set", f"size={mib}MiB", "-q", "--json", self.report]
        seconds, kib = cpu_seconds(argv, f"{self.work}/log")
        report = json.loads(pathlib.Path(self.report).read_text())
        lost = sum(value for device in report["devices"].values() for kernel in device["kernels"].values()
                   for name, value in kernel["counters"].items() if name.startswith("drop_") or name == "retransmitted_packets")
        if lost:
            fail(f"{lost} packets were lost or sent again, which are to be none")
        return seconds, kib, sum(row["packets"] for row in report["utilisation"])


class Htsim(Program):
    def __init__(self, checkout, work):
        build, source = pathlib.Path(work, "htsim"), pathlib.Path(checkout, "sim")
        if not (source / "datacenter/main_roce.cpp").exists():
            fail(f"{checkout} is no checkout of csg-htsim: there is no sim/datacenter/main_roce.cpp")
        shutil.copytree(source, build)
        for folder, target in ((build, "libhtsim.a"), (build / "datacenter", "htsim_roce")):
            made = subprocess.run(["make", "-C", folder, f"-j{os.cpu_count()}", target], capture_output=True, text=True, errors="replace")
            if made.returncode:
                fail(f"htsim's {target} was not built: {made.stderr[-500:]}")
        super().__init__(str(build / "datacenter/htsim_roce"), work)

    def run(self, mib):
        nodes = LEAVES * HOSTS
        matrix = f"{self.work}/{mib}.cm"
        rows = (f"{i}->{(i + HOSTS) % nodes} id {i + 1} start 0 size {mib << 20}\n" for i in range(nodes))
        pathlib.Path(matrix).write_text(f"Nodes {nodes}\nConnections {nodes}\n" + "".join(rows))
        log = f"{self.work}/log"
        seconds, kib = cpu_seconds([self.copy, "-tm", matrix, *HTSIM_OPTIONS.format(nodes=nodes).split(), "-o", f"{self.work}/out"],
                                   log)
        told = pathlib.Path(log).read_text(errors="replace")
        if told.count("finished at") != nodes or "Rtx: 0" not in told:
            fail("htsim did not finish all flows without sending anything again")
        return seconds, kib, nodes * mib * PACKETS_A_MIB * 2 * HOPS


def probe(build):
    """Nanoseconds that a load waits for in each of PROBED_KIB, side by side and each line on a page of its own."""
    said = subprocess.run([f"{build}/bench/cache_probe", *map(str, PROBED_KIB)], capture_output=True, text=True)
    if said.returncode:
        fail(f"cache_probe failed: {said.stderr}")
    return [[float(word) for word in line.split()[1:]] for line in said.stdout.splitlines()]


def rates(runners, longs, rounds):
    """Of each: packet-hops a second between a short run and a long one, and the peak memory. They take turns."""
    rows = []
    for _ in range(rounds):
        for runner in runners:
            runner.renew()
        rows.append([(runner.run(SHORT_MIB), runner.run(long)) for runner, long in zip(runners, longs)])
    answers = []
    for runs in zip(*rows):
        few, many = (min((pair[i] for pair in runs), key=lambda run: run[0]) for i in (0, 1))
        if many[0] <= few[0]:
            fail("the long run took no longer than the short one")
        answers.append(((many[2] - few[2]) / (many[0] - few[0]), many[1]))
    return answers


def main():
    if not 2 <= len(sys.argv) <= 3:
        fail(__doc__.split("\n")[1])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    status = 0

    def judge(text, value, good):
        nonlocal status
        print(f"{text:<72} {value:>14}  {'pass' if good else 'FAIL'}")
        status |= not good

    with tempfile.TemporaryDirectory() as work:
        build, *checkout = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:])
        if not pathlib.Path(build, "bench/cache_probe").exists():
            fail("bench/cache_probe is not built: cmake --build BUILD_FOLDER --target cache_probe")
        os.chdir(work)  # htsim leaves files where it runs
        runners = [Rocebox(build, work, LEAVES, SPINES, HOSTS, LONG_MIB), *(Htsim(path, work) for path in checkout)]
        (ours, _), *others = rates(runners, [LONG_MIB] * len(runners), ROUNDS_BESIDE if checkout else ROUNDS)
        judge(f"128 hosts, packet-hops a second on one core (>= {HOPS_A_SECOND / 1e6:g} M)", f"{ours / 1e6:.2f} M", ours >= HOPS_A_SECOND)
        for theirs, _ in others:
            print(f"{'csg-htsim, its RoCE model, in turn with ours':<72} {theirs / 1e6:>12.2f} M")
            judge(f"ratio (>= {RATIO:g})", f"{ours / theirs:.2f} x", ours >= RATIO * theirs)
        numbers = [leaves * hosts for leaves, _, hosts in SIZES]
        longs = [max(LONG_MIB, LONG_MIB * LEAVES * HOSTS // number) for number in numbers]
        fabrics = [Rocebox(build, work, *size, long) for size, long in zip(SIZES, longs)]
        costs = {}
        before = probe(build)
        for number, (speed, kib) in zip(numbers, rates(fabrics, longs, ROUNDS)):
            costs[number] = 1e9 / speed
            print(f"{f'{number} hosts, ns a packet-hop; memory':<72} {costs[number]:>6.0f}, {kib / (1 << 20):.2f} GiB")
        waits = [map(min, zip(*both)) for both in zip(before, probe(build))]
        told = ", ".join(f"{near:.0f} ({far:.0f}) ns in {kib} KiB" for kib, (near, far) in zip(PROBED_KIB, waits))
        print(f"{'a load that waits for another one (each line on a page of its own)':<72} {told}")
        growth = max(costs.values()) / costs[min(costs)]
        judge(f"cost of a packet-hop, 1024 hosts against 16 at worst (< {GROWTH:g} x)", f"{growth:.2f} x", growth < GROWTH)
        judge(f"memory of 1024 hosts (< {GIBIBYTES:g} GiB)", f"{kib / (1 << 20):.2f} GiB", kib / (1 << 20) < GIBIBYTES)
    sys.exit(status)


main()
