#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts seed corpora for the fuzz targets out of the captures and configurations.

usage: make_corpus.py SOURCE_FOLDER OUTPUT_FOLDER
"""
import pathlib
import shutil
import struct
import sys
from random import Random

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
import lowar_decoder  # noqa: E402: it lies in another folder
import wire  # noqa: E402

FRAMES_PER_CAPTURE = 12
KERNELS = ("inspect", "link", "lowar", "switch")  # as kernels/registry.cc has them


def frames(path):
    """The frames of a pcap file of any byte order."""
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        held = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + held]
        at += 16 + held


def some(path):
    """A few frames of each (EtherType, opcode) of a capture."""
    seen = {}
    for frame in frames(path):
        kind = (frame[12:14], frame[42:43] if frame[12:14] == b"\x08\x00" else frame[62:63])
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 2:
            yield frame
        if sum(min(count, 2) for count in seen.values()) >= FRAMES_PER_CAPTURE:
            return


def variants(frame):
    """The frame with tags, with IPv4 options, and as a fragment."""
    yield frame
    yield frame[:12] + b"\x81\x00\x00\x64" + frame[12:]
    yield frame[:12] + b"\x88\xa8\x00\xc8\x81\x00\x00\x64" + frame[12:]
    if frame[12:14] == b"\x08\x00":
        length = struct.unpack(">H", frame[16:18])[0] + 4
        yield frame[:14] + b"\x46" + frame[15:16] + struct.pack(">H", length) + frame[18:34] + b"\x01\x01\x01\x00" + frame[34:]
        yield frame[:20] + b"\x20\x00" + frame[22:]
    if frame[12:14] == b"\x86\xdd":
        length = struct.unpack(">H", frame[18:20])[0] + 8
        for kind in (0, 43, 44, 51, 60):
            yield frame[:18] + struct.pack(">HB", length, kind) + frame[21:54] + b"\x11\0\0\0\0\0\0\0" + frame[54:]


def pcap(records, order="<", magic=0xA1B23C4D, link=1):
    data = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 262144, link)
    for number, frame in enumerate(records):
        data += struct.pack(order + "IIII", 1700000000 + number, number, len(frame), len(frame) + number) + frame
    return data


def block(kind, body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(records, resolution=9):
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHI", 1, 0, 262144) + struct.pack("<HHB3xI", 9, 1, resolution, 0))
    for number, frame in enumerate(records):
        head = struct.pack("<IIIII", 0, 0x17A0000, number * 1000, len(frame), len(frame))
        data += block(6, head + frame)
    return data


def lowar_seeds(frame):
    """What a gateway gets from the link and from its host: a data packet, the next one, and LoWAR's own packets of them."""
    ip, udp, end, version = wire.find_udp(frame)
    at = udp + 8
    psn = int.from_bytes(frame[at + 9:at + 12], "big")

    def sealed(data):
        return data + wire.icrc(data + b"\0" * 4)

    def headers(behind, back=False):
        head = bytearray(frame[:at])
        struct.pack_into(">H", head, udp + 4, 8 + behind)
        struct.pack_into(">H", head, ip + (2 if version == 4 else 4), at - ip + behind - (0 if version == 4 else 40))
        if back:
            first, size = (ip + 12, 4) if version == 4 else (ip + 8, 16)
            head[first:first + size], head[first + size:first + 2 * size] = head[first + size:first + 2 * size], head[first:first + size]
        return bytes(head)

    def own(kind, fields, image=b"", coding=(8, 1), flags=0, base=psn, back=False):
        body = b"\x1f" + frame[at + 5:at + 8] + struct.pack(">BBHB", kind, 0x30 | flags, *coding)
        body += base.to_bytes(3, "big") + fields + image
        return sealed(headers(len(body) + 4, back) + body)

    one = frame[:end]
    two = sealed(one[:at + 9] + ((psn + 1) & 0xffffff).to_bytes(3, "big") + one[at + 12:-4])
    images = [lowar_decoder.image(f) for f in (one, two)]
    coded = lowar_decoder.xor(images[0][0], images[1][0])
    sums = struct.pack(">HI", sum(i[2] for i in images) & 0xffff, sum(i[1] for i in images) & 0xffffffff)
    repair = own(0x5a, struct.pack(">BBHH", 0, 0, 2, 0) + sums, coded, (2, 1))
    said = [own(0xa5, struct.pack(">BBHII", kind, 0, serial, 0, token), coding=coding, back=kind == 2)
            for kind, serial, token, coding in ((1, 0, 0, (2, 1)), (1, 0, 7, (2, 1)), (2, 1, 7, (4, 2)), (3, 1, 7, (0, 0)))]
    return [[(1, said[0]), (1, one), (1, repair)], [(1, said[1]), (1, two), (1, repair)], [(1, one), (1, repair), (1, two)],
            [(0, one), (1, said[2]), (0, two)], [(1, said[3]), (1, one), (1, two), (1, repair)], [(1, repair), (1, repair)]]


