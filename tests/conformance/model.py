# SPDX-License-Identifier: BSD-3-Clause
"""What a queue pair must do, from the IB specification's rules (volume 1, 9.7 to 9.9 and 10.7): a model of one end, slow
and plain, that shares nothing with the NIC. It speaks the language of cases.yaml."""
import re

MTU = 256
PSNS = 1 << 24
REGION, RECEIVES = 4096, 1 << 16
MESSAGE_MAX = 1 << 31
# Rights by key, for remote use; no rights at all: of another protection domain, or no key.
ALL = ("write", "read", "atomic")
KEYS = {"good": ALL, "read_only": ("read",), "write_only": ("write",), "other_domain": None, "unknown": None, "joined": ALL,
        "null": ("write", "read"), "window": ALL, "read_window": ("read",), "strangers_window": None, "unbound_window": None}
WINDOWS = ("window", "read_window", "strangers_window", "unbound_window")
WINDOW = range(1024, 2048)  # of the region, what windows show
LOCAL_WRITE = ("good", "write_only", "joined", "null")
# 9.7.5.2.8, table 45: in units of 10 us.
RNR_TENS = [65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
            8192, 12288, 16384, 24576, 32768, 49152]
GRH_BYTES = 40


def distance(a, b):
    """How far PSN a lies ahead of b; behind it: below 0."""
    return (a - b + PSNS // 2) % PSNS - PSNS // 2


def runs(memory):
    """Where bytes are that are not 0: hexadecimal, by their place."""
    return {str(run.start()): run.group().hex() for run in re.finditer(rb"[^\0]+", bytes(memory))}


def place(key, at):
    """Where a byte of the region lies that is addressed so by a key; None: nowhere."""
    return None if key == "null" else (at + REGION // 2) % REGION if key == "joined" else at


class Step:
    def __init__(self, text):
        words = text.split()
        self.name, self.psn, self.values = words[0], 0, {}
        for i, word in enumerate(words[1:]):
            key, equals, value = word.partition("=")
            if not equals and i == 0 and word[0].isdigit():
                self.psn = int(word, 0)
            else:
                self.values[key] = value

    def number(self, key, otherwise=0):
        return int(self.values[key], 0) if key in self.values else otherwise

    def text(self, key, otherwise=""):
        return self.values.get(key, otherwise)

    def payload(self):
        """Of a packet: other bytes in each, none of them 0, unless it says with what it is filled."""
        if "fill" in self.values:
            return bytes([self.number("fill")] * self.number("bytes"))
        return bytes(1 + (self.psn + i) % 255 for i in range(self.number("bytes")))


class Work:
    """A send work request: its PSNs, and how far it has come."""

    def __init__(self, number, step, psn):
        self.number, self.kind, self.psn = number, step.name, psn
        self.bytes = 8 if self.kind == "FETCH_ADD" else step.number("bytes")
        self.packets = 1 if self.kind == "FETCH_ADD" else 0 if self.kind == "LOCAL_INV" else max(1, -(-self.bytes // MTU))
        self.responded, self.done, self.over = 0, False, False
        self.key, self.at, self.rkey = step.text("lkey", "good"), step.number("at"), step.text("rkey", "window")

    @property
    def is_answered(self):
        return self.kind in ("READ", "FETCH_ADD")

    @property
    def end(self):
        return (self.psn + self.packets) % PSNS

    def lines(self):
        """Its request packets, as (PSN, text)."""
        if self.kind == "FETCH_ADD":
            return [(self.psn, f"FETCH_ADD {self.psn}")]
        if self.kind == "READ":  # what is missing of it
            at, psn = self.responded * MTU, (self.psn + self.responded) % PSNS
            return [(psn, f"READ_REQUEST {psn} length={self.bytes - at} at={at}")]
        if self.packets == 1:
            return [(self.psn, f"{self.kind}_ONLY {self.psn} bytes={self.bytes}")]
        rows = []
        for i in range(self.packets):
            place = "FIRST" if i == 0 else "LAST" if i == self.packets - 1 else "MIDDLE"
            psn = (self.psn + i) % PSNS
            rows.append((psn, f"{self.kind}_{place} {psn} bytes={min(MTU, self.bytes - i * MTU)}"))
        return rows


class QueuePair:
    work_class = Work

    def __init__(self, qp):
        self.type = qp.get("type", "RC")
        self.access = qp.get("access", ["write", "read", "atomic"])
        number = lambda name, otherwise: qp.get(name, otherwise)
        self.state, self.now = "RTS", 0
        self.out, self.sent, self.received = [], [], []
        # Responder.
        self.epsn, self.msn, self.nak_said = number("psn", 0), 0, False
        self.receives, self.posted_receives = [], 0
        self.current = None  # the receive request that was taken
        self.message = None  # "SEND", "WRITE", or "LOST" of an unreliable one
        self.bytes = self.length = self.address = 0
        self.dest_rd_atomic, self.rnr_code = number("max_dest_rd_atomic", 16), number("min_rnr_timer", 1)
        self.resources, self.reads_now = [], 0
        self.gone = set()  # keys that were taken back
        self.key = "good"  # of the WRITE that goes on
        self.memory, self.received_memory = bytearray(REGION), bytearray(RECEIVES)
        # Requester.
        self.posted = 0
        self.works, self.cursor, self.una, self.next_psn = [], (0, 0), number("psn", 0), number("psn", 0)
        self.sent_end = self.una
        self.rd_atomic = number("max_rd_atomic", 16)
        self.retry_cnt, self.rnr_retry, self.timeout = number("retry_cnt", 2), number("rnr_retry", 2), number("timeout", 8)
        self.retries, self.rnr_retries = self.retry_cnt, self.rnr_retry
        self.deadline = self.rnr_until = None
        self.implied = None  # the PSN of the last implied NAK

    # What happens.

    def play(self, text):
        self.now += 1_000
        verb, _, rest = text.partition(" ")
        if verb == "wait":
            self.wait(rest)
        elif verb == "remove":
            self.gone.add(rest)
        elif verb == "post":
            self.post(Step(rest))
        elif verb == "receive":
            self.receive(Step("RECEIVE " + rest))
        else:
            self.reads_now = 0
            for one in rest.split("; "):
                packet = Step(one)
                for _ in range(packet.number("times", 1)):
                    self.packet(packet)

    def wait(self, text):
        scale = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
        unit = text.lstrip("0123456789")
        end = self.now + int(text[: -len(unit)]) * scale[unit]
        while self.state == "RTS":
            due = min((at for at in (self.deadline, self.rnr_until) if at is not None), default=None)
            if due is None or due > end:
                break
            self.now = due
            if due == self.rnr_until:
                self.rnr_until = None
                self.arm()
                self.send()
            else:
                self.retry(self.una)
        self.now = end

    def packet(self, p):
        """9.6: what is nobody's, or not whole, is dropped without a word."""
        if (p.number("pkey", 0xFFFF) & 0x7FFF) != 0x7FFF or p.text("qpn") == "unknown" or p.text("icrc") == "wrong":
            return
        if p.text("service", self.type) != self.type or p.name == "CNP" or self.state != "RTS":
            return
        if self.type == "UD":
            return self.datagram(p)
        if p.text("source") == "stranger":
            return
        if p.name.startswith(("ACK", "NAK", "RNR", "READ_RESPONSE", "ATOMIC_ACK")):
            return self.response(p)
        (self.reliable if self.type == "RC" else self.unreliable)(p)

    # Responder.

    def say(self, text):
        self.out.append(text)

    def reliable(self, p):
        """9.7.4.1: the PSN first; then the opcode's order, the function, what it needs, its key, its length."""
        ahead = distance(p.psn, self.epsn)
        if ahead < 0:
            return self.duplicate(p)
        if ahead > 0:
            return self.out_of_order(p)
        self.nak_said = False
        if p.name == "READ_REQUEST":
            return self.read(p)
        if p.name in ("FETCH_ADD", "COMPARE_SWAP"):
            return self.atomic(p)
        if self.data(p) and self.state == "RTS":
            self.epsn = (self.epsn + 1) % PSNS
            if "ack" in p.values:
                self.say(f"ACK {p.psn} msn={self.msn}")

    def out_of_order(self, _packet):
        """Once, until the expected packet comes."""
        if not self.nak_said:
            self.nak_said = True
            self.say(f"NAK_PSN {self.epsn} msn={self.msn}")

    def refuse(self, what):
        """9.9.3: a NAK, and the queue pair fails. An unreliable one only loses the message."""
        if self.type != "RC":
            self.message = "LOST"
            return False
        self.say(f"{what} {self.epsn} msn={self.msn}")
        self.fail()
        return False

    def not_ready(self):
        if self.type != "RC":
            self.message = "LOST"
            return False
        self.nak_said = True
        self.say(f"RNR_NAK {self.epsn} msn={self.msn} timer={self.rnr_code}")
        return False

    def is_there(self, key):
        """A key of pieces or a window is only as good as the region behind it."""
        return key not in self.gone and (key == "null" or key not in (*WINDOWS, "joined") or "good" not in self.gone)

    def may(self, key, right, at, count):
        """10.6.3 to 10.6.7: the key, its domain, its right, its bounds."""
        rights = KEYS[key]
        if rights is None or right not in rights or not self.is_there(key):
            return False
        if key in WINDOWS:
            return at >= WINDOW.start and at + count <= WINDOW.stop
        return key == "null" or (0 <= at and at + count <= REGION)

    def may_here(self, key, writes, at, count):
        """The local side needs no right to read."""
        if not count:
            return True
        good = key in ("good", "read_only", "write_only", "joined", "null") and self.is_there(key)
        return good and (not writes or key in LOCAL_WRITE) and (key == "null" or (0 <= at and at + count <= REGION))

    def write(self, key, at, data):
        for i, byte in enumerate(data):
            where = place(key, at + i)
            if where is not None:
                self.memory[where] = byte

    def invalidate(self, key):
        """10.6.7.2.6: of a window that is this queue pair's own."""
        if key not in ("window", "read_window") or key in self.gone:
            return False
        self.gone.add(key)
        return True

    def take(self):
        if self.current is None and self.receives:
            self.current = self.receives.pop(0)
        return self.current is not None

    def data(self, p):
        """A packet of a SEND or WRITE whose turn it is. True: it was executed."""
        kind, place = p.name.split("_")[:2]
        starts, ends, has_imm = place in ("FIRST", "ONLY"), place in ("LAST", "ONLY"), p.name.endswith("_IMM")
        if self.message != (None if starts else kind):
            return self.refuse("NAK_INVALID_REQUEST")
        count = p.number("bytes")
        if (count != MTU) if not ends else not ((0 if starts else 1) <= count <= MTU):
            return self.refuse("NAK_INVALID_REQUEST")
        if starts:
            self.bytes = 0
            if kind == "WRITE":
                self.length, self.address = self.length_due(p), p.number("at")
                if "write" not in self.access:
                    return self.refuse("NAK_INVALID_REQUEST")
                self.key = p.text("rkey", "good")
            elif not self.take():
                return self.not_ready()
        after = self.bytes + count
        if kind == "WRITE":
            # The key may have been taken back since the message began.
            if self.length and not self.may(self.key, "write", self.address, self.length):
                return self.refuse("NAK_REMOTE_ACCESS")
            if (after != self.length) if ends else (after >= self.length):
                return self.refuse("NAK_INVALID_REQUEST")
            if ends and has_imm and not self.take():
                return self.not_ready()
            self.write(self.key, self.address + self.bytes, p.payload())
        else:
            if after > self.current["room"]:
                if self.type == "RC":  # of others the receive request stays (9.9.3, class D)
                    self.complete(False, "LOC_LEN_ERR")
                return self.refuse("NAK_INVALID_REQUEST")
            if self.current["bad_key"]:
                return self.bad_receive()
            self.received_memory[self.bytes:after] = p.payload()
        self.message, self.bytes = kind, after
        if ends:
            self.message = None
            if p.name.endswith("_INV") and not self.invalidate(p.text("rkey", "good")):
                self.complete(False, "LOC_PROT_ERR")
                return self.refuse("NAK_REMOTE_ACCESS")
            self.msn += 1
            if kind == "SEND" or has_imm:
                self.complete(True, f"SUCCESS bytes={self.length_told(p, after)}" + (f" imm={p.number('imm')}" if has_imm else ""))
        return True

    def length_due(self, p):
        """Bytes that a WRITE whose first packet this is brings."""
        return p.number("length", p.number("bytes"))

    def length_told(self, _packet, came):
        """Bytes that its completion reports of a message whose last packet this is."""
        return came

    def bad_receive(self):
        """9.9.3, class A: of every service."""
        self.complete(False, "LOC_PROT_ERR")
        if self.type == "RC":
            return self.refuse("NAK_REMOTE_OPERATIONAL")
        self.fail()
        return False

    def complete(self, _good, how):
        self.received.append(f"receive {self.current['number']} {how}")
        self.current = None

    def read(self, p):
        count, at = p.number("length"), p.number("at")
        if self.message or "read" not in self.access or count > MESSAGE_MAX or self.reads_now >= self.dest_rd_atomic:
            return self.refuse("NAK_INVALID_REQUEST")
        if count and not self.may(p.text("rkey", "good"), "read", at, count):
            return self.refuse("NAK_REMOTE_ACCESS")
        self.msn += 1  # C9-148: when the request is found good
        self.reads_now += 1
        packets = max(1, -(-count // MTU))
        self.resources.append(("READ", p.psn, packets, at, count, None))
        self.answer_read(p.psn, count, f" msn={self.msn}")
        self.epsn = (self.epsn + packets) % PSNS

    def answer_read(self, psn, count, msn):
        packets = max(1, -(-count // MTU))
        for i in range(packets):
            place = "ONLY" if packets == 1 else "FIRST" if i == 0 else "LAST" if i == packets - 1 else "MIDDLE"
            says = msn if place != "MIDDLE" else ""
            self.say(f"READ_RESPONSE_{place} {(psn + i) % PSNS}{says} bytes={min(MTU, count - i * MTU)}")

    def atomic(self, p):
        at = p.number("at")
        if self.message or "atomic" not in self.access or at % 8 or self.reads_now >= self.dest_rd_atomic:
            return self.refuse("NAK_INVALID_REQUEST")
        if not self.may(p.text("rkey", "good"), "atomic", at, 8):
            return self.refuse("NAK_REMOTE_ACCESS")
        at = place(p.text("rkey", "good"), at)
        before = int.from_bytes(self.memory[at:at + 8], "little")
        if p.name == "FETCH_ADD":
            after = (before + p.number("add")) % (1 << 64)
        else:
            after = p.number("swap") if before == p.number("compare") else before
        self.memory[at:at + 8] = after.to_bytes(8, "little")
        self.msn += 1
        self.reads_now += 1
        self.resources.append(("ATOMIC", p.psn, 1, at, 8, before))
        self.say(f"ATOMIC_ACK {p.psn} msn={self.msn} original={before}")
        self.epsn = (self.epsn + 1) % PSNS

    def duplicate(self, p):
        """9.7.5.1.2 and 9.7.5.1.4: SENDs and WRITEs are acknowledged with the newest PSN; READs executed again, within what
        they asked for; atomics answered from memory; what is no longer remembered is ignored. The newest first: PSNs go round."""
        if p.name.startswith(("SEND", "WRITE")):
            return self.say(f"ACK {(self.epsn - 1) % PSNS} msn={self.msn}")
        for kind, psn, packets, at, count, before in reversed(self.resources[-self.dest_rd_atomic:]):
            into = distance(p.psn, psn)
            if not 0 <= into < packets or (kind == "ATOMIC") != (p.name != "READ_REQUEST"):
                continue
            if kind == "ATOMIC":
                return self.say(f"ATOMIC_ACK {p.psn} original={before}")
            if p.number("at") == at + into * MTU and p.number("length") <= count - into * MTU:
                return self.answer_read(p.psn, p.number("length"), "")

    def unreliable(self, p):
        """9.8.2: a message of which a packet is missing is dropped; what begins anew is good."""
        if p.psn != self.epsn:
            self.message = "LOST"
        if p.name.split("_")[1] in ("FIRST", "ONLY"):
            self.message = None
        self.epsn = (p.psn + 1) % PSNS
        if self.message != "LOST":
            self.data(p)

    def datagram(self, p):
        """9.8.3 and 10.2.5: its Q_Key must be the queue pair's; what finds no receive request, or none so long, is lost."""
        if p.number("qkey") == 0x1234 and self.take() and p.number("bytes") + GRH_BYTES <= self.current["room"]:
            if self.current["bad_key"]:
                return self.bad_receive()
            self.received_memory[GRH_BYTES:GRH_BYTES + p.number("bytes")] = p.payload()
            self.complete(True, f"SUCCESS bytes={p.number('bytes') + GRH_BYTES}")

    def receive(self, step):
        number = self.posted_receives
        self.posted_receives += 1
        if self.state == "ERR":
            self.received.append(f"receive {number} WR_FLUSH_ERR")
        else:
            self.receives.append({"number": number, "room": step.psn, "bad_key": step.text("lkey") == "unknown"})

    def fail(self):
        """10.3.1: the error state flushes all that is posted."""
        self.state = "ERR"
        self.sent += [f"send {work.number} WR_FLUSH_ERR" for work in self.works if not work.over]
        if self.current is not None:
            self.complete(False, "WR_FLUSH_ERR")
        self.received += [f"receive {one['number']} WR_FLUSH_ERR" for one in self.receives]
        self.works, self.receives, self.deadline = [], [], None

    # Requester.

    def begin(self, work):
        """What is checked before anything of a message is sent, and again when it goes on. None: good."""
        if work.kind == "LOCAL_INV":
            return None if self.invalidate(work.rkey) else "LOC_QP_OP_ERR"
        return None if self.may_here(work.key, work.is_answered, work.at, work.bytes) else "LOC_PROT_ERR"

    def post(self, step):
        work = self.work_class(self.posted, step, self.next_psn)
        self.posted += 1
        if self.state == "ERR":
            self.sent.append(f"send {work.number} WR_FLUSH_ERR")
            return
        self.next_psn = work.end
        self.works.append(work)
        self.send()

    def asked(self):
        """READs and atomics that were asked for and are not answered."""
        return [w for w in self.works if w.is_answered and not w.done and not w.over and
                distance(w.psn, self.sent_end) < 0 and self.works.index(w) < self.cursor[0]]

    def send(self):
        while self.rnr_until is None and self.cursor[0] < len(self.works):
            work = self.works[self.cursor[0]]
            if work.is_answered and len(self.asked()) >= self.rd_atomic:
                break
            wrong = self.begin(work)
            if wrong:
                return self.fail_work(work, wrong)
            if work.kind == "LOCAL_INV":
                self.cursor = (self.cursor[0] + 1, 0)
                self.complete_works()
                continue
            lines = work.lines()
            psn, text = lines[self.cursor[1]]
            self.say(text)
            last = self.cursor[1] + 1 == len(lines)
            end = work.end if last else (psn + 1) % PSNS
            if distance(end, self.sent_end) > 0:
                self.sent_end = end
            self.cursor = (self.cursor[0] + 1, 0) if last else (self.cursor[0], self.cursor[1] + 1)
            if self.deadline is None:
                self.arm()

    def arm(self):
        """9.7.6.1.3: between T and four times T; cases wait for less than T or for all tries."""
        waits = self.timeout and distance(self.sent_end, self.una) > 0
        self.deadline = self.now + 4096 * (1 << self.timeout) if waits else None

    def go_back(self, psn):
        self.cursor = (len(self.works), 0)
        for i, work in enumerate(self.works):
            if not work.over and distance(work.end, psn) > 0:
                self.cursor = (i, 0 if work.is_answered else max(0, distance(psn, work.psn)))
                break
        self.arm()
        self.send()

    def retry(self, psn):
        if self.retries == 0:
            return self.fail_at(self.una, "RETRY_EXC_ERR")
        self.retries -= 1
        self.go_back(psn)

    def on_gap(self, p):
        self.retry(p.psn)

    def fail_at(self, psn, status):
        for work in self.works:
            if not work.over and distance(work.end, psn) > 0:
                return self.fail_work(work, status)
        self.fail()

    def fail_work(self, work, status):
        """What is before it and not acknowledged can no longer be known to be done."""
        for other in self.works:
            if not other.over and other.number <= work.number:
                other.over = True
                self.sent.append(f"send {other.number} {status if other is work else 'WR_FLUSH_ERR'}")
        self.fail()

    def acknowledge(self, end):
        """All before `end`; no further than a READ or atomic whose own response is missing (an implied NAK, 9.7.5.2.1).
        Whether `end` was reached."""
        waiting = self.asked()
        if waiting:
            pending = (waiting[0].psn + waiting[0].responded) % PSNS
            if distance(end, pending) > 0:
                self.progress(pending)
                if self.implied != pending:
                    self.implied = pending
                    self.retry(pending)
                return False
        self.progress(end)
        return True

    def progress(self, end):
        if distance(end, self.una) <= 0:
            return
        self.una = end
        self.retries, self.rnr_retries = self.retry_cnt, self.rnr_retry
        self.complete_works()
        self.arm()
        self.send()

    def complete_works(self):
        for i, work in enumerate(self.works):
            if work.over:
                continue
            if i >= self.cursor[0] or distance(work.end, self.una) > 0 or (work.is_answered and not work.done):
                break
            work.over = True
            self.sent.append(f"send {work.number} SUCCESS")

    def response(self, p):
        if self.type != "RC" or distance(p.psn, self.una) < 0 or distance(p.psn, self.sent_end) >= 0:
            return  # a duplicate, or a ghost
        if p.name.startswith(("READ_RESPONSE", "ATOMIC_ACK")):
            return self.answer(p)
        if p.name == "ACK":
            return self.acknowledge((p.psn + 1) % PSNS)
        if not self.acknowledge(p.psn) or self.state != "RTS":
            return
        if p.name == "NAK_PSN":
            return self.on_gap(p)
        if p.name == "RNR_NAK":
            return self.on_rnr(p)
        codes = {"NAK_INVALID_REQUEST": "REM_INV_REQ_ERR", "NAK_REMOTE_ACCESS": "REM_ACCESS_ERR",
                 "NAK_INVALID_RD_REQUEST": "REM_INV_REQ_ERR", "NAK_REMOTE_OPERATIONAL": "REM_OP_ERR"}
        self.fail_at(p.psn, codes.get(p.name, "BAD_RESP_ERR"))  # what is reserved is a bad response

    def on_rnr(self, p):
        """9.7.5.2.8: not before the time that it names; 7 tries are for ever."""
        if self.rnr_retries == 0:
            return self.fail_at(p.psn, "RNR_RETRY_EXC_ERR")
        if self.rnr_retry != 7:
            self.rnr_retries -= 1
        self.rnr_until = self.now + RNR_TENS[p.number("timer")] * 10_000
        self.go_back(p.psn)
        self.deadline = None

    def answer(self, p):
        """9.7.5.2.1 and 9.7.5.2.7: in order; another length or place than was asked for is a bad response."""
        waiting = self.asked()
        if not waiting:
            return
        work = waiting[0]
        expected = (work.psn + work.responded) % PSNS
        ahead = distance(p.psn, expected)
        if ahead < 0:
            return
        if ahead > 0 or (work.kind == "READ") != p.name.startswith("READ"):
            return self.acknowledge((p.psn + 1) % PSNS)
        if p.number("syndrome", 0x1F) >> 5 and "MIDDLE" not in p.name:  # a response says that it is none
            return self.fail_at(work.psn, "BAD_RESP_ERR")
        if work.kind == "READ":
            last = work.responded + 1 == work.packets
            wrong_place = (p.name[14:] in ("LAST", "ONLY")) != last or (
                work.responded == 0 and p.name[14:] not in ("FIRST", "ONLY"))
            if wrong_place or p.number("bytes") != min(MTU, work.bytes - work.responded * MTU):
                return self.fail_at(work.psn, "BAD_RESP_ERR")
            if not self.may_here(work.key, True, work.at, work.bytes):
                return self.fail_work(work, "LOC_PROT_ERR")
            self.write(work.key, work.at + work.responded * MTU, p.payload())
        else:
            if not self.may_here(work.key, True, work.at, work.bytes):
                return self.fail_work(work, "LOC_PROT_ERR")
            self.write(work.key, work.at, p.number("original").to_bytes(8, "little"))
        work.responded += 1
        work.done = work.responded == work.packets
        self.progress((p.psn + 1) % PSNS)
        self.send()


def run(case, make=QueuePair):
    """What the model says of a case: lines as cases have them."""
    qp = make(case.get("qp", {}))
    for step in case["do"]:
        qp.play(step)
    return {"out": qp.out, "completions": qp.sent + qp.received, "state": qp.state,
            "memory": runs(qp.memory), "received": runs(qp.received_memory)}
