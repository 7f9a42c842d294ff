#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A long run at full load: is every packet of the pool accounted for, and does memory stay as it is?
usage: live_soak.py BUILD_FOLDER [SECONDS]      (600 without it)
A core forwards RoCE traffic from `net_pcap` with `infinite_rx` through inspect and a link with delay, loss and copies.
Memory is looked at every second; the first tenth of the run, in which tables are first touched, is not judged. The link's
room for packets is small, as its ring touches every page before it comes round.
Exit status: 0 all accounted for and flat, 1 not, 2 it could not be measured."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FLOWS, FLOW_PACKETS = 64, 64
GROWTH_KIB_MAX = 256  # a page here and there: the heap's trimming, the C library's buffers


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def main():
    if len(sys.argv) < 2:
        print("usage: live_soak.py BUILD_FOLDER [SECONDS]", file=sys.stderr)
        sys.exit(2)
    build, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 600
    core = str(max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="rocebox-soak-") as folder:
        capture = f"{folder}/flows.pcap"
        subprocess.run([f"{build}/bench/make_capture", capture, str(FLOWS * FLOW_PACKETS * 1100 // 10**6 + 1), str(FLOWS)], check=True)
        config = pathlib.Path(folder) / "soak.yaml"
        config.write_text(
            "devices: {bump: {path: a <-> inspect <-> wan <-> z, kernels: {wan: {type: link, delay: 100us, loss: 1%, duplicate: 1%, packets: 4096}}}}\n"
            "ports:\n" + "".join(f'  {port}: {{devargs: "net_pcap{i},rx_pcap={capture},infinite_rx=1"}}\n'
                                 for i, port in enumerate("az")) + "live: {idle: poll}\n")
        run = subprocess.Popen([f"{build}/rocebox", "run", str(config), "--cores", core, "--duration", f"{seconds}s", "--json", "-"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = run.stderr.readline()
        samples = []
        begin = time.monotonic()
        while run.poll() is None and time.monotonic() - begin < seconds - 0.5:
            samples.append(resident_kib(run.pid))
            time.sleep(1)
        out, error = run.communicate(timeout=60)
    if run.returncode != 0 or not out:
        print(said + error, file=sys.stderr)
        sys.exit(2)
    report = json.loads(out)
    books = report["devices"]["bump"]["counters"]
    judged = samples[max(1, len(samples) // 10):]
    growth = judged[-1] - judged[0]
    missing = report["run"]["pool_in_use"] - report["run"]["pool_idle"]
    unbooked = books["packets_in"] + books["packets_made"] - books["packets_out"] - books["packets_delivered"] - books["packets_dropped"] - books["packets_held"]
    packets = sum(port["rx_packets"] for port in report["ports"])
    print(f"{report['run']['elapsed_ns'] / 1e9:.0f} s, {packets / 1e6:.0f} M packets, "
          f"{packets / report['run']['elapsed_ns'] * 1e3:.2f} Mpps, {books['packets_dropped'] / 1e6:.2f} M dropped on purpose, "
          f"{books['packets_made'] / 1e6:.2f} M copies")
    print(f"pool: {report['run']['pool_idle']} in use before the first packet, {report['run']['pool_in_use']} after the last; missing {missing}")
    print(f"books: in + made - out - dropped - held = {unbooked}")
    print(f"resident memory: {judged[0]} KiB after {len(samples) // 10} s, {judged[-1]} KiB at the end: grown by {growth} KiB "
          f"(bound {GROWTH_KIB_MAX})")
    sys.exit(0 if missing == 0 and unbooked == 0 and growth <= GROWTH_KIB_MAX else 1)


main()
