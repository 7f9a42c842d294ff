#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Offline oracle of the flow statistics of a RoCEv2 capture: reads the whole file, counts by brute force, prints JSON.

Usage: oracle_inspect.py FILE.  The classes of late packets come from the IPv4 identification, which the sender steps for
each packet that it emits: a copy made by the network repeats it, a retransmission has a newer one, a late original an older.
Whoever has seen fewer than three packets of a flow behind another cannot know that it does: what is 1 ms old then and not newer
is undecided. (What a NAK asked for, or a READ, is none of it; here that is not looked at.)
"""
import json
import sys

sys.dont_write_bytecode = True
import wire  # noqa: E402

SERVICES = {wire.RC: "RC", wire.UC: "UC", wire.UD: "UD"}
PSNS = 1 << 24
MILLISECOND = 10**6  # in the unit of records


def signed(value, bits):
    """The difference `value` of two serial numbers of `bits` bits as a signed number."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


class PsnSpace:
    """Counters of one PSN space: the requests of a flow, or its read responses."""

    def __init__(self, responses, risen):
        self.responses = responses
        self.risen = risen  # of the flow: for each packet above all before it, whether its identification was, too
        self.since = {}  # PSN -> when it was first seen, or skipped
        self.high = self.high_id = None  # highest PSN so far (not wrapped), newest identification
        self.high_complete = False  # the packet with the highest PSN ended its message
        self.seen, self.holes, self.copies = set(), set(), {}  # copies: PSN -> identifications seen with it
        self.with_id = True
        self.counts = {"duplicates": 0, "retransmissions": 0, "out_of_order": 0, "reorder_degree_max": 0, "undecided": 0}
        self.late_retransmissions = 0  # retransmissions that were overtaken, part of "retransmissions"
        self.sent_again = []  # PSNs of retransmissions, as they came

    def add(self, packet, width):
        """Count one packet that takes `width` PSNs; return its first PSN, not wrapped."""
        psn = packet["psn"] if self.high is None else self.high + signed(packet["psn"] - self.high, 24)
        if packet["id"] is None:
            self.with_id = False
        newest = self.high_id is None or signed((packet["id"] or 0) - self.high_id, 16) > 0
        if self.high is not None and psn <= self.high:
            self.classify(psn, packet["id"], newest, width, packet["time"] - self.since.get(psn, 0))
        elif self.high is not None:
            self.risen.append(newest)
            starts = packet["op"] in (wire.READ_FIRST, wire.READ_ONLY)
            if not (self.responses and starts and self.high_complete):
                self.holes.update(range(self.high + 1, psn))
                self.since.update((skipped, packet["time"]) for skipped in range(self.high + 1, psn))
        if self.high is None or psn + width - 1 > self.high:
            self.high = psn + width - 1
            self.high_complete = packet["op"] in (wire.READ_LAST, wire.READ_ONLY)
        if newest:
            self.high_id = packet["id"]
        for each in range(psn, psn + width):
            self.since.setdefault(each, packet["time"])
        self.seen.update(range(psn, psn + width))
        self.copies.setdefault(psn, []).append(packet["id"] or 0)
        return psn

    def classify(self, psn, ident, newest, width, age):
        """Decide the class of a packet that is not above the highest PSN."""
        older = [signed((ident or 0) - other, 16) for other in self.copies.get(psn, [])]
        newer = newest or max(older, default=0) > 0
        if age >= MILLISECOND and len(self.risen) < 3 and all(self.risen) and ident is not None and not newer:
            self.counts["undecided"] += 1
        elif 0 in older:
            self.counts["duplicates"] += 1
        elif newer:  # than all packets, or than another copy of this PSN
            self.counts["retransmissions"] += 1
            self.sent_again += [(psn + i) % PSNS for i in range(width)]
            self.late_retransmissions += not newest
        else:
            self.counts["out_of_order"] += 1
            self.counts["reorder_degree_max"] = max(self.counts["reorder_degree_max"], self.high - psn)
            self.holes.discard(psn)

    def report(self):
        """The counters as a dict; null when the space is unused."""
        if self.high is None:
            return None
        first, last = min(self.seen), max(self.seen)
        result = {"first_psn": first % PSNS, "last_psn": last % PSNS, "wrapped": first // PSNS != last // PSNS,
                  "unique": len(self.seen), "lost": len(self.holes)}
        # Between read responses other requests have PSNs of their own: only holes can be missing there.
        span = self.holes if self.responses else range(first, last + 1)
        result["missing"] = sum(psn not in self.seen for psn in span)
        result.update(self.counts)
        result["late_retransmissions"] = self.late_retransmissions
        result["lost_psns"] = [psn % PSNS for psn in sorted(self.holes)]
        result["retransmitted_psns"] = self.sent_again
        if not self.with_id:
            for name in list(self.counts) + ["lost", "late_retransmissions", "lost_psns", "retransmitted_psns"]:
                result[name] = None
        return result