def end(coding=0, mtu=4, units=5, places=7, reorder=16, adapt=0, target=0, redundancy=1, hold=0):
    """The options of one end, as draw_config() in lowar_bed.h reads them."""
    return bytes([coding, mtu, units, places, reorder, adapt, target, redundancy, hold])


def steps(*messages):
    """The host's steps, (packets, kind), each on all three streams."""
    return bytes(24 * (packets - 1) + 3 * kind + stream for packets, kind in messages for stream in range(3))


def crossing_seeds():
    """For lowar_fuzz: each coding with three streams' messages, and a link that does one thing, now and then; ends with other
    bounds; long messages for which gateways adapt, on a link that loses some, all the time or for a while."""
    short, long = steps((8, 0), (2, 1), (4, 6), (10, 0), (3, 7), (4, 5), (9, 5), (6, 0)), steps(*[(11, 3), (4, 0)] * 3)

    def seed(first, near, far, sent, actions):
        return bytes([first]) + near + far + bytes([len(sent)]) + sent + bytes(actions)

    for coding in range(8):
        for number, action in enumerate((0, 3, 4, 5 + 16 * 3, 6, 7 + 16 * 9, 8, 9, 10, 11, 12, 13 + 16 * 2, 14 + 16 * 5, 15)):
            actions = [action if (place + coding) % (9 + number) == 0 else 0 for place in range(200)]
            yield seed(coding & 1 | (number & 1) << 1, end(coding), end(coding), short, actions)
    for size in range(6):
        sized = steps((size + 1, 4), (8, 0), (5, 6), (9, 0))
        for near, far in ((4, 0), (2, 1), (0, 4)):
            for action in (3, 11 + 16 * 7):
                yield seed(0, end(0, near), end(0, far, 3, 0, 0), sized, [action if place % 9 == 5 else 0 for place in range(80)])
    for coding in (0, 5, 7):
        for reorder in (0, 31):
            for action in (3, 5 + 16 * 6, 13 + 16 * 4, 14 + 16 * 3):
                full = end(coding, 4, 5, 0, reorder, hold=reorder % 4)
                actions = [action if place % 17 in (2, 12) else 0 for place in range(400)]
                yield seed(4, full, full, short + steps((11, 0), (7, 0), (1, 5), (8, 6)), actions)
    for target in range(4):
        for every in (4, 9, 30):
            for action in (3, 5 + 16 * 4, 13 + 16, 8):
                losing = [action if place % every == 1 else 0 for place in range(60)]
                adapting = end(0, 2, 4, 7, 8, 1, target, target & 1, target)
                yield seed(12, adapting, adapting, long, losing)
                yield seed(8, adapting, adapting, long, losing * 4)


