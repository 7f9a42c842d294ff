# SPDX-License-Identifier: BSD-3-Clause
"""What tests of a switch through the command stand on: packets that scapy makes and reads."""
import json
import sys

from common import RoceboxTest

try:
    import scapy.all as scapy
except ImportError:
    print("skipped: scapy is not installed")
    sys.exit(77)

ROUTER, A, B, C = "02:00:00:00:ff:01", "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"
BROADCAST = "ff:ff:ff:ff:ff:ff"


def udp(source, destination, src="10.0.0.1", dst="10.0.1.1", sport=1000, dport=9, ttl=64, tos=0, size=64, at=0.0, vlan=None):
    ether = scapy.Ether(src=source, dst=destination)
    if vlan is not None:
        ether /= scapy.Dot1Q(vlan=vlan)
    ip = scapy.IPv6(src=src, dst=dst, hlim=ttl, tc=tos) if ":" in src else scapy.IP(src=src, dst=dst, ttl=ttl, tos=tos)
    packet = ether / ip / scapy.UDP(sport=sport, dport=dport) / scapy.Raw(bytes(size))
    packet.time = 1000 + at
    return packet


def crc(data, width, polynomial, initial, final_xor, reflected):
    """Bit by bit, as catalogues of CRCs describe them (Rocksoft model)."""
    value = initial
    for byte in data:
        for bit in range(8) if reflected else range(7, -1, -1):  # in the order in which bits enter
            out = value >> (width - 1) ^ byte >> bit & 1
            value = value << 1 & (1 << width) - 1 ^ (polynomial if out else 0)
    return (int(f"{value:0{width}b}"[::-1], 2) if reflected else value) ^ final_xor


class SwitchTest(RoceboxTest):
    def run_switch(self, options, top=None, **inputs):
        """{port: [packets that left]}, and the switch's part of the report. `top`: what the configuration has besides."""
        ports = options["ports"]
        bindings = {}
        for port in ports:
            bindings[f"s.{port}"] = {"pcap": {"out": f"{port}.out.pcap"}}
            if port in inputs:
                scapy.wrpcap(str(self.dir / f"{port}.in.pcap"), inputs[port])
                bindings[f"s.{port}"]["pcap"]["in"] = f"{port}.in.pcap"
        config = self.config(json.dumps({"devices": {"s": {"switch": {"strict": True, **options}}}, "ports": bindings,
                                         **(top or {})}))
        report = self.replay(config)
        kernel = report["devices"]["s"]["kernels"]["switch"]
        self.assertEqual(kernel["violations"], [])
        return {port: list(scapy.rdpcap(str(self.dir / f"{port}.out.pcap"))) for port in ports}, kernel