class Messages:
    """The messages of an RC flow's requests: what was first seen of each PSN, and when."""

    def __init__(self):
        self.first = {}  # PSN, not wrapped -> (packet, whether it is the packet's first PSN, ... its last)
        self.answered = None  # PSNs up to this one have an answer
        self.completions = []

    def add(self, packet, psn, width):
        """Remember the PSNs that are new."""
        for i in range(width):
            self.first.setdefault(psn + i, (packet, i == 0, i == width - 1))

    def all(self):
        """(first PSN, last PSN, bytes) of each message all of whose PSNs were seen."""
        result = []
        for start in sorted(self.first):
            packet, first, _ = self.first[start]
            if not first or packet["op"] not in STARTS:
                continue
            at, size = start, message_bytes(packet)
            while not (self.first[at][2] and self.first[at][0]["op"] in ENDS):
                at += 1
                if at not in self.first or (self.first[at][1] and self.first[at][0]["op"] in STARTS):
                    break
                if self.first[at][1]:
                    size += message_bytes(self.first[at][0])
            else:
                result.append((start, at, size))
        return result

    def answer(self, psn, time):
        """All up to `psn` is answered; add the times of the messages that this completes."""
        if not self.first:
            return
        high = max(self.first)
        psn = high + signed(psn - high, 24)
        if psn > high or (self.answered is not None and psn <= self.answered):
            return
        for start, end, _ in self.all():
            if end <= psn and (self.answered is None or end > self.answered):
                self.completions.append(time - self.first[start][0]["time"])
        self.answered = psn


def message_bytes(packet):
    """What a packet adds to the length of its message."""
    if packet["op"] in (wire.CMP_SWAP, wire.FETCH_ADD):
        return 8
    return packet["dma_length"] if packet["op"] == wire.READ_REQUEST else packet["payload"]


def summary(numbers):
    """Count, least, greatest and sum."""
    return {"count": len(numbers), "min": min(numbers, default=0), "max": max(numbers, default=0), "sum": sum(numbers)}


def uc_messages(packets):
    """(bytes of each message that a UC receiver gets whole): its packets come in a row, with PSNs in a row."""
    result = []
    for at, packet in enumerate(packets):
        if packet["op"] not in STARTS:
            continue
        size = packet["payload"]
        while packet["op"] not in ENDS:
            at += 1
            if at == len(packets) or packets[at]["op"] in STARTS or packets[at]["psn"] != (packet["psn"] + 1) % PSNS:
                break
            packet = packets[at]
            size += packet["payload"]
        else:
            result.append(size)
    return result


