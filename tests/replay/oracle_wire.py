#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Decode a capture with wire.py, tshark and scapy; print one JSON line for each RoCEv2 packet; exit 1 when they differ.

Usage: oracle_wire.py FILE [--compare OTHER.jsonl].  A line is {n, opcode, psn, qpn, icrc_ok}; n counts all packets of the
file from 1; icrc_ok is null for a packet stored cut.  scapy checks the ICRC of IPv4 packets only.  With --compare nothing is
printed but the differences to the lines of OTHER.jsonl (further keys in them do not matter).
"""
import argparse
import json
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import wire  # noqa: E402

KEYS = ("n", "opcode", "psn", "qpn", "icrc_ok")


def from_wire(path):
    """{n: (opcode, psn, qpn, icrc_ok)} by wire.py."""
    result = {}
    for n, (_, _, frame) in enumerate(wire.read_pcap(path)[0], 1):
        packet = wire.parse(frame)
        if packet:
            result[n] = packet["opcode"], packet["psn"], packet["qpn"], packet["icrc_ok"]
    return result


def from_tshark(path):
    """{n: (opcode, psn, qpn, None)} by tshark, which does not check the ICRC."""
    fields = ["frame.number", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp"]
    command = ["tshark", "-n", "-r", path, "-T", "fields"] + [word for field in fields for word in ("-e", field)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode and "cut short" not in run.stderr:  # a torn last record is no error here
        sys.exit("tshark: " + run.stderr)
    result = {}
    for line in run.stdout.splitlines():
        n, opcode, psn, qpn = line.split("\t")
        if opcode:
            result[int(n)] = int(opcode), int(psn), int(qpn, 16), None
    return result


def from_scapy(path):
    """{n: (opcode, psn, qpn, icrc_ok)} by scapy, with its own reader of capture files."""
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether
    from scapy.utils import RawPcapReader
    result = {}
    reader = RawPcapReader(path)
    link = getattr(reader, "linktype", wire.ETHERNET)
    for n, (data, meta) in enumerate(reader, 1):
        length = meta.wirelen
        if len(data) < getattr(meta, "caplen", 0):  # torn
            break
        if link == wire.NETANALYZER:
            data, length = data[4:length - 4], length - 8
        packet = Ether(data)
        if BTH not in packet:
            continue
        bth, good = packet[BTH], None
        if IP in packet and len(data) == length:
            good = bth.compute_icrc(b"") == struct.pack("!I", bth.icrc)
        result[n] = bth.opcode, bth.psn, bth.dqpn, good
    reader.close()
    return result


def differences(left, right, names):
    """Texts on the packets that two decoders see differently; None in the last place agrees with everything."""
    for n in sorted(set(left) | set(right)):
        a, b = left.get(n), right.get(n)
        if a is None or b is None or a[:3] != b[:3] or (None not in (a[3], b[3]) and a[3] != b[3]):
            yield "packet %d: %s %s, %s %s" % (n, names[0], a, names[1], b)


def compare(own, path):
    """Texts on the differences to a file of JSON lines."""
    with open(path, encoding="utf-8") as file:
        other = [json.loads(line) for line in file if line.strip()]
    other = {entry["n"]: tuple(entry[key] for key in KEYS[1:]) for entry in other}
    for n in sorted(set(own) | set(other)):
        if own.get(n) != other.get(n):
            yield "packet %d: expected %s, got %s" % (n, own.get(n), other.get(n))


def check(path, other=None):
    """{n: (opcode, psn, qpn, icrc_ok)} by wire.py, and texts on what tshark, scapy and the lines of `other` say otherwise."""
    own = from_wire(path)
    bad = list(differences(own, from_tshark(path), ("wire.py", "tshark")))
    bad += differences(own, from_scapy(path), ("wire.py", "scapy"))
    if other:
        bad += compare(own, other)
    return own, bad


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--compare", metavar="OTHER.jsonl")
    arguments = parser.parse_args()
    try:
        own, bad = check(arguments.file, arguments.compare)
    except wire.FormatError as error:
        sys.exit("%s: %s" % (arguments.file, error))
    if not arguments.compare:
        for n, values in own.items():
            print(json.dumps(dict(zip(KEYS, (n,) + values))))
    for line in bad:
        print(line, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