def membership_seeds(frames):
    """For membership_fuzz: joins, leaves and queries of each kind and version with packets to groups between them; captured frames
    as they are, and with a byte changed."""
    def step(operation, port, a, b, more=b""):
        return bytes([operation, port, a, b]) + more

    for what in range(8):
        for group in (1, 9):
            yield (step(1, 1, what | 4, group) + step(3, 0, 0, group) + step(1, 2, what, group) + step(3, 0, 0, group) +
                   step(2, 0, 3, 232) + step(3, 3, 0, group) + step(1, 1, 2 | what & 1, group) + step(3, 0, 0, group))
    yield b"".join(step(1, group % 4, 4, group) + step(3, group % 3, 0, group) for group in range(6))  # more than there is room for
    for frame in frames:
        for changed in (frame, *(frame[:at] + bytes([frame[at] ^ 0x55]) + frame[at + 1:] for at in (14, 22, 34, 38, 42) if at < len(frame))):
            yield step(0, 1, len(frame) >> 8, len(frame) & 255, changed) + step(3, 0, 0, 1) + step(3, 0, 0, 9)


def nic_seeds():
    """For nic_fuzz: each setup of the NICs and several of the queue pairs, with work posted on both sides, and then one kind of
    trouble between what else goes on: forged requests, forged responses, packets changed, lost, repeated or late, and hosts that
    reset queue pairs or take memory back. Then the same with queue pairs within a NIC, in groups, or for RDMA CM, whose hosts
    connect, and whose messages are forged, too."""
    post, receive, wait, poll, fate, modify, memory, bend, more = (8, 12, 7, 13, 5, 14, 15, 4, 64)
    manage, mad, bend_mad, repeat_mad, frame, notify, meddle, queues = (more | one for one in (0, 4, 7, 8, 9, 11, 12, 14))
    across, within, groups, by_cm = range(5), range(5, 9), range(9, 12), range(12, 15)

    class Steps:
        def __init__(self, seed, pairs=(0, 0, 1, 1, 2, 3, 4)):
            self.random, self.pairs = Random(seed), pairs

        def step(self, what, *values):
            return bytes([what | self.random.choice((0, 128)), self.random.choice(self.pairs), *values])

        def drawn(self, count):
            return self.random.randbytes(count)

        def forged(self, opcodes, anchors):
            """Opcode, PSN, payload; rkey, address, length; syndrome; flags."""
            random = self.random
            far = random.choice((0, 0, 0, 4 | random.randrange(16) << 3))
            return self.step(0, random.choice(opcodes), random.choice(anchors) | far, random.randrange(7), random.choice((0, 0, random.randrange(256))),
                             random.randrange(256), random.choice((0, 0, random.randrange(256))), random.randrange(256), random.randrange(256))

        def usual(self):
            random = self.random
            return random.choice((
                self.step(post, random.randrange(12), random.randrange(256), random.randrange(256), random.randrange(0xc0) & ~7, 0),
                self.step(receive, random.randrange(256), random.randrange(6), 0), self.step(wait, random.randrange(14)), self.step(poll)))

        def connecting(self):
            """A host asks, the other one accepts, and they send."""
            side = self.random.choice((0, 128))
            return (bytes([manage | side, 0, self.random.choice((0, 1, 2, 8)), self.random.randrange(3), self.random.randrange(256)]) +
                    self.step(wait, 8) + bytes([manage | side ^ 128, 0, 3 | self.random.randrange(8) << 3, 0, self.random.randrange(256)]) +
                    self.step(wait, 8))

        def nameless(self, ends):
            """A REQ of a connection that the other side does not know, whose queue pair has number 0; it is accepted, established, and
            ended."""
            side, own = self.random.choice((0, 128)), 0xc1
            one = lambda what, *values: bytes([what | side, 0, *values])
            return (one(mad, 0, 0, own, 0, 0xd0, 0, 5, 8, 0) + one(manage, 3, 0, 8) + one(mad, 4, 0, own, 0, 0) + self.usual() +
                    (one(mad, 5, 0, 0, own, 0, 0) if ends else one(manage, 5, 0, 0)) + self.step(wait, 10))

        def to_stranger(self, asks):
            """A connection with somebody whose MAC address is asked for, and told at last, or not."""
            side = self.random.choice((0, 128))
            one = lambda what, *values: bytes([what | side, 0, *values])
            told = self.step(wait, 12) + one(frame, 6, 0) if self.random.randrange(3) else b""
            if asks:
                return one(manage, 0xe1, 0, 0) + self.step(wait, 4) + told + self.step(wait, 15)
            return (one(mad, 0, 0xc1, 0xc1, 0, 0, 0, 5, 8, 0) + one(manage, 3, 0, 8) + one(post, 0, 1, 32, 0, 0) + told +
                    one(mad, 4, 0xc1, 0xc1, 0, 0) + one(post, 0, 1, 32, 0, 0) + self.step(wait, 15))

        def moderated(self):
            """Some completions come that wait for others, and then need not wait any more."""
            side, random = self.random.choice((0, 128)), self.random
            one = lambda what, *values: bytes([what | side, 3, *values])
            return (one(queues, 0, random.choice((1, 2)), 0) + one(post, 0, 1, 32, 0, 0) + self.step(wait, 8) +
                    one(queues, 0, random.choice((0, 4)), random.choice((0, 1, 3))) + random.choice((b"", one(post, 0, 1, 32, 0, 0))))

        def many(self, first, trouble, count):
            return first + b"".join(trouble(self) if self.random.randrange(2) else self.usual() for _ in range(count))

    troubles = (
        lambda s: s.forged((0, 1, 2, 4, 6, 7, 8, 10, 11, 12, 19, 20, 22, 23), (0,)),
        lambda s: s.forged((13, 14, 15, 16, 17, 18), (1, 1, 2)),
        lambda s: s.forged(range(256), range(4)),
        lambda s: s.step(bend, *s.drawn(6)),
        lambda s: s.step(fate, *s.drawn(2)),
        lambda s: s.step(modify, *s.drawn(1)),
        lambda s: s.step(memory, *s.drawn(1)),
        lambda s: s.step(6, *s.drawn(2)),
    )
    of_all = (
        lambda s: s.step(queues, *s.drawn(3)), lambda s: s.step(frame, *s.drawn(6)), lambda s: s.step(notify, 3),
        lambda s: s.step(meddle, *s.drawn(2)), lambda s: s.step(modify, *s.drawn(1)),
        lambda s: s.forged((0, 1, 2, 4, 6, 7, 8, 9, 10, 11), (0,)), lambda s: s.step(fate, *s.drawn(2)),
    )
    of_cm = (
        lambda s: s.step(mad, *s.drawn(9)), lambda s: s.step(mad | 1, s.random.choice((3, 4, 5)), *s.drawn(8)), lambda s: s.step(repeat_mad, *s.drawn(1)),
        lambda s: s.step(bend_mad, *s.drawn(6)), lambda s: s.step(manage, *s.drawn(3)), lambda s: s.connecting(), lambda s: s.step(modify, *s.drawn(1)),
    )
    for nic in range(32):
        for number, trouble in tuple(enumerate(troubles))[nic % 2::2]:
            s = Steps(nic * len(troubles) + number)
            setup = bytes([nic, 0, *s.drawn(2), 0])
            yield setup + s.many(b"".join(s.usual() for _ in range(8)), trouble, 40)
    for number in range(8):
        for ways, pairs in ((0, across), (1, (*within, 5, 6, 0, 1)), (2, (*groups, 9, 9, 2, 3))):
            for place, trouble in enumerate(of_all):
                s = Steps(1000 + number * 64 + ways * 8 + place, pairs)
                setup = bytes([s.random.randrange(32), (number * 32 + place * 37) & 255, *s.drawn(2), ways | s.drawn(1)[0] & 0x78])
                yield setup + s.many(b"".join(s.usual() for _ in range(8)), trouble, 40)
        for place, trouble in enumerate(of_cm):
            s = Steps(4000 + number * 8 + place, (*by_cm, 12, 12, 0))
            setup = bytes([s.random.randrange(32), (number * 32 + place * 37) & 255, *s.drawn(2), 4 | number << 4 | s.drawn(1)[0] & 8])
            yield setup + (s.nameless(number & 1) + s.moderated() if place % 2 else s.to_stranger(number & 1))
            yield setup + s.many(s.connecting() + s.connecting() + b"".join(s.usual() for _ in range(6)), trouble, 40)


