# SPDX-License-Identifier: BSD-3-Clause
"""A second decoder of LoWAR's repair packets, written from kernels/lowar/README.md alone. Frames in, frames out."""
import collections
import functools
import struct

import wire

HEADER, PREFIX, ICRC = 24, 12, 4
REPAIR, NEGOTIATION = 0x5a, 0xa5
HAS_FIRST, HAS_LAST, RESPONSES = 1, 2, 4
ANNOUNCE = 1  # the kind of a negotiation packet, where a repair packet has its ISN
MASK = (1 << 64) - 1


def mix(x):
    x ^= x >> 32
    x = x * 0x9E3779B97F4A7C15 & MASK
    x ^= x >> 29
    return x * 0xD6E8FEB86659FD93 & MASK


def lowar(frame):
    """The fields of a LoWAR packet, or None. Raises ValueError for one that is wrong."""
    found = wire.find_udp(frame)
    if not found or struct.unpack_from(">H", frame, found[1] + 2)[0] != wire.ROCE_PORT or frame[found[1] + 8] != 0x1f:
        return None
    ip, udp, end, version = found
    at = udp + 8
    word = struct.unpack_from(">IBBHB", frame, at)
    packet = {"qpn": word[0] & 0xffffff, "type": word[1], "version": word[2] >> 4, "flags": word[2] & 15, "r": word[3],
              "c": word[4], "base": int.from_bytes(frame[at + 9:at + 12], "big"), "isn": frame[at + 12],
              "sent": frame[at + 13], "packets": struct.unpack_from(">H", frame, at + 14)[0],
              "last_bytes": struct.unpack_from(">H", frame, at + 16)[0],
              "hop_sum": struct.unpack_from(">H", frame, at + 18)[0], "set_sum": struct.unpack_from(">I", frame, at + 20)[0],
              "headers": frame[:at], "ip": ip, "udp": udp, "ip_version": version, "image": frame[at + HEADER:end - ICRC]}
    if packet["version"] != 3 or packet["type"] not in (REPAIR, NEGOTIATION):
        raise ValueError("version or type")
    if packet["type"] == NEGOTIATION:
        packet["sent"] = packet["last_bytes"]
    if frame[end - ICRC:end] != wire.icrc(frame):
        raise ValueError("ICRC")
    if struct.unpack_from(">H", frame, udp + 4)[0] != end - udp or len(frame) != end:
        raise ValueError("lengths")
    return packet


def covers(packet):
    """The PSNs that a repair packet covers."""
    return [(packet["base"] + i) & 0xffffff for i in range(packet["isn"], packet["packets"], packet["c"])]


@functools.lru_cache(maxsize=8192)
def image(frame):
    """What is coded of a data packet, and its shares of the two sums."""
    ip, udp, end, version = wire.find_udp(frame)
    transport = frame[udp + 8:end]
    source_port, checksum = struct.unpack_from(">H", frame, udp)[0], struct.unpack_from(">H", frame, udp + 6)[0]
    if version == 4:
        word, ttl, tos, label = struct.unpack_from(">I", frame, ip + 4)[0], frame[ip + 8], frame[ip + 1], 0
    else:
        word = label = struct.unpack_from(">I", frame, ip)[0] & 0x0fffffff
        ttl, tos = frame[ip + 7], 0
    prefix = struct.pack(">HHIBBH", len(transport), source_port, word, ttl, tos, checksum)
    psn, icrc = int.from_bytes(transport[9:12], "big"), int.from_bytes(transport[-4:], "little")
    set_share = mix(transport[4] << 56 | psn << 32 | icrc) >> 32
    hop_share = mix(1 << 52 ^ (label << 32 | checksum << 16 | ttl << 8 | tos)) >> 48
    return prefix + transport, set_share, hop_share


def xor(a, b):
    size = max(len(a), len(b))
    a, b = a.ljust(size, b"\0"), b.ljust(size, b"\0")
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).to_bytes(size, "big")


