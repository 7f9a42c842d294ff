#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The switch, and each half of Themis in it, beside dpdk-testpmd and DPDK's SWX pipeline, on the same ports, packets and core.
usage: switch_speed.py BUILD_FOLDER JSON_FILE [SECONDS [ROUNDS]]
Exit status: 0 measured and all bounds hold, 1 one does not, 2 it could not be measured."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import forwarders
import swx
import switch_bed as bed
import switch_check

QPS = (1, 512, 8192)
CAPTURE_PACKETS = 4096  # at least; 8 of each QP at least
POOL_PACKETS = 32768
BURST = forwarders.BURST
TESTPMD, SWX, BUMP = "testpmd 5tswap", "SWX forward", "bump without kernels"
FORWARD, THEMIS_S, THEMIS_D = "switch, forward", "switch, forward and Themis-S", "switch, forward and Themis-D"
MEMORY_S, MEMORY_D = "Themis-S, without ports", "Themis-D, without ports"
STAGES = {MEMORY_S: 0, MEMORY_D: 1}  # stage_bench's cases
REPETITIONS = 4  # of stage_bench in each round, which repeats each case twice
VDEVS = ["net_null0", *(f"net_null{i},no-rx=1" for i in range(1, len(bed.PORTS)))]
MPPS_512, KEPT_8192 = 12.0, 0.5


class Bed:
    """One number of QPs: its captures, and a function for each forwarder that runs it once and gives packets per second."""

    def __init__(self, build, work, qps, program, core, seconds):
        self.build, self.work, self.qps, self.core, self.seconds = build, work, qps, core, seconds
        self.captures = f"{work}/{qps}"
        os.mkdir(self.captures)
        made = subprocess.run([f"{build}/bench/make_switch_capture", self.captures, str(qps), str(CAPTURE_PACKETS)], check=False)
        switch_check.require(made.returncode == 0, "make_switch_capture failed")
        self.forwarders = {
            TESTPMD: self.testpmd,
            SWX: lambda: self.swx(program),
            BUMP: lambda: self.rocebox("devices: {tor: {path: a <-> b}}\n", "to_fabric", 2)[0],
            FORWARD: lambda: self.rocebox(bed.switch("to_fabric"), "to_fabric")[0],
            THEMIS_S: self.themis_s,
            THEMIS_D: self.themis_d,
            **{name: lambda case=case: self.from_memory(case) for name, case in STAGES.items()}}

    def source(self, side):
        """Packets of that capture come in by the first port, endlessly; the others only take packets (VDEVS)."""
        return {"LD_PRELOAD": f"{self.build}/bench/capture_source.so", "ROCEBOX_CAPTURE": f"{self.captures}/{side}.pcap"}

    def testpmd(self):
        return forwarders.testpmd("5tswap", VDEVS, self.core, self.seconds, POOL_PACKETS, ["--port-topology=chained"],
                                  self.source("to_fabric"))

    def rocebox(self, device, side, ports=len(bed.PORTS)):
        config = device + "ports:\n" + "".join(f'  tor.{port}: {{devargs: "{vdev}"}}\n'
                                               for port, vdev in list(zip(bed.PORTS, VDEVS))[:ports])
        config += f"live: {{idle: poll}}\npool: {{small: {POOL_PACKETS}}}\n"
        rate, report = forwarders.rocebox(self.build, self.work, config, self.core, self.seconds, self.source(side))
        tor = report["devices"]["tor"]
        switch_check.require(tor["counters"]["packets_in"] > 0 and tor["counters"]["packets_out"] == tor["counters"]["packets_in"],
                             "a measured device lost packets")
        return rate, tor

    def swx(self, program):
        rate, counted = swx.run(self.build, program, self.work, switch_check.swx_tables("to_fabric"), VDEVS, self.core, self.seconds,
                                POOL_PACKETS, self.source("to_fabric"))
        # All is sent but what its ports and threads hold when it stops.
        switch_check.require(0 <= counted["rx_packets"] - sum(counted["tx_packets"]) <= (len(VDEVS) + 2) * BURST,
                             f"SWX lost packets: {counted}")
        return rate

    def from_memory(self, case):
        """Packets that are in memory already and stay there: what the device alone takes of a core, from parsing to leaving. It is
        held against a number, not against a peer that others disturb as much: short repetitions, of which the best counts."""
        words = ["taskset", "-c", self.core, f"{self.build}/bench/stage_bench", "--benchmark_format=json",
                 f"--benchmark_filter=case:{case}/flows:{self.qps}/", "--benchmark_min_time=0.05"]
        runs = []
        for _ in range(REPETITIONS):
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            switch_check.require(done.returncode == 0, f"stage_bench failed: {done.stderr[-500:]}")
            runs += [run for run in json.loads(done.stdout)["benchmarks"] if run["run_type"] == "iteration"]
        switch_check.require(runs and not any("error_occurred" in run for run in runs), "stage_bench measured nothing")
        return max(run["hz"] / run["cycles/all"] for run in runs)

    def themis_s(self):
        rate, tor = self.rocebox(bed.switch("to_fabric", f"{self.captures}/to_fabric.yaml"), "to_fabric")
        count, received = tor["kernels"]["switch"]["counters"], tor["counters"]["packets_in"]
        # A QP's packets of the instant that makes its state are not sprayed: two where QPs take turns.
        switch_check.require(count["qps_made"] == self.qps and received - count["sprayed"] <= max(2 * self.qps, 2 * BURST) and
                             count["rerouted_again"] + count["rerouted_avoided"] + count["qps_begun_anew"] == 0,
                             f"Themis-S did not spray all {received} packets: {count}")
        return rate

    def themis_d(self):
        rate, tor = self.rocebox(bed.switch("to_host", f"{self.captures}/to_host.yaml"), "to_host")
        count, received = tor["kernels"]["switch"]["counters"], tor["counters"]["packets_in"]
        switch_check.require(count["qps_made"] == self.qps and tor["ports"]["b"]["tx_packets"] == received and
                             count["qps_begun_anew"] + count["data_wrong_port"] == 0,
                             f"Themis-D did not record all {received} packets: {count}")
        return rate

    def measure(self, rounds):
        """Each forwarder once a round, so that what else the machine does meets all of them: {name: [packets per second]}."""
        rates = {name: [] for name in self.forwarders}
        for _ in range(rounds):
            for name, run in self.forwarders.items():
                rates[name].append(run())
        return rates


