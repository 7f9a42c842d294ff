#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two NICs in two network namespaces, joined by a veth pair, one core each: write_bw at 4096 B beside what dpdk-testpmd passes in `io`
mode between veth ports of its own, and write_lat. usage: nic_live.py BUILD_FOLDER [SECONDS]      needs root and two cores
testpmd forwards frames as long as the WRITEs' from one veth to another, on the same core as the NIC that receives; another testpmd on
the other core sends them. Everything is in namespaces that end with this process. All are polling, so the share of its core that a
worker had is what the machine left it: rates are of that time. Exit status: 0 the bound holds, 1 it does not, 2 not measured."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import forwarders
from forwarders import fail

ROUNDS = 3
BOUND = 0.5
SIZE = 4096
FRAME = 14 + 20 + 8 + 12 + 16 + SIZE + 4  # Ethernet, IPv4, UDP, BTH, RETH, payload, ICRC
MTU = 5000
CLONE_NEWNET = 0x40000000
RING = "framesz=8192,blocksz=65536,framecnt=1024,qpairs=1"
NAMES = ("t_min", "t_typical", "t_p99", "t_p999", "t_max")


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def other_namespace():
    """A second namespace: the id of a process in it."""
    own = os.readlink("/proc/self/ns/net")
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
            if holder.poll() is not None:
                fail("no second network namespace can be made")
            time.sleep(0.01)
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def inside(pid, words):
    return ["nsenter", f"--net=/proc/{pid}/ns/net", *words]


