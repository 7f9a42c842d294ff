# SPDX-License-Identifier: BSD-3-Clause
"""A commodity RNIC with selective repeat (RNIC-SR), from section 2.3. Packets are counted from 0 here; only the wire has PSNs.

What the section does not say, and what is chosen here: an ACK is sent for each `ack_every` packets in order, for the last
packet of what was posted, and for each duplicate; a NACK acknowledges all before its ePSN (InfiniBand, 9.7.5.1.1); after a
timeout either the oldest packet is sent again or all that are not acknowledged.
"""


class Receiver:
    """The responder's side of one QP."""

    def __init__(self, ack_every):
        self.ack_every, self.expected, self.out_of_order = ack_every, 0, set()
        self.nacked = -1  # the last packet for which a NACK was sent
        self.unacked = 0  # packets in order since the last ACK

    def packet(self, number, ack_request):
        """One packet; returns ("ack", last packet in order), ("nack", expected packet) or None."""
        if number > self.expected:
            self.out_of_order.add(number)
            if self.nacked == self.expected:
                return None
            self.nacked, self.unacked = self.expected, 0
            return "nack", self.expected
        if number < self.expected:
            return "ack", self.expected - 1
        before = self.expected
        self.expected += 1
        while self.expected in self.out_of_order:
            self.out_of_order.discard(self.expected)
            self.expected += 1
        self.unacked += self.expected - before
        if self.unacked >= self.ack_every or (ack_request and not self.out_of_order):
            self.unacked = 0
            return "ack", self.expected - 1
        return None


class Sender:
    """The requester's side of one QP. `queue` holds packets to be sent again, which go before new ones."""

    def __init__(self, window, go_back):
        self.window, self.go_back = window, go_back
        self.oldest = self.next = self.posted = 0
        self.queue, self.last_sent = [], None

    def take(self):
        """The next packet to send, (number, whether it is sent again), or None when the window is full or nothing is posted."""
        while self.queue:
            number = self.queue.pop(0)
            if number >= self.oldest:
                self.last_sent = number
                return number, True
        if self.next < self.posted and self.next < self.oldest + self.window:
            self.last_sent = self.next
            self.next += 1
            return self.last_sent, False
        return None

    def ack(self, number):
        self.oldest = max(self.oldest, number + 1)

    def nack(self, expected):
        """Two packets are sent again: the expected one, and the one that was sent last."""
        self.oldest = max(self.oldest, expected)
        if expected >= self.oldest:
            first = [expected] + ([self.last_sent] if self.last_sent != expected else [])
            self.queue = first + [number for number in self.queue if number not in first]

    def timeout(self):
        """Returns the packets that will be sent again."""
        self.queue = list(range(self.oldest, self.next)) if self.go_back else [self.oldest]
        return self.queue