class Flow:
    """Counters of one flow."""

    def __init__(self, key):
        self.key = key
        self.totals = {"packets": 0, "bytes": 0, "payload_bytes": 0, "acks": 0, "rnr_naks": 0, "cnps": 0,
                       "icrc_failures": 0}
        self.opcodes, self.naks, self.message_ends = {}, {}, set()
        self.ecn = [0, 0, 0, 0]
        risen = []
        self.requests, self.responses = PsnSpace(False, risen), PsnSpace(True, risen)
        self.answer_psns = set()
        self.messages, self.uc = Messages(), []

    def add(self, packet, length, pmtu):
        """Count one packet with a good ICRC."""
        self.totals["packets"] += 1
        self.totals["bytes"] += length
        self.totals["payload_bytes"] += packet["payload"]
        self.opcodes[packet["opcode"]] = self.opcodes.get(packet["opcode"], 0) + 1
        self.ecn[packet["ecn"]] += 1
        if packet["opcode"] == wire.CNP:
            self.totals["cnps"] += 1
            return
        op, aeth = packet["op"], packet.get("aeth")
        if op == wire.ACKNOWLEDGE:
            if aeth["kind"] == wire.ACK_KIND:
                self.totals["acks"] += 1
            elif aeth["kind"] == wire.RNR_KIND:
                self.totals["rnr_naks"] += 1
            elif aeth["kind"] == wire.NAK_KIND:
                self.naks[aeth["value"]] = self.naks.get(aeth["value"], 0) + 1
        if is_answer(packet):
            self.answer_psns.add(packet["psn"])
        width = psn_width(packet, pmtu)
        if packet["service"] in (wire.RC, wire.UC):
            if op in wire.REQUEST_OPS:
                self.messages.add(packet, self.requests.add(packet, width), width)
                self.uc.append(packet)
            if op in wire.READ_RESPONSES:
                self.responses.add(packet, 1)
        if op in wire.LAST_OPS | wire.ONLY_OPS | {wire.READ_REQUEST, wire.CMP_SWAP, wire.FETCH_ADD}:
            self.message_ends.add((packet["psn"] + width - 1) % PSNS)

    def report(self):
        """The counters as a dict."""
        result = dict(zip(("src", "dst", "qpn", "service"), describe(self.key)))
        result["key"] = name(self.key)
        result.update(self.totals)
        uc = self.key[3] == wire.UC
        sizes = uc_messages(self.uc) if uc else [size for _, _, size in self.messages.all()]
        result["messages"] = len(sizes) if uc else len(self.message_ends)
        result["message_bytes"] = summary(sizes)
        result["opcodes"] = {str(code): self.opcodes[code] for code in sorted(self.opcodes)}
        result["naks"] = {str(code): self.naks[code] for code in sorted(self.naks)}
        result["ecn"] = dict(zip(("not_ect", "ect1", "ect0", "ce"), self.ecn))
        result["requests"], result["read_responses"] = self.requests.report(), self.responses.report()
        return result


STARTS = wire.FIRST_OPS | wire.ONLY_OPS | {wire.READ_REQUEST, wire.CMP_SWAP, wire.FETCH_ADD}
ENDS = wire.LAST_OPS | wire.ONLY_OPS | {wire.READ_REQUEST, wire.CMP_SWAP, wire.FETCH_ADD}


def describe(key):
    """(source, destination, QPN, service) as texts and numbers."""
    return wire.text_address(key[0]), wire.text_address(key[1]), key[2], SERVICES[key[3]]


def name(key):
    """A flow as one string."""
    return "%s>%s/%d/%s" % describe(key)


def is_answer(packet):
    """Whether an RC packet answers a request."""
    return packet["opcode"] >> 5 == wire.RC and \
        packet["op"] in wire.READ_RESPONSES | {wire.ACKNOWLEDGE, wire.ATOMIC_ACK}


