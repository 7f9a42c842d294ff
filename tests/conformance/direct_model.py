# SPDX-License-Identifier: BSD-3-Clause
"""What a queue pair must do whose WRITEs are placed as they come: by the papers and nic_model/README.md, not by the NIC's code.

`rnic_sr`: Themis, 2.2 and 2.3. Each packet of a WRITE has a RETH of its own, so it is a WRITE ONLY. The receiver has an ePSN and a
bitmap of what came ahead of it. A packet whose PSN is larger than ePSN brings one NACK for each ePSN, which carries the ePSN alone. The
sender sends the packet that it names again, and the one that it sent last. A copy of what the bitmap has is such a packet, too.
`selective`: IRN (SIGCOMM 2018), 3.1. Each packet out of order brings a NACK with the ePSN and its own PSN (in the AETH's MSN). The
sender sends what is missing below the highest PSN named again, each once, until all that had been sent when this began is acknowledged.
Of a WRITE that is not kept, as there is no room for it or something wrong with it, the NACK names the ePSN instead.
`timeout_only`: the receiver says nothing of gaps.

What is not a WRITE is not kept ahead of its turn. So where the packet that a NACK asks for is none, or a WRITE was not kept, the sender goes
back to it as the specification's does, once for each ePSN, and without counting a retry (README.md). Messages complete in order. The
specification's rules hold for all else."""
from model import MTU, PSNS, QueuePair, Work, distance, run

RECOVERIES = ("rnic_sr", "selective", "timeout_only")
WHOLE_WRITES = ("WRITE_ONLY", "WRITE_ONLY_IMM")
WINDOW = 512  # packets that a sender has on their way, by default; a receiver keeps no more than twice as many ahead


class DirectWork(Work):
    def lines(self):
        if self.kind != "WRITE":
            return super().lines()
        rows = []
        for i in range(self.packets):
            psn, count = (self.psn + i) % PSNS, min(MTU, self.bytes - i * MTU)
            rows.append((psn, f"WRITE_ONLY {psn} bytes={count} length={count} at={i * MTU}"))
        return rows


