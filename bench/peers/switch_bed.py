# SPDX-License-Identifier: BSD-3-Clause
"""The switch that is measured, as configuration: ports a to e, of which packets come in by a; captures, and what a switch must have
done with one. (make_switch_capture makes the captures.)"""
import pathlib
import struct

ROUTER_MAC = "02:00:00:00:00:02"
PORTS = "abcde"
PATHS = "bcde"
NANOSECOND_MAGIC, MICROSECOND_MAGIC = 0xA1B23C4D, 0xA1B2C3D4


def neighbour(port):
    """The MAC address behind a port."""
    return f"02:00:00:00:10:{PORTS.index(port):02x}"


def routes(side):
    """(prefix, length, ports): to the fabric there are four equal paths, to the hosts' rack one."""
    return [("10.0.1.0", 24, PATHS if side == "to_fabric" else "b"), ("10.0.0.0", 24, "a")]


def switch(side, connections=None):
    """The device. `connections`: the file of themis' connections; without it there is `forward` alone."""
    lines = ["devices:", "  tor:", "    switch:", f"      ports: [{', '.join(PORTS)}]",
             f"      programs: [forward{', themis' if connections else ''}]", "      forward:", "        learning: false",
             "        unknown: drop_all", f"        router_mac: '{ROUTER_MAC}'", "        routes:"]
    for prefix, length, ports in routes(side):
        via = ", ".join(f"{{port: {port}, mac: '{neighbour(port)}'}}" for port in ports)
        lines.append(f"          - {{prefix: {prefix}/{length}, via: [{via}]}}")
    if connections:
        lines += ["      themis:", f"        hosts: [{'a' if side == 'to_fabric' else 'b'}]", f"        paths: {len(PATHS)}",
                  "        learning: false", "        connections:"]
        lines += ["          " + line for line in pathlib.Path(connections).read_text().splitlines()]
    return "\n".join(lines) + "\n"


def replay_config(device, inputs, folder):
    """`device` in replay: `inputs` are {port: capture}, and what leaves port p comes to folder/p.pcap."""
    ports = {port: [f"out: {folder}/{port}.pcap"] for port in PORTS}
    for port, capture in inputs.items():
        ports[port].insert(0, f"in: {capture}")
    return device + "ports:\n" + "".join(f"  tor.{port}: {{pcap: {{{', '.join(words)}}}}}\n" for port, words in ports.items())


def read_capture(path):
    """The frames of a pcap."""
    data = pathlib.Path(path).read_bytes()
    if struct.unpack_from("<I", data)[0] not in (NANOSECOND_MAGIC, MICROSECOND_MAGIC):
        raise ValueError(f"{path} is no pcap of this byte order")
    frames, at = [], 24
    while at < len(data):
        held = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + held])
        at += 16 + held
    return frames


def write_capture(path, frames, begin_ns=0, gap_ns=80):
    """A pcap with `frames` in their order, one each `gap_ns`; gives the time behind the last one."""
    at = begin_ns
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, 262144, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)
            at += gap_ns
    return at


def checksum(header):
    """Of an IPv4 header, as it must stand in it."""
    total = sum(struct.unpack("!10H", header[:10] + b"\0\0" + header[12:]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def routed(frame, side):
    """What RFC 1812 and the configuration make of a frame: (the ports that it may leave by, the frame without its destination's
    MAC address); None when it is dropped."""
    router = bytes.fromhex(ROUTER_MAC.replace(":", ""))
    if frame[:6] != router or frame[12:14] != b"\x08\0" or frame[14] != 0x45:
        return None
    header = frame[14:34]
    if struct.unpack_from("!H", header, 10)[0] != checksum(header) or header[8] < 2:
        return None
    for prefix, length, ports in routes(side):
        if header[16:16 + length // 8] == bytes(map(int, prefix.split(".")))[:length // 8]:
            header = header[:8] + bytes([header[8] - 1]) + header[9:]
            header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
            return ports, router + frame[12:14] + header + frame[34:]
    return None
