# SPDX-License-Identifier: BSD-3-Clause
"""The peer of queue pairs in a machine, made of a packet socket alone: it builds and reads RoCEv2 frames by the wire formats,
and speaks to `case_player` in the machine by datagrams on the same wire."""
import re
import select
import socket
import struct
import sys
import time
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
import wire  # noqa: E402

OUR_MAC, OUR_ADDRESS, STRANGERS_ADDRESS = bytes.fromhex("020000770008"), "10.77.0.8", "10.77.0.7"
PLAYER_PORT, OUR_PORT = 7471, 7472
CASE_QPN, BEACON_QPN = 0x99, 0x77
REMOTE_ADDRESS = 0x10000
ANSWER_SECONDS, RESEND_SECONDS = 120, 5
OPCODES = {"SEND_FIRST": 0, "SEND_MIDDLE": 1, "SEND_LAST": 2, "SEND_LAST_IMM": 3, "SEND_ONLY": 4, "SEND_ONLY_IMM": 5,
           "WRITE_FIRST": 6, "WRITE_MIDDLE": 7, "WRITE_LAST": 8, "WRITE_LAST_IMM": 9, "WRITE_ONLY": 10, "WRITE_ONLY_IMM": 11,
           "READ_REQUEST": 12, "READ_RESPONSE_FIRST": 13, "READ_RESPONSE_MIDDLE": 14, "READ_RESPONSE_LAST": 15,
           "READ_RESPONSE_ONLY": 16, "ATOMIC_ACK": 18, "COMPARE_SWAP": 19, "FETCH_ADD": 20, "SEND_LAST_INV": 22,
           "SEND_ONLY_INV": 23}
NAMES = {number: name for name, number in OPCODES.items()}
SYNDROMES = {"ACK": 0x1F, "RNR_NAK": 0x20, "NAK_PSN": 0x60, "NAK_INVALID_REQUEST": 0x61, "NAK_REMOTE_ACCESS": 0x62,
             "NAK_REMOTE_OPERATIONAL": 0x63, "NAK_INVALID_RD_REQUEST": 0x64, "NAK_RESERVED": 0x65, "ACK_RESERVED": 0x40}
ACKNOWLEDGE, CNP = 17, 0x81
SERVICES = {"RC": 0, "UC": 1, "UD": 3}


def ip_checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp_frame(to_mac, source, destination, ports, payload):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0, socket.inet_aton(source),
                         socket.inet_aton(destination))
    header = header[:10] + struct.pack(">H", ip_checksum(header)) + header[12:]
    return to_mac + OUR_MAC + b"\x08\x00" + header + struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload


