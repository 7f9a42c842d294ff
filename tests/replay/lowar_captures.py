# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of LoWAR in replay share: the captures that it protects something of, and their streams."""
import collections
import functools
import struct

import wire
from common import CAPTURES

MAD_QPN = 1
RC_UC = sorted(path for path in CAPTURES.glob("*.pcap") if not path.stem.startswith(("ud_", "rdma_cm_sidr")))
ENDS = wire.LAST_OPS | wire.ONLY_OPS | {wire.READ_REQUEST, wire.READ_LAST, wire.READ_ONLY, wire.CMP_SWAP, wire.FETCH_ADD}
parse = functools.lru_cache(maxsize=8192)(wire.parse)


def frames(path):
    return [bytes(frame) for _, _, frame in wire.read_pcap(str(path))[0]]


def stream(frame):
    """What has PSNs of its own: addresses, QP, and whether it answers READs; None of what is no RoCE."""
    packet = parse(frame)
    if packet is None:
        return None
    return packet["src"], packet["dst"], packet["qpn"], packet["op"] in wire.READ_RESPONSES


def by_stream(rows):
    streams = collections.defaultdict(list)
    for frame in rows:
        key = stream(frame)
        if key is None or key[2] != MAD_QPN:  # the connection manager's datagrams are not protected
            streams[key].append(frame)
    return streams


def is_coded(frame):
    """Whether a frame from the host goes into an XOR: RC and UC requests and READ responses with a right ICRC."""
    packet = parse(frame)
    return packet is not None and packet["service"] in (wire.RC, wire.UC) and packet["icrc_ok"] \
        and packet["op"] in wire.REQUEST_OPS | wire.READ_RESPONSES


def one_behind_the_other():
    """The frames of all captures. Those are left out that belong to a message whose end no capture has: a repair packet for them
    never comes."""
    rows = [frame for capture in RC_UC for frame in frames(capture)]
    ended = {stream(frame): n for n, frame in enumerate(rows) if is_coded(frame) and parse(frame)["op"] in ENDS}
    return [frame for n, frame in enumerate(rows) if not is_coded(frame) or n <= ended.get(stream(frame), -1)]


def write_pcap(path, rows, microseconds_between=1):
    times = (divmod(n * microseconds_between, 10**6) for n in range(len(rows)))
    records = (struct.pack("<IIII", *at, len(frame), len(frame)) + frame for at, frame in zip(times, rows))
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1) + b"".join(records))