def summary(rates):
    """Medians of the rounds; ratios are taken in each round."""
    result = {}
    for name, values in rates.items():
        row = {"mpps": statistics.median(values) / 1e6, "rounds": [value / 1e6 for value in values]}
        for peer in TESTPMD, SWX:
            if peer != name:
                row[f"ratio to {peer}"] = statistics.median(ours / theirs for ours, theirs in zip(values, rates[peer]))
        result[name] = row
    return result


def count(qps):
    return f"{qps} QP{'s' if qps > 1 else ''}"


def print_rows(qps, rows):
    for name, row in rows.items():
        ratios = "".join(f"{row[f'ratio to {peer}']:16.2f} x" if f"ratio to {peer}" in row else " " * 18 for peer in (TESTPMD, SWX))
        print(f"{f'{name}, {count(qps)}':44s} {row['mpps']:7.2f} Mpps{ratios}".rstrip())


def bounds(results):
    """(what, value, bound, unit)"""
    for name in MEMORY_S, MEMORY_D:
        yield f"{name}, 512 QPs", results[512][name]["mpps"], MPPS_512, "Mpps"
    for name in THEMIS_S, THEMIS_D, MEMORY_S, MEMORY_D:
        yield f"{name}, 8192 QPs against 512", results[8192][name]["mpps"] / results[512][name]["mpps"], KEPT_8192, "x"


def main():
    if not 3 <= len(sys.argv) <= 5:
        forwarders.fail("usage: switch_speed.py BUILD_FOLDER JSON_FILE [SECONDS [ROUNDS]]")
    build, out = os.path.abspath(sys.argv[1]), sys.argv[2]
    seconds, rounds = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((3, 2), (4, 3)))
    core = str(max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="rocebox-switch-") as work:
        program, form = swx.program(build, work)
        print(f"{SWX}: {form}")
        results = {}
        print(f"{'':44s} {'':12s}{'of ' + TESTPMD:>18s}{'of ' + SWX:>18s}")
        for qps in QPS:
            measured = Bed(build, work, qps, program, core, seconds)
            if qps >= switch_check.ORDINARY:  # enough flows for all paths
                switch_check.forwarding(build, work, f"{measured.captures}/to_fabric.pcap", "to_fabric", program, core)
            switch_check.themis(build, work, measured.captures, qps)
            results[qps] = summary(measured.measure(rounds))
            print_rows(qps, results[qps])
    for name in THEMIS_S, THEMIS_D:
        print(f"{f'{name}, ports included, 512 QPs':56s} {results[512][name]['mpps']:7.2f} Mpps  (not judged)")
    failed = 0
    judged = [{"what": what, "value": value, "bound": bound, "unit": unit} for what, value, bound, unit in bounds(results)]
    for row in judged:
        holds = row["value"] >= row["bound"]
        failed += not holds
        print(f"{row['what']:56s} {row['value']:7.2f} {row['unit']}  (>= {row['bound']:g}) {'pass' if holds else 'FAIL'}")
    pathlib.Path(out).write_text(json.dumps({"qps": results, "bounds": judged, "swx": form}, indent=1))
    sys.exit(1 if failed else 0)


main()