def ipv4_checksum(header):
    total = sum(struct.unpack(">%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def with_headers(packet, transport, prefix):
    """A transport packet behind the repair packet's headers; of the prefix (a tuple as below) what is not None is put into them."""
    source_port, word, ttl, tos, checksum = prefix
    frame = bytearray(packet["headers"] + transport)
    ip, udp = packet["ip"], packet["udp"]
    struct.pack_into(">H", frame, udp, source_port)
    struct.pack_into(">H", frame, udp + 4, 8 + len(transport))
    if checksum is not None:
        struct.pack_into(">H", frame, udp + 6, checksum)
    if packet["ip_version"] == 4:
        struct.pack_into(">HI", frame, ip + 2, len(frame) - ip, word)
        if ttl is not None:
            frame[ip + 8], frame[ip + 1] = ttl, tos
        struct.pack_into(">H", frame, ip + 10, 0)
        struct.pack_into(">H", frame, ip + 10, ipv4_checksum(bytes(frame[ip:udp])))
    else:
        struct.pack_into(">H", frame, ip + 4, len(frame) - ip - 40)
        if ttl is not None:
            struct.pack_into(">I", frame, ip, 6 << 28 | word)
            frame[ip + 7] = ttl
    return bytes(frame)


def rebuild(packet, others):
    """The frame that a repair packet covers beside the frames `others`; ValueError when it does not prove right."""
    coded, set_sum, hop_sum = packet["image"], 0, 0
    for other in others:
        its, set_share, hop_share = image(other)
        coded, set_sum, hop_sum = xor(coded, its), set_sum + set_share, hop_sum + hop_share
    length, source_port, word, ttl, tos, checksum = struct.unpack_from(">HHIBBH", coded)
    if not 16 <= length <= len(coded) - PREFIX or any(coded[PREFIX + length:]):
        raise ValueError("length")
    if packet["ip_version"] == 6 and word >> 28:
        raise ValueError("version of IPv6")
    transport = coded[PREFIX:PREFIX + length]
    frame = with_headers(packet, transport, (source_port, word, ttl, tos, checksum))
    if frame[-4:] != wire.icrc(frame):
        raise ValueError("ICRC of the rebuilt packet")
    _, set_share, hop_share = image(frame)
    if (set_sum + set_share) & 0xffffffff != packet["set_sum"]:
        raise ValueError("set sum")
    if (hop_sum + hop_share) & 0xffff != packet["hop_sum"]:  # hops changed some of it: they did the same to the repair packet
        frame = with_headers(packet, transport, (source_port, word, None, None, None))
    return frame


def proves_right(packet, frame, psn):
    """What else the header says of the frame with this PSN; ValueError where it is not so."""
    its = wire.parse(frame)
    place = (psn - packet["base"]) & 0xffffff
    first, last = place == 0, place + 1 == packet["packets"]
    if its is None or (its["qpn"], its["psn"]) != (packet["qpn"], psn):
        raise ValueError("QPN or PSN")
    if its["service"] not in (wire.RC, wire.UC) or (its["op"] in wire.READ_RESPONSES) != bool(packet["flags"] & RESPONSES):
        raise ValueError("kind")
    if (its["op"] in STARTS) != (first and bool(packet["flags"] & HAS_FIRST)):
        raise ValueError("has_First")
    if (its["op"] in ENDS) != (last and bool(packet["flags"] & HAS_LAST)):
        raise ValueError("has_Last")
    ip, udp, end, _ = wire.find_udp(frame)
    if last and packet["flags"] & HAS_LAST and end - udp - 8 != packet["last_bytes"]:
        raise ValueError("last length")


ALONE = wire.ONLY_OPS | {wire.READ_REQUEST, wire.CMP_SWAP, wire.FETCH_ADD, wire.READ_ONLY}
STARTS = wire.FIRST_OPS | ALONE | {wire.READ_FIRST}
ENDS = wire.LAST_OPS | ALONE | {wire.READ_LAST}


class Decoder:
    """The far end of a link that loses packets and leaves their order. Takes coded packets and LoWAR's; `streams` has what
    goes to the host, by (source, destination, QPN, whether READ responses)."""

    def __init__(self):
        self.streams = collections.defaultdict(list)  # rows of (PSN, frame)
        self.begins = {}  # the row at which the stream's sequence begins, as the last announcement says
        self.rebuilt = 0

    def take(self, frame):
        packet, fields = lowar(frame), wire.parse(frame)
        if packet is None:
            key = fields["src"], fields["dst"], fields["qpn"], fields["op"] in wire.READ_RESPONSES
            self.streams[key].append((fields["psn"], frame))
            return
        key = fields["src"], fields["dst"], packet["qpn"], bool(packet["flags"] & RESPONSES)
        if packet["type"] == REPAIR:
            self.repair(self.streams[key], self.begins.get(key, 0), packet)
        elif packet["isn"] == ANNOUNCE:
            self.begins[key] = len(self.streams[key])

    def repair(self, rows, begin, packet):
        """The block's packets are the last ones of the stream, for its repair packets come before any other."""
        at = len(rows)
        places = {}
        while at > begin:
            place = (rows[at - 1][0] - packet["base"]) & 0xffffff
            if place >= packet["packets"] or place >= min(places, default=packet["packets"]):
                break
            at -= 1
            places[place] = rows[at][1]
        share = range(packet["isn"], packet["packets"], packet["c"])
        missing = [place for place in share if place not in places]
        others = [places[place] for place in share if place in places]
        if len(missing) > 1:
            return
        if not missing:
            if sum(image(frame)[1] for frame in others) & 0xffffffff != packet["set_sum"]:
                raise ValueError("set sum of packets that all came")
            return
        psn = (packet["base"] + missing[0]) & 0xffffff
        frame = rebuild(packet, others)
        proves_right(packet, frame, psn)
        rows.insert(at + sum(place < missing[0] for place in places), (psn, frame))
        self.rebuilt += 1