def headers(step, keys):
    """What stands behind the BTH of the packet of a step, and its opcode within its service."""
    number, name = step.number, step.name
    if name in SYNDROMES:
        return struct.pack(">I", (SYNDROMES[name] | number("timer")) << 24 | number("msn")), ACKNOWLEDGE
    at, key = (keys["at"] + number("at")) % (1 << 64), keys[step.text("rkey", "good")] if name != "CNP" else 0
    said = b""
    if name in ("WRITE_FIRST", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST"):
        said = struct.pack(">QII", at, key, number("length", number("bytes")))
    elif name in ("FETCH_ADD", "COMPARE_SWAP"):
        said = struct.pack(">QIQQ", at, key, number("add", number("swap")), number("compare"))
    elif name in ("READ_RESPONSE_FIRST", "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY", "ATOMIC_ACK"):
        said = struct.pack(">I", number("syndrome", 0x1F) << 24 | number("msn"))
    if name == "ATOMIC_ACK":
        said += struct.pack(">Q", number("original"))
    if name.endswith("_IMM"):
        said += struct.pack(">I", number("imm"))
    if name.endswith("_INV"):
        said += struct.pack(">I", key)
    return said, OPCODES.get(name)


def text_of(frame):
    """A frame as cases write it."""
    packet = wire.parse(frame)
    op, psn = packet["op"], packet["psn"]
    aeth, text = packet.get("aeth"), None
    if op == ACKNOWLEDGE:
        whole = aeth["kind"] << 5 | (aeth["value"] if aeth["kind"] == wire.NAK_KIND else SYNDROMES["ACK"] * (not aeth["kind"]))
        text = next((name for name, value in SYNDROMES.items() if value == whole), f"SYNDROME_{whole:#x}")
    text = f"{text or NAMES.get(op, f'OPCODE_{op:#x}')} {psn}"
    if aeth:
        text += f" msn={aeth['msn']}"
    if op == ACKNOWLEDGE and aeth["kind"] == wire.RNR_KIND:
        text += f" timer={aeth['value']}"
    if op == OPCODES["ATOMIC_ACK"]:
        text += f" original={struct.unpack_from('>Q', frame, len(frame) - 12)[0]}"
    elif op == OPCODES["READ_REQUEST"]:
        text += f" length={packet['dma_length']} at={packet['va'] - REMOTE_ADDRESS}"
    elif op not in (ACKNOWLEDGE, OPCODES["FETCH_ADD"], OPCODES["COMPARE_SWAP"]):
        text += f" bytes={packet['payload']}"
    return text


class RawPeer:
    """At the TAP `interface` in front of a machine with this IPv4 address, in which `case_player` runs."""

    def __init__(self, interface, mac, address):
        self.mac, self.address = bytes.fromhex(mac.replace(":", "")), address
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((interface, 3))
        self.out, self.said, self.wrong_icrcs = [], {}, 0
        self.words, self.beacon_psn = 0, 0
        self.beacon, self.beacon_answer = None, None

    def close(self):
        self.socket.close()

    def read(self, until, seconds=ANSWER_SECONDS):
        """Takes what comes until `until()` holds. Whether it does."""
        deadline = time.monotonic() + seconds
        while not until():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return False
            frame = self.socket.recv(65536)
            if frame[6:12] == self.mac and frame[12:14] == b"\x08\x00" and frame[23] == 17:
                self.take(frame)
        return True

    def take(self, frame):
        ports = struct.unpack_from(">HH", frame, 34)
        if ports == (PLAYER_PORT, OUR_PORT):
            number, _, text = frame[42:14 + struct.unpack_from(">H", frame, 16)[0]].decode().partition(" ")
            self.said[int(number)] = text
        elif ports[1] == wire.ROCE_PORT:
            frame = frame[:14 + struct.unpack_from(">H", frame, 16)[0]]
            packet = wire.parse(frame)
            self.wrong_icrcs += not packet["icrc_ok"]
            if packet["qpn"] == BEACON_QPN:
                self.beacon_answer = packet["psn"]
            elif packet["qpn"] == CASE_QPN:
                self.out.append(text_of(frame))

    def tell(self, *words):
        """A word to `case_player`, and its answer."""
        self.words += 1
        frame = udp_frame(self.mac, OUR_ADDRESS, self.address, (OUR_PORT, PLAYER_PORT),
                          " ".join(map(str, (self.words, *words))).encode())
        for _ in range(ANSWER_SECONDS // RESEND_SECONDS):
            self.socket.send(frame)
            if self.read(lambda: self.words in self.said, RESEND_SECONDS):
                return self.said.pop(self.words)
        raise AssertionError(f"case_player does not answer: {words}")

    def do(self, *words):
        said = self.tell(*words)
        if said != "done":
            raise AssertionError(f"{words}: {said}")

    def make_beacon(self):
        self.beacon = self.keys(self.tell("beacon", OUR_ADDRESS))

    @staticmethod
    def keys(said):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", said)}

    def bth(self, opcode, qpn, psn, pad=0, pkey=0xFFFF, asks=False):
        return struct.pack(">BBHII", opcode, 0x40 | pad << 4, pkey, qpn, (asks << 31) | psn)

    def send_roce(self, payload, source=OUR_ADDRESS, wrong_icrc=False):
        frame = udp_frame(self.mac, source, self.address, (0xC000, wire.ROCE_PORT), payload + bytes(4))
        icrc = wire.icrc(frame)
        self.socket.send(frame[:-4] + (bytes([icrc[0] ^ 1]) + icrc[1:] if wrong_icrc else icrc))

    def settle(self):
        """Until all that was sent has been answered. A READ of another queue pair takes the way of every packet, its work stands in
        the same queue of the machine's only CPU behind that of what came before, and its answer leaves behind theirs; the
        second one comes behind work that the first work left."""
        for _ in range(2):
            psn, self.beacon_psn = self.beacon_psn, (self.beacon_psn + 1) & 0xFFFFFF
            self.send_roce(self.bth(OPCODES["READ_REQUEST"], self.beacon["qpn"], psn) +
                           struct.pack(">QII", self.beacon["at"], self.beacon["good"], 8))
            if not self.read(lambda: self.beacon_answer == psn):
                raise AssertionError("the beacon does not answer")

    def send_step(self, step, keys, service):
        """The packet of a step, as often as it says."""
        said, opcode = headers(step, keys)
        if step.name == "CNP":
            opcode, said = CNP, bytes(16)
        else:
            opcode |= SERVICES[step.text("service", service)] << 5
        if service == "UD":
            said = struct.pack(">II", step.number("qkey"), CASE_QPN) + said
        payload = step.payload()
        pad = -len(payload) % 4
        qpn = 0xFFFFF0 if step.text("qpn") == "unknown" else keys["qpn"]
        packet = self.bth(opcode, qpn, step.psn, pad, step.number("pkey", 0xFFFF), "ack" in step.values) + said + payload + bytes(pad)
        source = STRANGERS_ADDRESS if step.text("source") == "stranger" else OUR_ADDRESS
        for _ in range(step.number("times", 1)):
            self.send_roce(packet, source, step.text("icrc") == "wrong")
