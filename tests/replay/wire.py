# SPDX-License-Identifier: BSD-3-Clause
"""Small reader of pcap files and parser of RoCEv2 frames, written from the wire formats alone."""
import socket
import struct
import zlib

ROCE_PORT = 4791
ETHERNET, NETANALYZER = 1, 240
MAGICS = {  # first four bytes -> (byte order of struct, nanoseconds for each unit of the fraction)
    b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}
VLAN_TYPES = (0x8100, 0x88a8, 0x9100)
IPV6_EXTENSIONS = (0, 43, 60)  # hop-by-hop, routing, destination options
RC, UC, RD, UD = 0, 1, 2, 3
CNP = 0x81
# operations: the low five bits of the opcode
FIRST_OPS = {0x00, 0x06}
MIDDLE_OPS = {0x01, 0x07}
LAST_OPS = {0x02, 0x03, 0x08, 0x09, 0x16}
ONLY_OPS = {0x04, 0x05, 0x0a, 0x0b, 0x17}
READ_REQUEST, ACKNOWLEDGE, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = 0x0c, 0x11, 0x12, 0x13, 0x14
READ_RESPONSES = {0x0d, 0x0e, 0x0f, 0x10}
READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 0x0d, 0x0e, 0x0f, 0x10
REQUEST_OPS = FIRST_OPS | MIDDLE_OPS | LAST_OPS | ONLY_OPS | {READ_REQUEST, CMP_SWAP, FETCH_ADD}
AETH_OPS = {READ_FIRST, READ_LAST, READ_ONLY, ACKNOWLEDGE, ATOMIC_ACK}
RETH_OPS = {0x06, 0x0a, 0x0b, READ_REQUEST}
IMM_OPS = {0x03, 0x05, 0x09, 0x0b}
INVALIDATE_OPS = {0x16, 0x17}
ACK_KIND, RNR_KIND, NAK_KIND = 0, 1, 3


class FormatError(ValueError):
    """The file is no pcap file of a kind that is read here."""