CONFIGS = {
    "minimal": "devices: {tap: {path: [host <-> inspect <-> wire]}}\n",
    "full": """seed: 0x2a
drain: 1.5s
pool: {small: 64, large: 16, giant: 2}
devices:
  tap: &tap
    kind: bump
    path: host <-> first <-> wire
    kernels:
      first: {type: inspect}
  other: *tap
links:
  wan: {between: [tap.wire, other.host]}
ports:
  tap.host: {pcap: {in: [a.pcap, b.pcap], filter: 'ip src 10.0.0.1', out: out.pcapng}}
expect:
  - tap.first.naks == 0
  - tap.wire.rx_packets >= 10 + 5
""",
    "quoted": "devices:\n  \"a b\":\n    path: \"x <-> inspect <-> y\"\nexpect: 'a - b < 5ms'\n",
    "mistakes": "sed: 1\ndevices: [1, {a: b}]\nports: ~\n",
}


def write(folder, contents):
    folder.mkdir(parents=True)
    for number, content in enumerate(contents):
        (folder / f"{number:05d}").write_bytes(content)


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    for target in ("parse", "capture", "config", "kernel", "lowar", "membership", "nic"):
        (out / "found" / target).mkdir(parents=True)
    captures = sorted((source / "tests/replay/captures").glob("*.pcap"))
    chosen = [frame for path in captures for frame in some(path)]
    write(out / "parse", [b"\0" + v for frame in chosen for v in variants(frame)] +
          [b"\x08" + frame[:70] for frame in chosen])

    # No capture is all small frames; the fuzzer learns more from many short files.
    small = [frame for frame in chosen if len(frame) <= 400]
    groups = [small[i:i + 4] for i in range(0, len(small), 4)]
    write(out / "capture", [pcap(g) for g in groups] + [pcapng(g) for g in groups] +
          [pcap(small[:3], ">"), pcap(small[:3], "<", 0xA1B2C3D4), pcap(small[:3], link=240), pcap(small[:3], link=274),
           pcapng(small[:3], 6), pcapng(small[:3], 0x80 | 10), pcapng(small[:3], 0), pcap([]), pcapng([]), b""])

    texts = [path.read_bytes() for path in sorted((source / "configs").rglob("*.yaml"))]
    write(out / "config", texts + [text.encode() for text in CONFIGS.values()])

    seeds = []
    coded = [frame for frame in small if frame[42:43] in (b"\x04", b"\x0a", b"\x10") and wire.find_udp(frame)][:2]
    lowar = [seed for frame in coded for seed in lowar_seeds(frame)]
    for kernel, name in enumerate(KERNELS):
        for example in range(5):
            for packets in lowar if name == "lowar" else []:
                data = bytes([kernel, example])
                for port, frame in packets:
                    data += struct.pack(">BHH", port | 8, 50, len(frame)) + frame
                seeds.append(data)
            for start in range(0, len(small), 16):
                data = bytes([kernel, example])
                for number, frame in enumerate(small[start:start + 12]):
                    data += struct.pack(">BHH", number & 1, 0 if number % 3 else 50, len(frame)) + frame
                seeds.append(data[:4096])
    write(out / "kernel", seeds)
    write(out / "lowar", crossing_seeds())
    groups = [f for f in chosen if (f[12:14] == b"\x08\x00" and f[23:24] == b"\x02") or (f[12:14] == b"\x86\xdd" and f[20:21] in b"\0\x3a")]
    write(out / "membership", membership_seeds(groups + small[:4]))
    write(out / "nic", nic_seeds())
    for folder in sorted(out.iterdir()):
        if folder.name != "found":
            print(folder.name, sum(1 for _ in folder.iterdir()), "seeds")


if __name__ == "__main__":
    main()
