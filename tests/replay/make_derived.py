#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Derived capture files: other file formats and encapsulations of the committed captures, always the same bytes.

Usage: make_derived.py OUTDIR.  Every function whose name starts with `derive_` writes OUTDIR/<name>.pcap (or .pcapng, .bin).
"""
import hashlib
import os
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import wire  # noqa: E402

CAPTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "captures")
MICRO, NANO = 0xa1b2c3d4, 0xa1b23c4d
LINUX_SLL = 113
# Attributes of the connection manager's messages, and where their communication IDs are.
REQ, REP = 0x10, 0x13
COMMUNICATION_IDS = {REQ: [0], 0x11: [0, 4], 0x12: [0, 4], REP: [0, 4], 0x14: [0, 4], 0x15: [0, 4], 0x16: [0, 4]}


def load(name):
    """The (time in ns, length, frame) records of a committed capture."""
    return wire.read_pcap(os.path.join(CAPTURES, name))[0]


def pcap(records, order="<", magic=MICRO, link=wire.ETHERNET, snap=65535):
    """The bytes of a pcap file; frames longer than `snap` are stored cut."""
    unit = 1000 if magic == MICRO else 1
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for time, _, frame in records:
        stored = frame[:snap]
        seconds, rest = divmod(time, 10**9)
        parts.append(struct.pack(order + "4I", seconds, rest // unit, len(stored), len(frame)) + stored)
    return b"".join(parts)


def change(records, function):
    """The records with every frame replaced by function(frame)."""
    return [(time, 0, function(frame)) for time, _, frame in records]


def with_icrc(frame):
    """The frame with its last four bytes replaced by the right ICRC (no Ethernet padding in these captures)."""
    return frame[:-4] + wire.icrc(frame)


def ip_checksum(header):
    """The checksum of an IPv4 header whose checksum field is 0."""
    total = sum(struct.unpack(">%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def add_options(frame):
    """Put the options NOP, NOP, NOP, EOL into an IPv4 header without options."""
    header, rest = bytearray(frame[14:34]) + bytes([1, 1, 1, 0]), frame[34:]
    header[0] += 1
    struct.pack_into(">H", header, 2, len(header) + len(rest))
    struct.pack_into(">H", header, 10, 0)
    struct.pack_into(">H", header, 10, ip_checksum(bytes(header)))
    return with_icrc(frame[:14] + bytes(header) + rest)


def add_extensions(frame):
    """Put a hop-by-hop and a destination options header, each of one PadN option, behind an IPv6 header."""
    header = bytearray(frame[14:54])
    struct.pack_into(">H", header, 4, len(frame) - 54 + 16)
    last, header[6] = header[6], 0
    padding = bytes([0, 1, 4, 0, 0, 0, 0])
    return with_icrc(frame[:14] + bytes(header) + bytes([60]) + padding + bytes([last]) + padding + frame[54:])


def congestion_notification(template, qpn):
    """A CNP to `qpn` with the addresses of the frame `template`."""
    bth = struct.pack(">BBHII", wire.CNP, 0x40, 0xffff, 0x40000000 | qpn, 0)
    header = bytearray(template[14:34])
    header[1] = 0
    struct.pack_into(">HH", header, 2, 20 + 8 + len(bth) + 16 + 4, 0)
    struct.pack_into(">H", header, 10, 0)
    struct.pack_into(">H", header, 10, ip_checksum(bytes(header)))
    udp = template[34:38] + struct.pack(">HH", 8 + len(bth) + 16 + 4, 0)
    return with_icrc(template[:14] + bytes(header) + udp + bth + bytes(16 + 4))


def derive_snapped():
    """Frames stored up to 96 bytes, so the ICRC is not there."""
    return pcap(load("rdma_cm.pcap"), snap=96)


def derive_nanoseconds():
    """Nanosecond times, with digits below the microsecond."""
    return pcap([(time + n * 7 % 1000, 0, frame) for n, (time, _, frame) in enumerate(load("rdma_cm.pcap"))], magic=NANO)


def derive_big_endian():
    """Written by a big-endian machine."""
    return pcap(load("rdma_cm.pcap"), order=">")


def derive_big_endian_nanoseconds():
    """Big-endian and nanoseconds."""
    return pcap(load("rdma_cm.pcap"), order=">", magic=NANO)


def derive_pcapng():
    """A pcapng file: section header, one interface with nanosecond times, enhanced packet blocks."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    parts = [block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)),
             block(1, struct.pack("<HHI", wire.ETHERNET, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))]
    for time, _, frame in load("rdma_cm.pcap"):
        head = struct.pack("<5I", 0, time >> 32, time & 0xffffffff, len(frame), len(frame))
        parts.append(block(6, head + frame))
    return b"".join(parts)