class DirectQueuePair(QueuePair):
    work_class = DirectWork

    def __init__(self, qp, recovery):
        super().__init__(qp)
        self.recovery = recovery
        self.ahead = {}  # by PSN: WRITEs that were placed and wait for their turn
        self.due = None  # an ACK
        self.is_placed = False  # what is executed came before
        # `selective`'s sender.
        self.named, self.highest, self.hole, self.recovery_end = set(), None, None, None
        self.went_back_to = None

    # Receiver.

    def length_due(self, p):
        """With an immediate the RETH has the message's length, of which this packet brings the end."""
        said = super().length_due(p)
        return min(said, p.number("bytes")) if p.name == "WRITE_ONLY_IMM" and self.type == "RC" else said

    def length_told(self, p, came):
        return super().length_due(p) if p.name == "WRITE_ONLY_IMM" and self.type == "RC" else came

    def reliable(self, p):
        if p.psn != self.epsn or not self.ahead:
            self.is_placed = False
            return super().reliable(p)
        self.nak_said = self.is_placed = False
        if self.covers_ahead(p):
            return self.refuse("NAK_INVALID_REQUEST")
        if not self.executed(p):
            return
        while self.state == "RTS" and self.epsn in self.ahead:  # ePSN goes on to the first PSN that has not come
            self.is_placed = True
            if not self.executed(self.ahead.pop(self.epsn)):
                return
        self.say_due()

    def write(self, key, at, payload):
        """Bytes are placed when they come, not when their turn does."""
        if not self.is_placed:
            super().write(key, at, payload)

    def executed(self, p):
        """In its turn: what completes a message does it now. One ACK says it of all that come to their turn at once."""
        if p.name in ("READ_REQUEST", "FETCH_ADD", "COMPARE_SWAP"):
            (self.read if p.name == "READ_REQUEST" else self.atomic)(p)
            return self.state == "RTS"
        if not self.data(p) or self.state != "RTS":
            return False
        self.epsn = (self.epsn + 1) % PSNS
        if "ack" in p.values:
            self.due = f"ACK {p.psn} msn={self.msn}"
        return True

    def covers_ahead(self, p):
        """Two requests would have the same PSN."""
        packets = max(1, -(-p.number("length") // MTU)) if p.name == "READ_REQUEST" else 1
        return any(0 <= distance(psn, p.psn) < packets for psn in self.ahead)

    def say_due(self):
        if self.due:
            self.say(self.due)
        self.due = None

    def not_ready(self):
        self.say_due()
        return super().not_ready()

    def refuse(self, what):
        self.say_due()
        return super().refuse(what)

    def out_of_order(self, p):
        if self.is_good_ahead(p) and p.psn not in self.ahead:
            self.ahead[p.psn] = p
            self.write(p.text("rkey", "good"), p.number("at"), p.payload())
        if self.recovery == "rnic_sr":
            super().out_of_order(p)
        elif self.recovery == "selective":
            shown = p.psn if p.psn in self.ahead or not p.name.startswith("WRITE") else self.epsn
            self.say(f"NAK_PSN {self.epsn} msn={shown}")

    def is_good_ahead(self, p):
        """What is wrong with it is said in its turn (9.7.4.1: the PSN first)."""
        count = p.number("bytes")
        length = p.number("length", count)
        return (p.name in WHOLE_WRITES and "write" in self.access and distance(p.psn, self.epsn) < 2 * WINDOW and
                (length >= count if p.name == "WRITE_ONLY_IMM" else length == count) and
                (not count or self.may(p.text("rkey", "good"), "write", p.number("at"), count)))

    # Sender.

    def packet_of(self, psn):
        """The work request that a PSN is of, and the packet that brings it: of a READ there is one, its request."""
        for work in self.works:
            if not work.over and distance(psn, work.psn) >= 0 and distance(work.end, psn) > 0:
                rows = work.lines()
                return work, rows[0] if work.is_answered else rows[distance(psn, work.psn)]
        return None, None

    def say_again(self, psn):
        work, row = self.packet_of(psn)
        if work is None or self.state != "RTS":
            return
        wrong = self.begin(work)
        if wrong:
            return self.fail_work(work, wrong)
        self.say(row[1])

    def on_gap(self, p):
        """It costs no retry: `selective` says one for each packet that comes."""
        if self.recovery == "timeout_only":
            return
        if self.packet_of(p.psn)[0].kind != "WRITE" or (self.recovery == "selective" and p.number("msn") == p.psn):
            return self.go_back_once(p.psn)
        if self.recovery == "rnic_sr":
            last = self.packet_of((self.sent_end - 1) % PSNS)[1][0]
            for psn in dict.fromkeys((p.psn, last)):
                self.say_again(psn)
        elif self.recovery == "selective":
            self.on_selective(p.number("msn"))
        self.arm()

    def go_back_once(self, psn):
        if psn == self.went_back_to or self.rnr_until is not None:  # then all of it is still to be sent
            return
        self.forget()
        self.went_back_to = psn
        self.go_back(psn)

    def on_rnr(self, p):
        self.forget()
        super().on_rnr(p)

    def on_selective(self, came):
        """What lies ahead of ePSN and was sent shows what is missing."""
        if not distance(came, self.una) > 0 > distance(came, self.sent_end):
            return
        if self.recovery_end is None:
            self.recovery_end, self.hole, self.highest = self.sent_end, self.una, self.una
        work, _ = self.packet_of(came)
        # What is no WRITE was not kept: it shows what is missing, and is missing itself.
        kept = work.kind == "WRITE"
        if kept:
            self.named.add(came)
        highest = came if kept else (came + 1) % PSNS
        if distance(highest, self.highest) > 0:
            self.highest = highest
        if distance(self.hole, self.una) < 0:
            self.hole = self.una
        while distance(self.hole, self.highest) < 0 and self.state == "RTS":
            work, row = self.packet_of(self.hole)
            if self.hole not in self.named:
                self.say_again(row[0])
            self.hole = work.end if work.is_answered else (self.hole + 1) % PSNS

    def progress(self, end):
        super().progress(end)
        if self.recovery_end is not None and distance(self.una, self.recovery_end) >= 0:
            self.forget()

    def retry(self, psn):
        self.forget()
        super().retry(psn)

    def forget(self):
        """Where all is sent again, too."""
        self.named, self.recovery_end, self.went_back_to = set(), None, None


def run_with(recovery, case):
    return run(case, lambda qp: DirectQueuePair(qp, recovery))