class Run:
    """A rocebox run, and the share of its core that its worker had."""

    def __init__(self, build, folder, name, config, core, prefix=()):
        self.out = pathlib.Path(folder) / f"{name}.json"
        path = pathlib.Path(folder) / f"{name}.yaml"
        path.write_text(config)
        self.process = subprocess.Popen([*prefix, f"{build}/rocebox", "run", str(path), "--cores", core, "--json", str(self.out)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = []
        self.is_up = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.samples = []

    def read(self):
        for line in self.process.stderr:
            self.said.append(line)
            if "port(s)" in line:
                self.is_up.set()
        self.is_up.set()

    def sample(self):
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*"):
            with contextlib.suppress(OSError, ValueError):
                if (task / "comm").read_text().startswith("rte-worker"):
                    self.samples.append((time.monotonic(), int((task / "schedstat").read_text().split()[0]) * 1e-9))

    def share(self):
        if len(self.samples) < 2:
            fail("a run ended before it was looked at: " + "".join(self.said)[-500:])
        (first, before), (last, after) = self.samples[0], self.samples[-1]
        return (after - before) / (last - first)

    def end(self):
        self.reader.join()
        if self.process.wait() != 0:
            fail("".join(self.said)[-1000:])
        return json.loads(self.out.read_text())["workloads"]["test"]["details"]


def nics(build, folder, other, cores, workload):
    """Runs `workload` between both NICs; the client's report, and what is the larger share of their cores."""
    def config(own, port, options):
        return (f"devices: {{nic: {{nic: {{address: 10.90.0.{own}}}}}}}\nports: {{wire: {{af_packet: {port}}}}}\n"
                f"workloads: {{test: {{hosts: [nic], {options}}}}}\nlive: {{idle: poll}}\npool: {{small: 4096, large: 4096}}\n")
    kind, words = workload
    server = Run(build, folder, "server", config(2, "nic1", f"type: {kind}, size: {words['size']}"), cores[1], inside(other, []))
    client = None
    try:
        server.is_up.wait(20)
        options = ", ".join(f"{name}: {value}" for name, value in words.items())
        client = Run(build, folder, "client", config(1, "nic0", f"type: {kind}, address: 10.90.0.2, {options}"), cores[0])
        client.is_up.wait(20)
        end = time.monotonic() + 60
        while client.process.poll() is None and time.monotonic() < end:
            client.sample(), server.sample()
            time.sleep(forwarders.SAMPLE_S)
        report = client.end()
        server.end()
    finally:
        for run in (client, server):
            if run and run.process.poll() is None:
                run.process.terminate()
    if report["error"]:
        fail(f"{kind}: {report['error']}")
    return report, max(client.share(), server.share())


def write_bw(build, folder, other, cores, seconds):
    """WRITEs a second, each of which is a packet."""
    report, share = nics(build, folder, other, cores, ("write_bw", {"size": SIZE, "duration": f"{seconds}s", "tx_depth": 256}))
    return report["messages_per_second"] / share


def testpmd(other, cores, seconds):
    """Packets a second that one core passes from one veth to another."""
    memory = ["--no-huge", "-m", "256", "--no-pci", "--file-prefix", f"rbgen{os.getpid()}"]
    with forwarders.eal_folder() as place:
        sender = subprocess.Popen(
            inside(other, ["dpdk-testpmd", "-l", f"{cores[1]},{cores[0]}", *memory, "--vdev", f"net_af_packet0,iface=gen0,{RING}", "--",
                           "--forward-mode=txonly", "--nb-cores=1", "--auto-start", "--stats-period", "1", "--mbuf-size=8320",
                           "--total-num-mbufs=4096", f"--txpkts={FRAME}", "--no-mlockall"]),
            env={**os.environ, **place}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            return forwarders.testpmd("io", [f"net_af_packet{i},iface=fwd{i},{RING}" for i in (0, 1)], cores[1], seconds, 4096,
                                      ["--mbuf-size=8320"])
        finally:
            sender.terminate()
            sender.wait()


def soft_roce(other, cores, seconds):
    """WRITEs a second of Linux's Soft-RoCE between both namespaces by ib_write_bw, whose processes have the cores of the NICs; and why
    there are none, where there are none. Kernels whose Soft-RoCE receives in the first namespace alone end in the latter."""
    def run(words, **more):
        return subprocess.run(words, capture_output=True, text=True, **more)
    for program in ("modprobe", "rdma", "ib_write_bw"):
        if not shutil.which(program):
            return None, f"there is no `{program}`"
    if (done := run(["modprobe", "rdma_rxe"])).returncode:
        return None, "this kernel does not have it: " + done.stderr.strip().replace("\n", "; ")
    devices = [f"rbx{os.getpid()}{end}" for end in "ab"]
    places = [[], inside(other, [])]
    try:
        for end, (device, place) in enumerate(zip(devices, places)):
            for words in (["ip", "addr", "add", f"10.91.0.{end + 1}/24", "dev", f"rxe{end}"],
                          ["rdma", "link", "add", device, "type", "rxe", "netdev", f"rxe{end}"]):
                if (done := run([*place, *words])).returncode:
                    return None, f"`{' '.join(words)}`: {done.stderr.strip()}"
        words = [["taskset", "-c", core, "ib_write_bw", "-d", device, "-R", "-F", "-s", str(SIZE), "-m", str(SIZE), "-D", str(seconds)]
                 for core, device in zip(cores, devices)]
        server = subprocess.Popen([*places[1], *words[1]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            done = run([*words[0], "10.91.0.2"], timeout=4 * seconds + 20)
        except subprocess.TimeoutExpired:
            return None, "ib_write_bw does not come to an end"
        finally:
            server.kill()
            server.wait()
        row = re.search(rf"^ *{SIZE}( +[\d.]+)+$", done.stdout, re.M)
        if done.returncode or not row:
            return None, "ib_write_bw: " + (done.stderr or done.stdout).strip().split("\n")[-1]
        return float(row.group().split()[-1]) * 1e6, None
    finally:
        for device, place in zip(devices, places):
            run([*place, "rdma", "link", "delete", device])


def main():
    if not 2 <= len(sys.argv) <= 3:
        fail(__doc__.split("\n")[2])
    build = str(pathlib.Path(sys.argv[1]).resolve())
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cores = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))][-2:]
    if len(cores) < 2:
        fail("two cores are needed")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        fail("no network namespace can be made: " + os.strerror(ctypes.get_errno()))
    with tempfile.TemporaryDirectory(prefix="rocebox-nic-") as folder, other_namespace() as other:
        # nic0 - nic1: the NICs; gen0 - fwd0, fwd1 - end0: testpmd's; rxe0 - rxe1: Soft-RoCE's.
        for here, there in (("nic0", "nic1"), ("fwd0", "gen0"), ("fwd1", "end0"), ("rxe0", "rxe1")):
            ip("link", "add", here, "mtu", str(MTU), "type", "veth", "peer", "name", there, "mtu", str(MTU))
            ip("link", "set", there, "netns", str(other))
            ip("link", "set", here, "up")
            done = subprocess.run(inside(other, ["ip", "link", "set", there, "up"]), capture_output=True, text=True)
            if done.returncode:
                fail(done.stderr)
        theirs = ours = 0.0
        for _ in range(ROUNDS):  # in turn, the best: other work on a machine only ever takes time
            theirs = max(theirs, testpmd(other, cores, seconds))
            ours = max(ours, write_bw(build, folder, other, cores, seconds))
        softs, why_not = soft_roce(other, cores, seconds)
        latency, _ = nics(build, folder, other, cores, ("write_lat", {"size": 64, "iters": 20000}))
    ratio = ours / theirs
    print(f"{f'dpdk-testpmd io, veth to veth, {FRAME} B':64s} {theirs / 1e3:9.1f} kpps")
    print(f"{f'write_bw between two NICs, {SIZE} B, its data packets':64s} {ours / 1e3:9.1f} kpps  {ratio:.2f} x  (>= {BOUND}) "
          f"{'pass' if ratio >= BOUND else 'FAIL'}")
    if softs:
        print(f"{f'ib_write_bw between two rdma_rxe, {SIZE} B, its data packets':64s} {softs / 1e3:9.1f} kpps  {ours / softs:.2f} x")
    else:
        print("rdma_rxe: not measured: " + why_not)
    print("write_lat, 64 B, half of there and back: " + ", ".join(f"{name[2:]} {latency[name + '_ns'] / 1000:.1f}" for name in NAMES) + " us")
    sys.exit(0 if ratio >= BOUND else 1)


main()
