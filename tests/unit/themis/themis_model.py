# SPDX-License-Identifier: BSD-3-Clause
"""Executable model of Themis-S and Themis-D ("Enabling Packet Spraying over Commodity RNICs with In-Network Support"),
written from the paper's text alone; section numbers are the paper's.

The model holds the paper's registers, one object a QP, and takes events one at a time; the answer is a list of decisions.
Where the paper is silent or wrong, a named rule of RULES mends it; `rules=frozenset()` is the paper to the letter. PSNs are
those of the wire, 0 to 2^24 - 1; a path is an index below N.
"""
from typing import NamedTuple

PSNS = 1 << 24

# name -> what the paper's letter lacks
RULES = {
    "serial": "PSNs are compared modulo 2^24: one is ahead of another by less than 2^23",
    "window": "only PSNs in [start, start + window) are recorded: a late copy must not mark the next use of its bit",
    "nack_moves_base": "a NACK acknowledges all PSNs before its ePSN, to the sender and so to the window base, too",
    "origin": "bits are counted from the QP's first PSN: a half whose first bits were never used must not be turned over",
    "bounds": "a NACK behind the window base, or of a PSN that no packet has gone beyond, is not understood and passes; "
              "before anything was acknowledged it is told apart: of what came before there was state",
    "reroute_timeouts": "what a timeout sends again takes any path: its own, or the only other one, may be dead for ever",
    "doubt": "where acknowledged PSNs had no packet here, their bits mean nothing for the next round: such a NACK passes",
    "unsprayed": "a request that was not sprayed is in no order with those that were: NACKs of what it may be pass",
    "paths": "a PathMaxPSN counts within a window only: what a path of an N from before has left may be half a round old",
    "far": "a packet beyond any window of the last is neither sent again nor proof of what was sent",
}
ALL = frozenset(RULES)
PAPER = frozenset()
WINDOW_MAX = 1 << 16  # that of any sender
FAR_PACKETS_MAX = 16  # packets outside every window, none inside between them: the QP has begun anew elsewhere


class Decision(NamedTuple):
    """What becomes of one NACK. `action`: forward, block, stash (all three: of the NACK that came), generate (a NACK is made
    from the stash), discard (the stash is given up). `avoid`: the NACK is a Path Avoidance Signal."""
    action: str
    epsn: int
    reason: str
    avoid: bool = False


