# SPDX-License-Identifier: BSD-3-Clause
"""What LoWAR(r, c) should leave unrepaired, from the coding's definition alone: no code and no number of the kernel's.

A block of r data packets is followed by c repair packets. Repair packet j is the XOR of the data packets j, j + c, j + 2c, ...
so a lost data packet is rebuilt when everything else in its group, the repair packet too, has arrived. The link is a
two-state Markov chain (Gilbert-Elliott) that takes a step at every packet and loses all that pass in its bad state.
"""


def chain(loss, burst=None):
    """(enter, leave): the chain with this share of packets lost in bursts of this mean length; None: independent losses."""
    leave = 1 - loss if burst is None else 1 / burst
    return loss * leave / (1 - loss), leave


def residual_loss(r, c, enter, leave):
    """The share of data packets that stays lost, of a stream of whole blocks."""
    bad = enter / (enter + leave)
    stays = 0.0
    for group in range(c):
        members = [*range(group, r, c), r + group]
        for packet in members[:-1]:
            stays += bad - alone(packet, members, bad, enter, leave)
    return stays / r


def alone(packet, members, bad, enter, leave):
    """The probability that `packet` is lost and nothing else of its group is."""
    good_state, bad_state, inside = 1 - bad, bad, set(members)
    for at in range(members[-1] + 1):
        if at:
            good_state, bad_state = good_state * (1 - enter) + bad_state * leave, good_state * enter + bad_state * (1 - leave)
        if at == packet:
            good_state = 0.0
        elif at in inside:
            bad_state = 0.0
    return good_state + bad_state
