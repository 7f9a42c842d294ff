# SPDX-License-Identifier: BSD-3-Clause
"""Whether what switch_speed.py measures does what it is to do: `forward` and its SWX twin against RFC 1812 packet by packet, and
each half of Themis on the captures that it is measured with."""
import collections
import json
import os
import pathlib
import struct
import subprocess

import forwarders
import swx
import switch_bed as bed

ORDINARY = 512  # packets of the capture beside the odd ones
PACKETS = 8192


def require(condition, what):
    if not condition:
        forwarders.fail(what)


def replay(build, folder, device, inputs):
    """The report of `device` on `inputs`, {port: capture}."""
    config, out = pathlib.Path(folder) / "check.yaml", pathlib.Path(folder) / "check.json"
    config.write_text(bed.replay_config(device, inputs, folder))
    result = subprocess.run([f"{build}/rocebox", "replay", str(config), "--json", str(out)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    require(result.returncode == 0, result.stdout)
    return json.loads(out.read_text())


def counters(report):
    return report["devices"]["tor"]["kernels"]["switch"]["counters"]


def odd_frames(frame):
    """What a router must drop, or has to think about, from a packet that it routes."""
    def with_header(header):
        return frame[:14] + header[:10] + struct.pack("!H", bed.checksum(header)) + header[12:] + frame[34:]
    header = frame[14:34]
    yield b"\x02\0\0\0\0\x77" + frame[6:]  # to another MAC address
    yield frame[:24] + bytes([frame[24] ^ 1]) + frame[25:]  # its checksum is wrong
    for ttl in 0, 1, 2, 255:
        yield with_header(header[:8] + bytes([ttl]) + header[9:])
    yield with_header(header[:16] + bytes([11, 0, 0, 1]))  # no route
    yield with_header(header[:16] + bytes([10, 0, 0, 1]))  # the other route
    yield with_header(header[:9] + b"\x06" + header[10:])  # not UDP
    yield frame[:36] + b"\0\x35" + frame[38:]  # not RoCE
    yield frame[:12] + b"\x08\x06" + frame[14:]  # not IPv4
    for number in range(1 << 8):  # checksums of all kinds, next to where one's complement turns over too
        yield with_header(header[:4] + struct.pack("!H", number * 257) + header[6:])


def judge(name, frames, side, outputs):
    """`outputs`: what left each port. Every packet as the oracle has it, each flow on one port, all paths in use."""
    expected, left, port_of, used = collections.Counter(), collections.Counter(), {}, set()
    for frame in frames:
        verdict = bed.routed(frame, side)
        if verdict:
            expected[verdict[1]] += 1
    allowed = {prefix: ports for prefix, _, ports in bed.routes(side)}
    for port, out in outputs.items():
        mac = bytes.fromhex(bed.neighbour(port).replace(":", ""))
        for frame in out:
            require(frame[:6] == mac, f"{name}: a packet left port {port} to another neighbour")
            left[frame[6:]] += 1
            network = ".".join(map(str, frame[30:33])) + ".0"
            require(port in allowed[network], f"{name}: a packet to {network} left port {port}")
            flow = frame[23:24] + frame[26:38]
            require(port_of.setdefault(flow, port) == port, f"{name}: a flow's packets left two ports")
            used.add(port)
    require(left == expected, f"{name}: {sum((expected - left).values())} packets are missing or wrong, "
                              f"{sum((left - expected).values())} should not be there")
    require(used >= set(allowed["10.0.1.0"]), f"{name}: only ports {sorted(used)} are used")


def forwarding(build, folder, capture, side, program, core):
    """`forward` in replay, and SWX with `program` on the same packets."""
    frames = bed.read_capture(capture)[:ORDINARY]
    frames += odd_frames(frames[0])
    mixed = f"{folder}/mixed.pcap"
    bed.write_capture(mixed, frames)
    replay(build, folder, bed.switch(side), {"a": mixed})
    judge("rocebox", frames, side, {port: bed.read_capture(f"{folder}/{port}.pcap") for port in bed.PORTS})
    vdevs = [f"net_pcap{i},{f'rx_pcap={mixed},' if i == 0 else ''}tx_pcap={folder}/{port}.pcap" for i, port in enumerate(bed.PORTS)]
    _, counted = swx.run(build, program, folder, swx_tables(side), vdevs, core, 1, PACKETS)
    require(counted["rx_packets"] == len(frames), f"SWX received {counted['rx_packets']} of {len(frames)} packets")
    judge("SWX", frames, side, {port: bed.read_capture(f"{folder}/{port}.pcap") for port in bed.PORTS})
    return len(frames)


def swx_tables(side):
    return swx.tables([(prefix, length, [(bed.PORTS.index(port), bed.neighbour(port)) for port in ports])
                       for prefix, length, ports in bed.routes(side)], bed.ROUTER_MAC)


def themis(build, folder, captures, qps):
    """The captures of `qps` QPs in the folder `captures`, two rounds of each: the sender's half sprays every packet but each QP's
    first, which makes its state, and takes none for sent again; the receiver's half then knows of a packet that it had, and so keeps
    back every NACK for it."""
    requests = bed.read_capture(f"{captures}/to_fabric.pcap")
    twice = f"{folder}/twice.pcap"
    bed.write_capture(twice, requests * 2)
    count = counters(replay(build, folder, bed.switch("to_fabric", f"{captures}/to_fabric.yaml"), {"a": twice}))
    require(count["sprayed"] >= 2 * len(requests) - qps and count["rerouted_again"] == 0,
            f"Themis-S sprayed {count['sprayed']} of {2 * len(requests)} packets, {count['rerouted_again']} as sent again")
    end = bed.write_capture(twice, bed.read_capture(f"{captures}/to_host.pcap") * 2)
    nacks = f"{folder}/nacks.pcap"
    bed.write_capture(nacks, bed.read_capture(f"{captures}/nacks.pcap"), end)
    count = counters(replay(build, folder, bed.switch("to_host", f"{captures}/to_host.yaml"), {"a": twice, "b": nacks}))
    require(count["drop_nack_invalid"] == qps and count["qps_begun_anew"] == 0,
            f"Themis-D kept back {count['drop_nack_invalid']} NACKs of {qps}, {count['qps_begun_anew']} QPs began anew")
    for port in bed.PORTS:
        os.unlink(f"{folder}/{port}.pcap")
