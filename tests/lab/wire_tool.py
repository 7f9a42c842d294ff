#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends the frames of a pcap out of an interface, or keeps those that arrive, through a packet socket of its own.
usage: wire_tool.py send INTERFACE FILE [MICROSECONDS_BETWEEN]
       wire_tool.py receive INTERFACE FILE   (prints `ready`; ends when standard input does, with what has come by then)
"""
import os
import pathlib
import select
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
from wire import read_pcap  # noqa: E402

SO_RCVBUFFORCE = 33  # SO_RCVBUF would be cut to net.core.rmem_max, less than a capture while this process waits for a CPU
# A frame that has left is in the socket at once, but for the kernel's own threads, which may still have it on a busy machine.
SILENCE = 0.5
ETH_P_ALL, PACKET_OUTGOING, SOL_PACKET, PACKET_AUXDATA = 3, 4, 263, 8
VLAN_VALID, VLAN_TPID_VALID = 1 << 4, 1 << 6


def frame_with_tag(data, ancillary):
    """The kernel takes the outermost VLAN tag out of a frame, and tells it beside."""
    for level, kind, value in ancillary:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tag, tpid = struct.unpack("=IIIHHHH", value[:20])
            if status & VLAN_VALID:
                tpid = tpid if status & VLAN_TPID_VALID else 0x8100
                return data[:12] + struct.pack(">HH", tpid, tag) + data[12:]
    return data


def packet_socket(interface):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    wire.bind((interface, ETH_P_ALL))
    return wire


def send(interface, file, gap_microseconds=50.0):
    # The kernel has a queue for each CPU behind a veth: a sender that moved between two frames would have them overtaken.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wire = packet_socket(interface)
    start = time.monotonic()
    for number, (_, _, frame) in enumerate(read_pcap(file)[0]):
        while time.monotonic() - start < number * gap_microseconds * 1e-6:
            pass
        wire.send(frame)


def receive(interface, file):
    wire = packet_socket(interface)
    wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    print("ready", flush=True)
    told = False
    with open(file, "wb") as out:
        out.write(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        while True:
            readable, _, _ = select.select([wire] if told else [wire, sys.stdin], [], [], SILENCE if told else None)
            if wire in readable:
                frame, ancillary, _, address = wire.recvmsg(65536, 256)
                if address[2] == PACKET_OUTGOING:
                    continue
                frame = frame_with_tag(frame, ancillary)
                now = time.time_ns()
                out.write(struct.pack("=IIII", now // 10**9, now % 10**9, len(frame), len(frame)) + frame)
            elif told:
                break
            told |= sys.stdin in readable


if __name__ == "__main__":
    {"send": lambda a: send(a[0], a[1], *map(float, a[2:])),
     "receive": lambda a: receive(*a)}[sys.argv[1]](sys.argv[2:])
