#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether new QPs cost packets: the shipped bump, configs/live/bump.yaml, while 10,000 QPs begin at 12,000 packets a second.
usage: new_flows.py BUILD_FOLDER [QPS [PACKETS_PER_SECOND]]      needs root
The packets are WRITEs, the first of each QP one behind the other and then a second and a third. A Linux bridge in the bump's
place tells what this machine's veth and its other work lose by themselves. Everything stands in a network namespace of its
own, which ends with this process. Exit status: 0 nothing was lost, 1 something was, 2 it could not be measured."""
import ctypes
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import zlib

CLONE_NEWNET = 0x40000000
ROUNDS, PAYLOAD = 3, 1024
MAC = bytes.fromhex("020000000002020000000001")


def fail(why):
    print(f"new_flows: {why}", file=sys.stderr)
    sys.exit(2)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"ip {' '.join(words)}: {done.stderr.strip()}")


def frame(qp, psn):
    """An RDMA WRITE ONLY with its ICRC, which is over the packet with what routers change set to ones."""
    bth = struct.pack(">BBHII", 0x0A, 0x40, 0xFFFF, qp, psn)
    reth = struct.pack(">QII", qp << 20, qp, PAYLOAD)
    rest = bth + reth + bytes(PAYLOAD)
    udp = struct.pack(">HHHH", 0xC000 | (qp & 0x3FFF), 4791, 8 + len(rest) + 4, 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(rest) + 4, psn, 0x4000, 64, 17, 0,
                       bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    masked = (b"\xff" * 8 + head[:1] + b"\xff" + head[2:8] + b"\xff" + head[9:10] + b"\xff\xff" + head[12:] +
              udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + reth + bytes(PAYLOAD))
    icrc = struct.pack("<I", zlib.crc32(masked))
    return MAC + b"\x08\x00" + head[:10] + struct.pack(">H", checksum) + head[12:] + udp + rest + icrc


def counter(interface, name):
    """Packets that an interface of this namespace has sent or received."""
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        words = line.replace(":", " ").split()
        if words[0] == interface:
            return int(words[{"rx_packets": 2, "tx_packets": 10}[name]])
    fail(f"{interface} is gone")


def silence(interface):
    """Nothing is to come but what is sent here."""
    switch = pathlib.Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if switch.exists():
        switch.write_text("1")


def send(frames, rate):
    """Sends at this rate; returns what the interface took, and how late the worst packet was."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind(("peer0", 0))
    before, late, start = counter("peer0", "tx_packets"), 0.0, time.perf_counter()
    for number, each in enumerate(frames):
        due = start + number / rate
        while time.perf_counter() < due:
            pass
        late = max(late, time.perf_counter() - due)
        wire.send(each)
    return counter("peer0", "tx_packets") - before, time.perf_counter() - start, late


def arrived(count):
    """Packets at the far end, once all have come or nothing comes any more."""
    seen, quiet = -1, 0
    while quiet < 10:
        now = counter("peer1", "rx_packets")
        if now >= count:
            return now
        quiet = quiet + 1 if now == seen else 0
        seen = now
        time.sleep(0.1)
    return seen


def bridge(frames, rate):
    ip("link", "add", "name", "br0", "type", "bridge", "forward_delay", "0")
    for end in ("eth0", "eth1"):
        ip("link", "set", end, "master", "br0")
    silence("br0")
    ip("link", "set", "br0", "up")
    before = counter("peer1", "rx_packets")
    sent, _, _ = send(frames, rate)
    lost = sent - (arrived(before + sent) - before)
    ip("link", "del", "br0")
    return sent, lost


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def bump(build, frames, rate):
    config = pathlib.Path(__file__).resolve().parent.parent.parent / "configs" / "live" / "bump.yaml"
    begun = time.perf_counter()
    run = subprocess.Popen([f"{build}/rocebox", "run", str(config), "--json", "-"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    said = run.stderr.readline()
    if "port(s)" not in said:
        fail(said + run.stderr.read())
    started, at_start = time.perf_counter() - begun, resident_kib(run.pid)
    before = counter("peer1", "rx_packets")
    sent, seconds, late = send(frames, rate)
    came = arrived(before + sent) - before
    grown = resident_kib(run.pid) - at_start
    run.terminate()
    out, error = run.communicate(timeout=60)
    if run.returncode != 0:
        fail(error)
    report = json.loads(out)
    missed = sum(port["rx_missed"] for port in report["ports"])
    flows = report["devices"]["bump"]["kernels"]["inspect"]["counters"]
    return {"sent": sent, "lost": sent - came, "rx_missed": missed, "seconds": seconds, "late_us": late * 1e6,
            "flows": flows["flows"], "flows_full": flows["flows_full"], "bad": flows["rx_icrc_encapsulated"],
            "start_s": started, "resident_start_kib": at_start, "grown_kib": grown}


def main():
    if len(sys.argv) < 2:
        fail("usage: new_flows.py BUILD_FOLDER [QPS [PACKETS_PER_SECOND]]")
    build = sys.argv[1]
    qps = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 12_000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        fail("no network namespace can be made: " + os.strerror(ctypes.get_errno()))
    for number in (0, 1):
        ip("link", "add", f"peer{number}", "type", "veth", "peer", "name", f"eth{number}")
        for end in (f"peer{number}", f"eth{number}"):
            silence(end)
            ip("link", "set", end, "up")
    frames = [frame(0x100 + qp, 100 + psn) for psn in range(ROUNDS) for qp in range(qps)]
    by_bridge = bridge(frames, rate)
    got = bump(build, frames, rate)
    print(f"{qps} new QPs, {len(frames)} packets at {rate:.0f} a second, took {got['seconds']:.2f} s, the worst "
          f"{got['late_us']:.0f} us late")
    print(f"Linux bridge: {by_bridge[1]} of {by_bridge[0]} lost")
    print(f"configs/live/bump.yaml: {got['lost']} of {got['sent']} lost, rx_missed {got['rx_missed']}; {got['flows']} flows "
          f"remembered, {got['flows_full']} packets of more, {got['bad']} bad ICRCs; {got['start_s']:.2f} s to start; "
          f"resident {got['resident_start_kib']} KiB, {got['grown_kib'] / max(got['flows'], 1):.1f} KiB more for each flow")
    if got["bad"] or got["flows"] == 0:
        fail("the packets were not what they were to be")
    sys.exit(0 if got["lost"] == 0 and got["rx_missed"] == 0 and got["sent"] == len(frames) else 1)


main()
