// SPDX-License-Identifier: BSD-3-Clause
// PsnTracker: beginnings and restarts of a stream, its messages, and the responses to them.
#include <algorithm>

#include "kernels/inspect/psn_tracker.h"

namespace rocebox::inspect {

void PsnTracker::start(PsnStream& stream, Entry* ring, const PsnPacket& packet) const {
  stream.used = true;
  stream.fresh = stream.told = stream.closed = false;
  stream.base = packet.now;
  stream.first = stream.ring_low = stream.next_size = stream.next_response = packet.psn;
  stream.newest_id = packet.id;
  stream.stale_ids = 0;
  fill_new(stream, ring, packet.psn, packet);
  stream.expected = packet.trimmed ? stream.first : stream.high + 1;
}

// Whether a handshake or a disconnect that passed makes the stream begin anew with this packet.
bool PsnTracker::told(PsnStream& stream, const PsnPacket& packet) const {
  if (stream.told && roce::psn_in_window(packet.psn, stream.told_psn, window_)) return true;
  if (!stream.closed || !packet.starts) return false;
  stream.closed = false;
  return unwrapped(stream, packet.psn) != stream.high + 1;  // else one that the disconnect overtook
}

void PsnTracker::begin_anew(PsnStream& stream, const Entry* ring) const {
  if (!stream.used || stream.fresh) return;
  give_up_run(stream);
  if (!sparse_) {
    size_messages(stream, ring, true);
    stream.missing_before += stream.span() - stream.unique;
  }
  stream.unique_before += stream.unique;
  stream.unique = 0;
  stream.asked_count = 0;
  stream.resumed_at = 0;
  stream.complete = stream.old_was_sent_again = stream.repeat_explained = false;
  stream.size_open = stream.time_open = stream.responded_once = false;
  stream.fresh = true;
}

// The packets of the run were just old.
void PsnTracker::give_up_run(PsnStream& stream) const {
  stream.beyond_window += stream.run_length;
  if (!sparse_ && stream.run[0].reliable) stream.duplicate_requests += stream.run_length;
  stream.run_length = 0;
}

// A packet below the window. The sender of a message start that is followed by the PSNs behind it, none of which
// is waiting for its acknowledgement, is another one: the QP began anew.
PsnClass PsnTracker::beyond(PsnStream& stream, Entry* ring, IdEvidence& evidence, std::int64_t psn,
                            const PsnPacket& packet) const {
  const bool goes_on = stream.run_length > 0 && packet.psn == stream.run_next;
  if (!goes_on) give_up_run(stream);
  const bool outstanding = stream.responded_once && psn >= stream.next_response;
  const bool begins = packet.starts && !sparse_ && !outstanding;
  stream.run[stream.run_length] = packet;
  stream.run_length++;
  stream.run_next = roce::psn_add(packet.psn, packet.width);
  if (!goes_on && !begins) {
    give_up_run(stream);
    return PsnClass::kBeyondWindow;
  }
  if (stream.run_length < kRestartRun) return PsnClass::kBeyondWindow;
  const auto run = stream.run;
  stream.run_length = 0;
  begin_anew(stream, ring);
  stream.restarts++;
  start(stream, ring, run[0]);
  for (unsigned i = 1; i < kRestartRun; i++) place(stream, ring, evidence, run[i]);
  return PsnClass::kRestart;
}

// What a go-back-N responder at this place would do with the request.
void PsnTracker::respond(PsnStream& stream, std::int64_t psn, const PsnPacket& packet) const {
  if (sparse_ || !packet.reliable || packet.trimmed) return;
  const std::int64_t end = psn + packet.width;
  if (psn > stream.expected) {
    stream.out_of_sequence++;
    if (psn - stream.expected > window_) stream.expected = end;  // what is missing will not come any more
    return;
  }
  if (psn < stream.expected) stream.duplicate_requests++;
  stream.expected = std::max(stream.expected, end);
}

// Goes on over the PSNs that were seen whole, message by message. Each PSN is passed once.
void PsnTracker::size_messages(PsnStream& stream, const Entry* ring, bool skip_holes) const {
  if (stream.fresh) return;
  if (stream.next_size < low(stream)) {
    stream.next_size = low(stream);
    stream.size_open = false;
  }
  for (; stream.next_size <= stream.high; stream.next_size++) {
    const Entry& entry = at(ring, stream.next_size);
    if (!entry.has(Entry::kSeen) || entry.has(Entry::kTrimmed)) {
      if (!skip_holes) return;
      stream.size_open = false;
      continue;
    }
    size_next(stream, entry);
  }
}

void PsnTracker::size_next(PsnStream& stream, const Entry& entry) {
  if (entry.has(Entry::kStart)) {
    stream.size_open = true;
    stream.open_size = 0;
  }
  if (entry.has(Entry::kUnsized)) stream.size_open = false;
  if (!stream.size_open) return;
  stream.open_size += entry.size;
  if (!entry.has(Entry::kEnd)) return;
  stream.sizes.add(stream.open_size);
  stream.size_open = false;
}

void PsnTracker::widen(PsnStream& stream, Entry* ring, std::uint32_t width) const {
  if (width <= 1) return;
  Entry& was = at(ring, stream.high);
  const std::uint16_t end = was.flags & Entry::kEnd;
  Entry inside = was;
  inside.size = 0;
  inside.flags &= static_cast<std::uint16_t>(~(Entry::kEnd | Entry::kStart | Entry::kAsks | Entry::kAnswered));
  inside.flags |= Entry::kInside;
  was.flags &= static_cast<std::uint16_t>(~Entry::kEnd);
  const std::int64_t last = stream.high + width - 1;
  fill(ring, stream.high + 1, last, inside);
  at(ring, last).flags |= end;
  if (stream.expected == stream.high + 1) stream.expected = last + 1;
  stream.high = last;
  stream.unique += width - 1;
}

bool PsnTracker::responded(const PsnStream& stream, Entry* ring, std::uint32_t psn, Nanos now, Nanos& rtt) const {
  if (!stream.used || stream.fresh) return false;
  const std::int64_t asked = unwrapped(stream, psn);
  if (asked > stream.high || asked < low(stream)) return false;
  Entry& entry = at(ring, asked);
  if (!entry.has(Entry::kSeen) || entry.has(Entry::kAnswered)) return false;
  entry.flags |= Entry::kAnswered;
  if (entry.flags & (Entry::kAgain | Entry::kTrimmed)) return false;
  rtt = now - entry.time;
  return true;
}

void PsnTracker::acknowledge(PsnStream& stream, const Entry* ring, std::uint32_t last, Nanos now,
                             Histogram& completion) const {
  if (!stream.used || stream.fresh) return;
  const std::int64_t end = unwrapped(stream, last);
  if (end > stream.high || end < stream.next_response) return;
  stream.responded_once = true;
  stream.expected = std::max(stream.expected, end + 1);
  if (stream.next_response < low(stream)) stream.time_open = false;  // what is between is forgotten
  bool asks_again = false;
  for (std::int64_t psn = std::max(stream.next_response, low(stream)); psn <= end; psn++) {
    const Entry& entry = at(ring, psn);
    // An implied NAK (IB specification, volume 1, 9.7.5.2.1): the response to a READ or atomic is missing.
    if (!asks_again && entry.has(Entry::kAsks) && !entry.has(Entry::kAnswered)) {
      asks_again = stream.repeat_explained = true;
      stream.asked_first = static_cast<std::uint32_t>(psn) & roce::kPsnMask;
      stream.asked_count = 1;
    }
    if (!entry.has(Entry::kSeen)) {
      stream.time_open = false;
      continue;
    }
    if (entry.has(Entry::kStart)) {
      stream.time_open = true;
      stream.open_time = entry.time;
    }
    if (!entry.has(Entry::kEnd) || !stream.time_open) continue;
    completion.add(now - stream.open_time);
    stream.time_open = false;
  }
  stream.next_response = end + 1;
}

}  // namespace rocebox::inspect
