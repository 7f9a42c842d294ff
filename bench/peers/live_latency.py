#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long a frame takes from one veth pair to another through an empty bump, and through a Linux bridge in its place.
usage: live_latency.py BUILD_FOLDER JSON_FILE [FRAMES]      needs root
Everything stands in a network namespace of its own, which ends with this process. Exit status: 0 measured, 2 it could not be."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BYTES = 1078  # RoCE MTU 1024
CLONE_NEWNET = 0x40000000
NAMES = ("p50", "p90", "p99", "p99.9", "max")


def fail(why):
    print(f"live_latency: {why}", file=sys.stderr)
    sys.exit(2)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"ip {' '.join(words)}: {done.stderr.strip()}")


def measure(build, frames, core):
    done = subprocess.run(["taskset", "-c", core, f"{build}/bench/veth_latency", "out0", "out1", str(frames), str(BYTES)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        fail(done.stderr.strip())
    return dict(zip(NAMES, map(int, done.stdout.split())))


def bump(build, folder, idle, frames, cores):
    config = pathlib.Path(folder) / "bump.yaml"
    config.write_text("devices: {bump: {path: a <-> z}}\nports: {a: {af_packet: in0}, z: {af_packet: in1}}\n"
                      f"live: {{idle: {idle}}}\n")
    run = subprocess.Popen([f"{build}/rocebox", "run", str(config), "--cores", cores[-1], "--json", "/dev/null"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = run.stderr.readline()
        if "port(s)" not in said:
            fail(said + run.stderr.read())
        return measure(build, frames, cores[0])
    finally:
        run.terminate()
        run.communicate()


def bridge(build, frames, cores):
    ip("link", "add", "name", "br0", "type", "bridge", "forward_delay", "0")
    for end in ("in0", "in1"):
        ip("link", "set", end, "master", "br0")
    ip("link", "set", "br0", "up")
    result = measure(build, frames, cores[0])
    ip("link", "del", "br0")
    return result


def main():
    if len(sys.argv) < 3:
        fail("usage: live_latency.py BUILD_FOLDER JSON_FILE [FRAMES]")
    build, out = sys.argv[1:3]
    frames = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    cores = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        fail("no network namespace can be made: " + os.strerror(ctypes.get_errno()))
    for number in (0, 1):
        ip("link", "add", f"out{number}", "type", "veth", "peer", "name", f"in{number}")
        for end in ("out", "in"):
            ip("link", "set", f"{end}{number}", "up")
    with tempfile.TemporaryDirectory(prefix="rocebox-latency-") as folder:
        results = {"Linux bridge": bridge(build, frames, cores)}
        for idle in ("poll", "pause", "interrupt"):
            results[f"empty bump, idle: {idle}"] = bump(build, folder, idle, frames, cores)
    pathlib.Path(out).write_text(json.dumps(results, indent=1))
    print(f"{'veth to veth, one frame of 1078 B at a time':44s}" + "".join(f"{name:>9s}" for name in NAMES) + "   us")
    for name, row in results.items():
        print(f"{name:44s}" + "".join(f"{row[key] / 1000:9.1f}" for key in NAMES))


main()
