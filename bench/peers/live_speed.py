#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox run` beside dpdk-testpmd, on the same ports and the same core, one after the other, several times.
usage: live_speed.py BUILD_FOLDER JSON_FILE [SECONDS]
Exit status: 0 measured and all bounds hold, 1 one does not, 2 it could not be measured."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import forwarders
from forwarders import fail

ROUNDS = 3
BOUNDS = {"empty bump": 0.95, "bump with inspect": 0.6, "two shards": 1.8}  # by the first words of what is compared
FLOWS = 64
PACKETS = 32768  # in the pools of both: infinite_rx keeps two captures in them


def testpmd(mode, vdevs, core, seconds):
    return forwarders.testpmd(mode, vdevs, core, seconds, PACKETS)


def rocebox(build, folder, path, ports, cores, seconds, env=None):
    config = (f"devices: {{bump: {{path: {path}}}}}\nports:\n"
              + "".join(f"  {name}: {{{binding}}}\n" for name, binding in zip(("a", "z"), ports))
              + f"live: {{idle: poll}}\npool: {{small: {PACKETS}}}\n")
    return forwarders.rocebox(build, folder, config, cores, seconds, env)[0]


def compare(peer, ours):
    """Best of several rounds in turn: other work on a machine only ever takes time."""
    theirs_best = ours_best = 0
    for _ in range(ROUNDS):
        theirs_best = max(theirs_best, peer())
        ours_best = max(ours_best, ours())
    return {"peer": theirs_best, "ours": ours_best, "ratio": ours_best / theirs_best}


def main():
    build, out = os.path.abspath(sys.argv[1]), sys.argv[2]
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    if not shutil.which("dpdk-testpmd"):
        fail("dpdk-testpmd is not installed (package dpdk)")
    cpus = sorted(os.sched_getaffinity(0))
    core = str(cpus[-1])
    results = {}
    with tempfile.TemporaryDirectory(prefix="rocebox-live-") as folder:
        for size in (64, 1078):
            vdevs = [f"net_null{i},size={size}" for i in range(2)]
            ports = [f"net_null: {{packet_bytes: {size}}}"] * 2
            results[f"empty bump against testpmd io, net_null, {size} B"] = compare(
                lambda: testpmd("io", vdevs, core, seconds), lambda: rocebox(build, folder, "a <-> z", ports, core, seconds))
        capture = f"{folder}/flows.pcap"
        subprocess.run([f"{build}/bench/make_capture", capture, "1", str(FLOWS), "endless"], check=True)
        devargs = [f"net_pcap{i},rx_pcap={capture},infinite_rx=1" for i in range(2)]
        ports = [f'devargs: "{d}"' for d in devargs]
        results["bump with inspect against testpmd 5tswap, net_pcap, 64 flows"] = compare(
            lambda: testpmd("5tswap", devargs, core, seconds),
            lambda: rocebox(build, folder, "a <-> inspect <-> z", ports, core, seconds))
        if len(cpus) > 1:
            # RoCE from memory on ports with a queue for each core: net_pcap has none, and would be measured for the exchange.
            ports = ["net_null: {packet_bytes: 64}"] * 2
            source = {"LD_PRELOAD": f"{build}/bench/capture_source.so", "ROCEBOX_CAPTURE": capture, "ROCEBOX_CAPTURE_PORTS": "net_null_rb"}
            results["two shards against one, inspect, 64 flows from memory"] = compare(
                lambda: rocebox(build, folder, "a <-> inspect <-> z", ports, core, seconds, source),
                lambda: rocebox(build, folder, "a <-> inspect <-> z", ports, f"{cpus[-2]},{core}", seconds, source))
    pathlib.Path(out).write_text(json.dumps(results, indent=1))
    failed = 0
    for name, result in results.items():
        bound = next(bound for words, bound in BOUNDS.items() if name.startswith(words))
        failed += result["ratio"] < bound
        print(f"{name:64s} {result['peer'] / 1e6:7.2f} Mpps {result['ours'] / 1e6:7.2f} Mpps  {result['ratio']:.2f} x  "
              f"(>= {bound}) {'pass' if result['ratio'] >= bound else 'FAIL'}")
    sys.exit(1 if failed else 0)


main()