def read_pcap(path):
    """Return (list of (time in ns, original length, bytes of the frame), cut): cut tells of a torn last record."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return read_pcapng(data)
    if data[:4] not in MAGICS or len(data) < 24:
        raise FormatError("not a pcap file")
    order, unit = MAGICS[data[:4]]
    link = struct.unpack_from(order + "I", data, 20)[0] & 0x0fffffff
    if link not in (ETHERNET, NETANALYZER):
        raise FormatError("link type %d" % link)
    records, at = [], 24
    while at + 16 <= len(data):
        seconds, fraction, stored, original = struct.unpack_from(order + "4I", data, at)
        frame = data[at + 16:at + 16 + stored]
        if len(frame) < stored:
            break
        at += 16 + stored
        records.append((seconds * 10**9 + fraction * unit,) + strip(link, original, frame))
    return records, at != len(data)


def strip(link, original, frame):
    """Return (length, bytes) of the Ethernet frame; NETANALYZER has four bytes in front and the FCS behind."""
    return (original - 8, frame[4:original - 4]) if link == NETANALYZER else (original, frame)


def read_pcapng(data):
    """read_pcap() for pcapng: little-endian or big-endian sections, enhanced packet blocks, power-of-ten units."""
    order, at, records, links = "<", 0, [], []
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":  # section header
            order, links = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">", []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or at + length > len(data):
            break
        if kind == 1:  # interface description
            link, unit, option = struct.unpack_from(order + "H", data, at + 8)[0], 1000, at + 16
            while option + 4 <= at + length - 4:
                code, size = struct.unpack_from(order + "HH", data, option)
                unit = 10 ** (9 - data[option + 4]) if code == 9 else unit
                option += 4 + (size + 3) // 4 * 4
            if link not in (ETHERNET, NETANALYZER):
                raise FormatError("link type %d" % link)
            links.append((link, unit))
        if kind == 6:  # enhanced packet
            port, high, low, stored, original = struct.unpack_from(order + "5I", data, at + 8)
            frame = data[at + 28:at + 28 + stored]
            records.append(((high << 32 | low) * links[port][1],) + strip(links[port][0], original, frame))
        at += length
    return records, at != len(data)


def find_ip(frame):
    """Return (offset of the IP header, ethertype) behind any VLAN tags."""
    at = 12
    kind = struct.unpack_from(">H", frame, at)[0]
    while kind in VLAN_TYPES:
        at += 4
        kind = struct.unpack_from(">H", frame, at)[0]
    return at + 2, kind


def find_udp(frame):
    """Return (offset of IP, offset of UDP, end of the IP packet, version), or None when it is not UDP over IP."""
    ip, kind = find_ip(frame)
    if kind == 0x0800 and frame[ip] >> 4 == 4 and frame[ip + 9] == 17:
        if struct.unpack_from(">H", frame, ip + 6)[0] & 0x3fff:  # a fragment
            return None
        return ip, ip + 4 * (frame[ip] & 15), ip + struct.unpack_from(">H", frame, ip + 2)[0], 4
    if kind == 0x86dd and frame[ip] >> 4 == 6:
        end = ip + 40 + struct.unpack_from(">H", frame, ip + 4)[0]
        kind, at = frame[ip + 6], ip + 40
        while kind in IPV6_EXTENSIONS:
            kind, at = frame[at], at + 8 * (frame[at + 1] + 1)
        if kind == 17:
            return ip, at, end, 6
    return None


def icrc(frame):
    """The four ICRC bytes that the frame should end with (before Ethernet padding); the frame must be whole."""
    ip, udp, end, version = find_udp(frame)
    head, rest = bytearray(frame[ip:udp]), bytearray(frame[udp:end - 4])
    if version == 4:
        head[1] = head[8] = head[10] = head[11] = 0xff  # TOS, TTL, checksum
    else:
        head[0:4] = bytes([head[0] | 0x0f, 0xff, 0xff, 0xff])  # traffic class, flow label
        head[7] = 0xff  # hop limit
    rest[6] = rest[7] = rest[8 + 4] = 0xff  # UDP checksum; FECN, BECN, reserved of the BTH
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(head) + bytes(rest)))


def parse(frame):
    """Return a dict of the fields of a RoCEv2 frame, or None when it is something else or cut in its headers."""
    try:
        return parse_whole(frame)
    except (IndexError, struct.error):
        return None


def parse_whole(frame):
    """parse() without the guard against cut headers."""
    found = find_udp(frame)
    if not found:
        return None
    ip, udp, end, version = found
    if struct.unpack_from(">H", frame, udp + 2)[0] != ROCE_PORT or len(frame) < udp + 20:
        return None
    at = udp + 8
    opcode, flags, pkey, qpn, psn = struct.unpack_from(">BBHII", frame, at)
    packet = {"version": version, "opcode": opcode, "service": opcode >> 5, "op": opcode & 31, "qpn": qpn & 0xffffff,
              "psn": psn & 0xffffff, "ackreq": psn >> 31, "pad": flags >> 4 & 3, "pkey": pkey,
              "solicited": flags >> 7, "becn": qpn >> 30 & 1, "fecn": qpn >> 31}
    if version == 4:
        packet.update(src=frame[ip + 12:ip + 16], dst=frame[ip + 16:ip + 20], ecn=frame[ip + 1] & 3,
                      id=struct.unpack_from(">H", frame, ip + 4)[0])
    else:
        packet.update(src=frame[ip + 8:ip + 24], dst=frame[ip + 24:ip + 40], ecn=frame[ip + 1] >> 4 & 3, id=None)
    at += 12
    service, op = packet["service"], packet["op"]
    if opcode == CNP:
        packet["payload"] = 0
    else:
        if service == UD:
            packet["src_qpn"] = struct.unpack_from(">I", frame, at + 4)[0] & 0xffffff
            at += 8
        if op in RETH_OPS and service != UD:
            packet["va"], packet["rkey"], packet["dma_length"] = struct.unpack_from(">QII", frame, at)
            at += 16
        if op in (CMP_SWAP, FETCH_ADD):
            at += 28
        if op in AETH_OPS:
            word = struct.unpack_from(">I", frame, at)[0]
            packet["aeth"] = {"kind": word >> 29 & 3, "value": word >> 24 & 31, "msn": word & 0xffffff}
            at += 4
        if op == ATOMIC_ACK:
            at += 8
        if op in IMM_OPS:
            packet["imm"] = struct.unpack_from(">I", frame, at)[0]
            at += 4
        if op in INVALIDATE_OPS:
            at += 4
        packet["payload"] = max(0, end - at - packet["pad"] - 4)
    packet["icrc_ok"] = frame[end - 4:end] == icrc(frame) if len(frame) >= end else None
    return packet


def text_address(raw):
    """Textual form of an address, as inet_ntop writes it."""
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
