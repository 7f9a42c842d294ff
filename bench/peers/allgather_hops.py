#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packet-hops a second of a multicast Allgather in virtual time, replicas included: 188 nodes, 64 KiB a rank, headers alone.

usage: allgather_hops.py BUILD_FOLDER [ROUNDS]

A hop is a packet that a switch or NIC receives. Best of so many rounds; a run of one byte a rank is taken off, which is what it takes to
start.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

CONFIG = """topology:
  leaf_spine: {leaves: 12, spines: 6, hosts: 188, wires_per_spine: 3, host_rate: 56Gbps, spine_rate: 56Gbps}
  multicast: [{group: 239.1.0.0}]
  hosts: {nic: {header_only: true}}
  switches: {switch: {traffic_manager: {buffer: 64MiB, alpha: 16}}}
workloads: {gather: {type: multicast_allgather, size: %s, alpha: 20ms}}
"""


def run(rocebox, size, folder):
    """(seconds, packet-hops)"""
    config, out = folder / "a.yaml", folder / "a.json"
    config.write_text(CONFIG % size)
    start = time.perf_counter()
    subprocess.run([rocebox, "sim", config, "--quiet", "--full", "--json", out], check=True)
    took = time.perf_counter() - start
    report = json.loads(out.read_text())
    details = report["workloads"]["gather"]["details"]
    if details["released_whole"] != 188 or details["fetch_reads"]:
        sys.exit("it lost something")
    switches = sum(tier["rx_packets"] for tier in report["tiers"].values())
    nics = sum(kernel["counters"].get("rx_roce_packets", 0) for device in report["devices"].values() for kernel in device["kernels"].values())
    return took, switches + nics


def main():
    build, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rocebox = next(path.resolve() for path in (build / "rocebox", build / "runtime/cli/rocebox") if path.is_file())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        start, few = min(run(rocebox, "1B", folder) for _ in range(rounds))
        took, hops = min(run(rocebox, "64KiB", folder) for _ in range(rounds))
    print(f"{hops} packet-hops in {took - start:.2f} s beside the start's {start:.2f} s: {(hops - few) / (took - start) / 1e6:.2f} million a second")


if __name__ == "__main__":
    main()