def derive_vlan():
    """One 802.1Q tag: priority 3, VLAN 100."""
    return pcap(change(load("rdma_cm.pcap"), lambda f: f[:12] + bytes.fromhex("81006064") + f[12:]))


def derive_qinq():
    """An 802.1ad tag (VLAN 200) and an 802.1Q tag (VLAN 100)."""
    return pcap(change(load("rdma_cm.pcap"), lambda f: f[:12] + bytes.fromhex("88a800c881006064") + f[12:]))


def derive_options():
    """IPv4 headers of 24 bytes."""
    return pcap(change(load("rdma_cm.pcap"), add_options))


def derive_extensions():
    """IPv6 with two extension headers."""
    return pcap(change(load("rc_write_ipv6.pcap"), add_extensions))


def derive_cnp():
    """A CNP 1 us after every packet marked CE, from the receiver to the sender's QP."""
    records = load("ecn_rx.pcap")
    answer = next(frame for _, _, frame in records if wire.parse(frame)["op"] == wire.ACKNOWLEDGE)
    notice = congestion_notification(answer, wire.parse(answer)["qpn"])
    result = []
    for time, length, frame in records:
        result.append((time, length, frame))
        if wire.parse(frame)["ecn"] == 3:
            result.append((time + 1000, len(notice), notice))
    return pcap(result)


def moved(record, seconds, offset):
    """The record later, with all PSNs moved by `offset`, those that the connection manager's messages name too."""
    time, length, frame = record
    packet = wire.parse(frame)
    if packet and packet["service"] == wire.RC:
        frame = frame[:50] + struct.pack(">I", packet["ackreq"] << 31 | (packet["psn"] + offset) % 2**24) + frame[54:]
    elif packet and packet["service"] == wire.UD and packet["qpn"] == 1:
        mad = 14 + 20 + 8 + 12 + 8
        attribute = struct.unpack_from(">H", frame, mad + 16)[0]
        starting_psn = {REQ: mad + 24 + 44, REP: mad + 24 + 20}.get(attribute)
        frame = bytearray(frame)
        for at in COMMUNICATION_IDS[attribute]:  # another connection
            frame[mad + 24 + at] ^= 0x55
        if starting_psn:
            word = struct.unpack_from(">I", frame, starting_psn)[0]
            struct.pack_into(">I", frame, starting_psn, ((word >> 8) + offset) % 2**24 << 8 | word & 0xff)
        frame = bytes(frame)
    return time + seconds * 10**9, length, with_icrc(frame)


def derive_psn_restart():
    """The same connection twice, the second time 100000 PSNs below."""
    records = load("rc_write.pcap")
    return pcap(records + [moved(record, 1, -100000) for record in records])


def derive_cm_restart():
    """The same connection by RDMA CM twice, the second time 100 PSNs above."""
    records = load("rdma_cm.pcap")
    return pcap(records + [moved(record, 10, 100) for record in records])


def derive_torn():
    """The last record lacks its last ten bytes."""
    return pcap(load("rdma_cm.pcap"))[:-10]


def derive_empty():
    """A file header and no packet."""
    return pcap([])


def derive_garbage():
    """4096 bytes that are no capture."""
    return b"".join(hashlib.sha256(b"rocebox %d" % n).digest() for n in range(128))


def derive_netanalyzer():
    """Link type 240: a four-byte header before each frame, the frame check sequence behind it."""
    def wrap(frame):
        length = len(frame) + 4
        header = struct.pack("<I", length << 16 | 1 << 10)  # 12 bits of length, version 1, port 0, no errors
        return header + frame + struct.pack("<I", zlib.crc32(frame))

    return pcap(change(load("rdma_cm.pcap"), wrap), link=wire.NETANALYZER)


def derive_linux_sll():
    """Link type 113 (Linux cooked), which is to be refused."""
    def wrap(frame):
        return struct.pack(">HHH8sH", 0, 1, 6, frame[6:12] + bytes(2), 0x0800) + frame[14:]

    return pcap(change(load("rdma_cm.pcap"), wrap), link=LINUX_SLL)


def main_to(out):
    """Write every derived file into the folder `out`."""
    os.makedirs(out, exist_ok=True)
    endings = {"pcapng": ".pcapng", "garbage": ".bin"}
    for title, function in sorted(globals().items()):
        if title.startswith("derive_"):
            name = title[len("derive_"):]
            with open(os.path.join(out, name + endings.get(name, ".pcap")), "wb") as file:
                file.write(function())


if __name__ == "__main__":
    main_to(sys.argv[1])