def distance(a, b):
    """How far PSN `a` is ahead of PSN `b`, negative when it is behind: -2^23 to 2^23 - 1."""
    return (a - b + PSNS // 2) % PSNS - PSNS // 2


class Source:
    """Themis-S for one QP (4.1, 4.4). `draw` of data() is the random number that a reroute uses."""

    def __init__(self, paths, base=0, avoidance_window=2_000_000, rules=ALL):
        self.paths, self.base, self.avoidance_window, self.rules = paths, base, avoidance_window, rules
        self.last_nack_psn = 0 if "serial" not in rules else None  # a register of zeros is no NACK of PSN 0
        self.highest = None  # the PSN that no other was ahead of
        self.answered = False  # the packet that the last NACK asked for has been sent again
        self.after_nacked = False  # the packet before was the one that a NACK asked for
        self.avoidance = [0] * paths  # by PSN mod N: packets of that path yet to be sent elsewhere

    def assigned(self, psn):
        """Equation 1."""
        return (psn % self.paths + self.base) % self.paths

    def data(self, psn, draw=0):
        """The path of one packet; `draw` is a random number of at least 0."""
        path, fair = self.assigned(psn), "reroute_timeouts" in self.rules
        nacked = psn == self.last_nack_psn
        again = self.sent_again(psn, nacked)
        first, self.answered = nacked and not self.answered, self.answered or nacked
        self.after_nacked = nacked
        elsewhere = first or (nacked and not fair)
        if self.avoidance[psn % self.paths]:
            self.avoidance[psn % self.paths] -= 1
            elsewhere = True
        if elsewhere and self.paths > 1:
            return (path + 1 + draw % (self.paths - 1)) % self.paths
        return (path + draw) % self.paths if again and fair else path

    def sent_again(self, psn, nacked):
        """Whether a timeout has sent this packet again. With the packet that a NACK asks for, an RNIC sends the one that it
        sent last once more (2.3): that one keeps its path, so that the order on it still proves losses."""
        by = 1 if self.highest is None else distance(psn, self.highest)
        far = "far" in self.rules and abs(by) > WINDOW_MAX
        again = by <= 0 and not far and not (by == 0 and self.after_nacked and not nacked)
        if by > 0 or far:
            self.highest = psn
        return again

    def nack(self, epsn, avoid=False):
        """A NACK on its way to the sender; `avoid`: it is a Path Avoidance Signal."""
        self.last_nack_psn, self.answered = epsn, False
        if "far" in self.rules and self.highest is not None and not 0 <= distance(self.highest, epsn) <= WINDOW_MAX:
            return  # of what was not sent lately: no path is to be given up for it
        if avoid:
            self.avoidance[epsn % self.paths] = self.avoidance_window


class Destination:
    """Themis-D for one QP (4.2 to 4.4, algorithm 1, appendix A). It exists from the QP's first PSN on.

    paths: N, those that Themis-S uses. window: the sender's largest window, in packets, a power of two (else the bits of
    PSNs do not go round evenly when PSNs wrap). ooo_threshold: in packets, None for never.
    """

    def __init__(self, paths, window, first_psn, ooo_threshold=None, rules=ALL):
        if window < 1 or window & (window - 1):
            raise ValueError("window: a power of two")
        self.paths, self.window, self.ooo_threshold, self.rules = paths, window, ooo_threshold, rules
        self.paths_max = paths  # which set_paths() does not exceed
        self.begin(first_psn)

    def set_paths(self, paths):
        """N from now on, at most as many as at the start. A stash goes over to the new paths."""
        self.paths, self.stash_path = paths, self.stash_psn % paths

    def begin(self, first_psn):
        """All registers as for a new QP."""
        self.start = self.first = first_psn  # start: the paper's epsn_array, the start pointer of the bitmap
        self.origin = first_psn if "origin" in self.rules else 0
        self.bits, self.bases = bytearray(2 * self.window), [0, 0]
        self.path_max = [None] * self.paths_max
        self.stash_valid, self.stash_psn, self.stash_path = False, 0, 0
        self.highest = (first_psn - 1) % PSNS  # the PSN that no other of the QP's packets is ahead of
        self.doubt_until = None  # a NACK before this PSN passes
        self.doubtful = [False, False]  # halves whose bits do not prove that a packet came
        self.far = 0

    def ahead(self, a, b):
        """Whether PSN a > b in the paper's words."""
        return distance(a, b) > 0 if "serial" in self.rules else a > b

    def beyond(self, largest, psn):
        """Whether a PathMaxPSN (None: there is none) is ahead of a PSN of the window: condition C2."""
        if largest is None or ("paths" in self.rules and distance(largest, psn) >= self.window):
            return False
        return self.ahead(largest, psn)

    def place(self, psn):
        """(bit, half) of a PSN."""
        bit = (psn - self.origin) % (2 * self.window)
        return bit, bit // self.window

    def received(self, psn):
        """Condition C1: the bit against the base of its half (appendix A)."""
        bit, half = self.place(psn)
        return self.bits[bit] != self.bases[half]

    def move_start(self, psn):
        """All before `psn` was acknowledged: moves the start pointer, and turns over the base of the half that it leaves."""
        forward = distance(psn, self.start)
        if forward <= 0 or forward > self.window:
            return
        left = self.place(self.start)[1]
        self.start = psn
        if self.place(psn)[1] != left:
            # All of it is acknowledged. What no packet was seen of here reads as received in the next round.
            complete = self.bases[left] not in self.bits[left * self.window:(left + 1) * self.window]
            self.doubtful[left] = "doubt" in self.rules and not complete
            self.bases[left] ^= 1
        if self.doubt_until is not None and distance(psn, self.doubt_until) >= 0:
            self.doubt_until = None  # else it would lie ahead again after half a round of PSNs

    def doubt(self, until):
        if self.doubt_until is None or distance(until, self.doubt_until) > 0:
            self.doubt_until = until % PSNS

    def in_window(self, psn):
        """Whether the packet can be recorded; what cannot is told apart as in RULES."""
        if "window" not in self.rules:
            return True
        at = distance(psn, self.start)
        if 0 <= at < self.window:
            self.far = 0
            return True
        if -self.window <= at < 0:
            return False
        self.far += 1
        if self.far < FAR_PACKETS_MAX:
            return False
        self.begin(psn)
        self.highest = psn
        return True

    def raise_highest(self, psn, width):
        """The highest PSN is that of a READ request's last response, too."""
        last = (psn + width - 1) % PSNS
        if distance(psn, self.highest) < 2 * self.window and distance(last, self.highest) > 0:
            self.highest = last

    def data(self, psn, sprayed=True, width=1):
        """A request leaves for the RNIC, behind all queues. sprayed: Themis-S chose its path by its PSN. width: PSNs that it
        takes (a READ request: those of its responses)."""
        self.raise_highest(psn, width)  # before the window is known: ACKs need the two registers in this order, and so must data
        alone = not sprayed and "unsprayed" in self.rules
        if alone and 0 <= distance(psn, self.start) < 4 * self.window:
            self.doubt(psn + width)
        if not self.in_window(psn):
            return []
        if alone and self.start == psn:
            self.doubt(psn + 1)
        bit, half = self.place(psn)
        self.bits[bit] = 1 - self.bases[half]
        index = psn % self.paths
        if sprayed and not self.beyond(self.path_max[index], psn):
            self.path_max[index] = psn
        return self.resolve(psn, sprayed, alone)

    def resolve(self, psn, sprayed, alone):
        """Lazy dropping (4.3) and the OOO degree (4.4)."""
        if not self.stash_valid:
            return []
        epsn = self.stash_psn
        if psn == epsn:
            self.stash_valid = False
            return [Decision("discard", epsn, "invalid")]
        if alone:
            if distance(psn, epsn) < 0:
                return []
            self.stash_valid = False
            return [Decision("generate", epsn, "doubt")]
        if sprayed and self.ahead(psn, epsn) and psn % self.paths == self.stash_path:
            self.stash_valid = False
            return [Decision("generate", epsn, "valid")]
        degree = distance(psn, epsn) if "serial" in self.rules else (psn - epsn) % (1 << 32)
        if self.ooo_threshold is not None and degree > self.ooo_threshold:
            self.stash_valid = False
            return [Decision("generate", epsn, "ooo_degree", True)]
        return []

    def nack(self, epsn):
        """A NACK (PSN sequence error) from the RNIC: algorithm 1, then the stash."""
        if "bounds" in self.rules:
            if distance(epsn, self.start) < 0:
                return [Decision("forward", epsn, "before_state" if self.start == self.first else "behind_window")]
            if distance(epsn, self.start) > self.window or distance(self.highest, epsn) < 0:
                return [Decision("forward", epsn, "ahead_of_data")]
        if "nack_moves_base" in self.rules:
            self.move_start(epsn)
        if self.doubt_until is not None and distance(self.doubt_until, epsn) > 0:
            return [Decision("forward", epsn, "doubt")]
        if self.received(epsn):
            if self.doubtful[self.place(epsn)[1]]:
                return [Decision("forward", epsn, "doubt")]
            return [Decision("block", epsn, "invalid")]
        if self.beyond(self.path_max[epsn % self.paths], epsn):
            return [Decision("forward", epsn, "valid")]
        self.stash_valid, self.stash_psn, self.stash_path = True, epsn, epsn % self.paths
        return [Decision("stash", epsn, "undetermined")]

    def ack(self, psn):
        """An ACK from the RNIC: all up to `psn` came. The window base follows it (appendix A)."""
        if "bounds" in self.rules and distance(psn, self.highest) > 0:
            return []
        decisions, to = [], (psn + 1) % PSNS
        self.move_start(to)
        jumps = "doubt" in self.rules and distance(to, self.start) > 0
        beyond = to if jumps else self.start
        if "nack_moves_base" in self.rules and self.stash_valid and distance(beyond, self.stash_psn) > 0:
            self.stash_valid = False
            decisions = [Decision("discard", self.stash_psn, "acknowledged")]
        if jumps:
            self.jump(to)
        return decisions

    def jump(self, to):
        """More PSNs than a window were acknowledged at once, as those of a long READ: the QP begins anew there. Of what has
        left since nothing is known."""
        highest = self.highest
        self.begin(to)
        self.highest = highest
        ahead = distance(highest, to) + 1
        for number in range(min(ahead, self.window)):
            self.bits[number] = 1
        if ahead > 0:
            self.doubt(highest + 1)

    def other_nak(self, psn):
        """A NAK of another kind (RNR, errors) always passes. The RNIC has thrown away what had already left for it."""
        if "nack_moves_base" in self.rules:
            self.ack((psn - 1) % PSNS)
        if "doubt" in self.rules:
            self.doubt(self.highest + 1)
        return [Decision("forward", psn, "other_nak")]

    def age(self):
        """The stash has waited for longer than paths can differ (not in the paper): in doubt the NACK passes."""
        if not self.stash_valid:
            return []
        self.stash_valid = False
        return [Decision("generate", self.stash_psn, "aged")]


class DestinationTable:
    """Themis-D for many QPs. keys: what pairs the two directions of a QP; a NACK of an unknown key passes."""

    def __init__(self, paths, window, ooo_threshold=None, rules=ALL, qps_max=8192):
        self.config, self.qps_max, self.qps = (paths, window, ooo_threshold, rules), qps_max, {}

    def open(self, key, first_psn):
        """A QP begins; False when the table is full: it stays on plain ECMP."""
        if key not in self.qps and len(self.qps) >= self.qps_max:
            return False
        paths, window, ooo_threshold, rules = self.config
        self.qps[key] = Destination(paths, window, first_psn, ooo_threshold, rules)
        return True

    def data(self, key, psn):
        return self.qps[key].data(psn) if key in self.qps else []

    def ack(self, key, psn):
        return self.qps[key].ack(psn) if key in self.qps else []

    def nack(self, key, epsn):
        return self.qps[key].nack(epsn) if key in self.qps else [Decision("forward", epsn, "unpaired")]
