#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`rocebox run` beside dpdk-testpmd, on the same ports and the same core, one after the other, several times.
usage: live_speed.py BUILD_FOLDER JSON_FILE [SECONDS]
Exit status: 0 measured and all bounds hold, 1 one does not, 2 it could not be measured."""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROUNDS = 3
BOUNDS = {"empty bump": 0.95, "bump with inspect": 0.6, "two shards": 1.8}  # by the first words of what is compared
FLOWS = 64
PACKETS = 32768  # in the pools of both: infinite_rx keeps two captures in them
SAMPLE_S = 0.02


def fail(why):
    print(f"live_speed: {why}", file=sys.stderr)
    sys.exit(2)


def run_measured(words, interrupt_after_s=math.inf):
    """Runs a forwarder to its end: its output, and the mean time in seconds that its workers had a CPU. Time that others had the
    CPU is not counted, so that what else runs on the machine disturbs little."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    cpu_ns = {}
    output = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()))
    reader.start()
    end = time.monotonic() + interrupt_after_s
    while process.poll() is None:
        if time.monotonic() > end:
            process.send_signal(signal.SIGINT)
            end = math.inf
        for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                if (task / "comm").read_text().startswith("rte-worker"):  # EAL's name for them, in both programs
                    cpu_ns[task.name] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                pass  # it has just ended
        time.sleep(SAMPLE_S)
    reader.join()
    if not cpu_ns:
        fail(f"{words[0]} did not run: {output[0][-500:]}")
    return process.returncode, output[0], sum(cpu_ns.values()) / len(cpu_ns) * 1e-9


def has_hugepages():
    return any(int(path.read_text()) for path in pathlib.Path("/sys/kernel/mm/hugepages").glob("*/free_hugepages"))


def testpmd(mode, vdevs, core, seconds):
    """Packets that arrive at all ports together per second of its core."""
    memory = ["--in-memory"] if has_hugepages() else ["--no-huge", "-m", "512"]  # as rocebox chooses
    words = ["dpdk-testpmd", "-l", f"0,{core}", *memory, "--no-pci", "--file-prefix", f"rbpeer{os.getpid()}"]
    for vdev in vdevs:
        words += ["--vdev", vdev]
    words += ["--", f"--forward-mode={mode}", "--nb-cores=1", "--auto-start", "--stats-period", "1",
              "--total-num-mbufs", str(PACKETS), "--burst", "32"]
    _, output, cpu_s = run_measured(words, seconds + 2)
    totals = re.findall(r"RX-packets: (\d+)", output.split("Accumulated forward statistics")[-1])
    if not totals:
        fail("dpdk-testpmd did not run: " + output[-500:])
    return int(totals[0]) / cpu_s


def rocebox(build, folder, path, ports, cores, seconds):
    config = pathlib.Path(folder) / "run.yaml"
    config.write_text(f"devices: {{bump: {{path: {path}}}}}\nports:\n"
                      + "".join(f"  {name}: {{{binding}}}\n" for name, binding in zip(("a", "z"), ports))
                      + f"live: {{idle: poll}}\npool: {{small: {PACKETS}}}\n")
    out = pathlib.Path(folder) / "run.json"
    status, output, cpu_s = run_measured([f"{build}/rocebox", "run", str(config), "--cores", cores,
                                          "--duration", f"{seconds}s", "--json", str(out)])
    if status != 0:
        fail(output)
    report = json.loads(out.read_text())
    if report["run"]["pool_in_use"] != report["run"]["pool_idle"]:
        fail("packets are missing from the pool")
    return sum(port["rx_packets"] for port in report["ports"]) / cpu_s


def compare(peer, ours):
    """Best of several rounds in turn: other work on a machine only ever takes time."""
    theirs_best = ours_best = 0
    for _ in range(ROUNDS):
        theirs_best = max(theirs_best, peer())
        ours_best = max(ours_best, ours())
    return {"peer": theirs_best, "ours": ours_best, "ratio": ours_best / theirs_best}


def main():
    build, out = sys.argv[1], sys.argv[2]
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
            ports = ["net_null: {packet_bytes: 64}"] * 2
            results["two shards against one, net_null, inspect"] = compare(
                lambda: rocebox(build, folder, "a <-> inspect <-> z", ports, core, seconds),
                lambda: rocebox(build, folder, "a <-> inspect <-> z", ports, f"{cpus[-2]},{core}", seconds))
    pathlib.Path(out).write_text(json.dumps(results, indent=1))
    failed = 0
    for name, result in results.items():
        bound = next(bound for words, bound in BOUNDS.items() if name.startswith(words))
        failed += result["ratio"] < bound
        print(f"{name:64s} {result['peer'] / 1e6:7.2f} Mpps {result['ours'] / 1e6:7.2f} Mpps  {result['ratio']:.2f} x  "
              f"(>= {bound}) {'pass' if result['ratio'] >= bound else 'FAIL'}")
    sys.exit(1 if failed else 0)


main()
