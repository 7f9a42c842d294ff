// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/counters.h"

namespace rocebox::link {

Counters::Counters(Stats& s, const std::string& p)
    : packets(s.counter(p + "packets", "came in, copies not counted")),
      bytes(s.counter(p + "bytes", "frame bytes on the wire that came in")),
      delivered(s.counter(p + "delivered", "left at the far end, copies counted")),
      drop_down(s.counter(p + "drop_down", "came while `up` was false")),
      drop_loss(s.counter(p + "drop_loss", "lost by `loss`")),
      drop_burst_loss(s.counter(p + "drop_burst_loss", "lost by `burst_loss`")),
      drop_event(s.counter(p + "drop_event", "dropped by an explicit event")),
      drop_queue_full(s.counter(p + "drop_queue_full", "found no room before the transmitter")),
      drop_held_full(s.counter(p + "drop_held_full", "more on their way than `packets` allows")),
      corrupted(s.counter(p + "corrupted", "had bits flipped")),
      corrupted_icrc_repaired(s.counter(p + "corrupted_icrc_repaired", "of these, with an ICRC that does not tell")),
      duplicated(s.counter(p + "duplicated", "copies made")),
      copy_failed(s.counter(p + "copy_failed", "copies not made: pool dry or beyond 16 of a packet")),
      reordered(s.counter(p + "reordered", "held back to let later packets go first")),
      reorder_refused(s.counter(p + "reorder_refused", "kept in order: 64 were held back already")),
      reorder_timeout(s.counter(p + "reorder_timeout", "held back until the time limit")),
      trimmed(s.counter(p + "trimmed", "cut to their headers")),
      ecn_marked(s.counter(p + "ecn_marked", "ECN capable packets marked CE")),
      ecn_not_ect(s.counter(p + "ecn_not_ect", "to be marked, but not ECN capable")),
      events_fired(s.counter(p + "events_fired", "explicit events that met their packet")),
      events_not_applied(s.counter(p + "events_not_applied", "fired, but the packet did not allow it")),
      queue_bytes_max(s.peak(p + "queue_bytes_max", "most bytes before the transmitter so far")) {}

}  // namespace rocebox::link
