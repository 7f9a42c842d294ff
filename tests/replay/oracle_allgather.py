# SPDX-License-Identifier: BSD-3-Clause
"""A model of what the kernel `allgather` says, over what tshark makes of a capture: sets of numbers, nothing else."""
import ipaddress

from common import tshark
from wire import find_udp, icrc, read_pcap

UD_SEND_ONLY_IMMEDIATE = 0x65


class Stream:
    def __init__(self):
        self.came, self.arrivals, self.duplicates, self.out_of_order, self.late, self.bytes = set(), [], 0, 0, 0, 0
        self.times = []

    def missing(self):
        return max(self.came) - min(self.came) + 1 - len(self.came)

    def gaps(self):
        gone = [n for n in range(min(self.came), max(self.came)) if n not in self.came]
        runs = []
        for n in gone:
            if runs and runs[-1][0] + runs[-1][1] == n:
                runs[-1][1] += 1
            else:
                runs.append([n, 1])
        return runs


def model(path, chunk_bits=24, collective_bits=3, cutoff=None):
    """({(group, source, source QPN, collective, generation): Stream}, datagrams with a wrong ICRC)."""
    frames = read_pcap(path)[0]
    rows = tshark(path, "frame.number", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "infiniband.bth.opcode",
                  "infiniband.deth.srcqp", "infiniband.immdt", "udp.length", "infiniband.bth.padcnt")
    streams, first, corrupt = {}, {}, 0
    for number, src, dst, src6, dst6, opcode, qp, immediate, length, pad in rows:
        group = dst or dst6
        if not opcode or int(opcode, 0) != UD_SEND_ONLY_IMMEDIATE or not ipaddress.ip_address(group).is_multicast:
            continue
        at, _, frame = frames[int(number) - 1]
        at -= frames[0][0]  # a replay begins with its first packet
        if icrc(frame) != ending(frame):
            corrupt += 1
            continue
        # tshark (4.0) prints an immediate twice
        word = int(immediate.split(",")[0].replace(":", ""), 16)
        chunk, tag = word & (1 << chunk_bits) - 1, word >> chunk_bits
        key = (group, src or src6, int(qp, 0), tag & (1 << collective_bits) - 1, tag >> collective_bits)
        stream = streams.setdefault(key, Stream())
        begin = first.setdefault(tag, at)
        stream.times.append(at)
        if chunk in stream.came:
            stream.duplicates += 1
            continue
        if stream.came and chunk < max(stream.came):
            stream.out_of_order += 1
        if cutoff is not None and at - begin >= cutoff:
            stream.late += 1
        stream.came.add(chunk)
        # behind UDP's header: BTH 12, DETH 8, immediate 4, payload, pad, ICRC 4
        stream.bytes += int(length) - 8 - 12 - 8 - 4 - int(pad, 0) - 4
    return streams, corrupt


def ending(frame):
    """The last four bytes of the datagram."""
    end = find_udp(frame)[2]
    return frame[end - 4:end]