def psn_width(packet, pmtu):
    """The number of PSNs that a packet takes."""
    if packet["op"] != wire.READ_REQUEST:
        return 1
    return max(1, -(-packet["dma_length"] // pmtu)) if pmtu else 1


def flow_key(packet):
    """The flow of a packet; a CNP belongs to the RC flow."""
    service = wire.RC if packet["opcode"] == wire.CNP else packet["service"]
    return packet["src"], packet["dst"], packet["qpn"], service


def find_pairs(flows, packets, pmtu):
    """For each flow with answers: the one flow against it whose requests have all the answered PSNs, or None."""
    requests = {}
    for packet in packets:
        if packet["service"] == wire.RC and packet["op"] in wire.REQUEST_OPS:
            psns = requests.setdefault(flow_key(packet), set())
            psns.update((packet["psn"] + i) % PSNS for i in range(psn_width(packet, pmtu)))
    pairs = {}
    for key, flow in flows.items():
        if flow.answer_psns:
            fits = [other for other in flows if other[:2] == (key[1], key[0]) and other != key and
                    flow.answer_psns <= requests.get(other, set())]
            pairs[key] = fits[0] if len(fits) == 1 else None
    return pairs


def round_trips(request_key, answer_key, packets, pmtu):
    """Times from requests seen once to their first answers (Karn's rule)."""
    sent, answered, times = {}, set(), []
    for packet in packets:
        key = flow_key(packet)
        if key == request_key and packet["op"] in wire.REQUEST_OPS:
            for i in range(psn_width(packet, pmtu)):
                sent.setdefault((packet["psn"] + i) % PSNS, []).append(packet["time"])
        if key == answer_key and is_answer(packet):
            good = packet["op"] in (wire.ATOMIC_ACK, wire.READ_FIRST, wire.READ_ONLY) or \
                (packet["op"] == wire.ACKNOWLEDGE and packet["aeth"]["kind"] == wire.ACK_KIND)
            if good and packet["psn"] not in answered and packet["psn"] in sent:
                answered.add(packet["psn"])
                if len(sent[packet["psn"]]) == 1:
                    times.append(packet["time"] - sent[packet["psn"]][0])
    return times


def completions(request_key, answer_key, packets, pmtu):
    """Times from each message's first packet to the first answer that covers its last."""
    space, messages = PsnSpace(False, []), Messages()
    for packet in packets:
        key = flow_key(packet)
        if key == request_key and packet["op"] in wire.REQUEST_OPS:
            width = psn_width(packet, pmtu)
            messages.add(packet, space.add(packet, width), width)
        if key == answer_key and is_answer(packet):
            kind = packet["aeth"]["kind"] if packet["op"] == wire.ACKNOWLEDGE else wire.ACK_KIND
            last = kind == wire.ACK_KIND and packet["op"] not in (wire.READ_FIRST, wire.READ_MIDDLE)
            messages.answer(packet["psn"] if last else packet["psn"] - 1, packet["time"])
    return summary(messages.completions)


def ud_senders(packets):
    """For each UD QP that sends: its packets and PSNs, whatever their destination."""
    senders = {}
    for packet in packets:
        if packet["service"] == wire.UD:
            senders.setdefault((packet["src"], packet["src_qpn"]), []).append(packet["psn"])
    result = []
    for (source, qpn), psns in senders.items():
        places = [psns[0] + signed(psn - psns[0], 24) for psn in psns]
        result.append({"source": wire.text_address(source), "source_qpn_number": qpn, "packets": len(psns),
                       "first_psn": min(places) % PSNS, "last_psn": max(places) % PSNS, "unique": len(set(places)),
                       "missing": max(places) - min(places) + 1 - len(set(places)),
                       "duplicates": len(places) - len(set(places))})
    return result


def inspect(path):
    """The whole report on a file."""
    records, cut = wire.read_pcap(path)
    good, bad = [], []
    result = {"records": len(records), "cut": cut, "roce": 0, "icrc_unchecked": 0, "icrc_failures": 0,
              "icrc_failures_without_flow": 0}
    for time, length, frame in records:
        packet = wire.parse(frame)
        if packet and (packet["service"] in SERVICES or packet["opcode"] == wire.CNP):
            packet.update(time=time, length=length)
            result["icrc_unchecked"] += packet["icrc_ok"] is None
            (bad if packet["icrc_ok"] is False else good).append(packet)
    result["roce"], result["icrc_failures"] = len(good) + len(bad), len(bad)
    pmtu = max([p["payload"] for p in good if p["opcode"] != wire.CNP and p["op"] in
                wire.FIRST_OPS | wire.MIDDLE_OPS | {wire.READ_FIRST, wire.READ_MIDDLE}], default=0)
    flows = {}
    for packet in good:
        flows.setdefault(flow_key(packet), Flow(flow_key(packet))).add(packet, packet["length"], pmtu)
    for packet in bad:
        if flow_key(packet) in flows:
            flows[flow_key(packet)].totals["icrc_failures"] += 1
        else:
            result["icrc_failures_without_flow"] += 1
    normal = [packet for packet in good if packet["opcode"] != wire.CNP]
    pairs = find_pairs(flows, normal, pmtu)
    result["pmtu"] = pmtu
    result["flows"] = [flow.report() for flow in flows.values()]
    result["pairs"] = [[name(key), name(other) if other else None] for key, other in pairs.items()]
    result["ud_senders"] = ud_senders(normal)
    result["rtt"], result["completion"] = [], []
    for answer, request in pairs.items():
        times = request and round_trips(request, answer, normal, pmtu)
        if request:
            result["completion"].append({"requests": name(request)} | completions(request, answer, normal, pmtu))
        if times:
            result["rtt"].append({"requests": name(request)} | summary(times))
    return result


if __name__ == "__main__":
    try:
        json.dump(inspect(sys.argv[1]), sys.stdout, indent=1)
        print()
    except wire.FormatError as error:
        sys.exit("%s: %s" % (sys.argv[1], error))
