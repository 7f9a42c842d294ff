// SPDX-License-Identifier: BSD-3-Clause
// PsnTracker: where a packet's PSN stands, and what class that gives it.
#include "kernels/inspect/psn_tracker.h"

#include <algorithm>

namespace rocebox::inspect {
namespace {

// A sender whose in-order packets keep older identifications than the newest one was idle for half
// the ID space.
constexpr unsigned kStaleIdsMax = 8;

bool newer_id(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) > 0;
}

}  // namespace

PsnTracker::Entry PsnTracker::seen_by(const PsnPacket& packet) {
  Entry entry{packet.now, packet.size, packet.id, Entry::kSeen};
  if (packet.trimmed) entry.flags |= Entry::kTrimmed;
  if (!packet.sized) entry.flags |= Entry::kUnsized;
  return entry;
}

// Of a packet's first PSN alone.
std::uint16_t PsnTracker::first_flags(const PsnPacket& packet) {
  return static_cast<std::uint16_t>((packet.starts ? Entry::kStart : 0) | (packet.asks ? Entry::kAsks : 0));
}

bool PsnTracker::newer_than(const PsnPacket& packet, const Entry& entry) { return newer_id(packet.id, entry.id); }

std::int64_t PsnTracker::low(const PsnStream& stream) const {
  return std::max(stream.ring_low, stream.high - window_ + 1);
}

// A PSN below all that was written is as old as the stream, and no flags.
PsnTracker::Entry PsnTracker::read(const PsnStream& stream, const Entry* ring, std::int64_t psn) const {
  return psn < low(stream) || psn > stream.high ? Entry{stream.base, 0, 0, 0} : at(ring, psn);
}

void PsnTracker::fill(Entry* ring, std::int64_t from, std::int64_t to, const Entry& value) const {
  for (std::int64_t psn = std::max(from, to - window_ + 1); psn <= to; psn++) at(ring, psn) = value;
}

// The packet's PSNs are new and the highest.
void PsnTracker::fill_new(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const {
  Entry seen = seen_by(packet);
  const std::int64_t last = psn + packet.width - 1;
  if (packet.width > 1) {
    Entry inside = seen;
    inside.size = 0;
    inside.flags |= Entry::kInside;
    fill(ring, psn + 1, last, inside);
  }
  seen.flags |= first_flags(packet);
  if (packet.width <= window_) at(ring, psn) = seen;
  stream.high = last;
  stream.unique += packet.width;
  stream.complete = packet.ends;
  if (packet.trimmed)
    stream.only_trimmed++;
  else
    stream.unique_payload += packet.payload;
  if (packet.ends) end_message(stream, at(ring, last), packet);
}

void PsnTracker::end_message(PsnStream& stream, Entry& entry, const PsnPacket& packet) const {
  if (entry.has(Entry::kEnd) || packet.trimmed) return;
  entry.flags |= Entry::kEnd;
  stream.messages++;
}

PsnClass PsnTracker::add(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const {
  PsnClass what = PsnClass::kFirst;
  stream.trimmed += packet.trimmed;
  if (!stream.used || stream.fresh || told(stream, packet)) {
    if (stream.used) {
      begin_anew(stream, ring);
      stream.restarts++;
      what = PsnClass::kRestart;
    }
    start(stream, ring, packet);
  } else {
    what = place(stream, ring, evidence, packet);
  }
  stream.last_time = packet.now;
  if (!sparse_ && packet.reliable) size_messages(stream, ring, false);
  return what;
}

PsnClass PsnTracker::place(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const {
  const std::int64_t psn = unwrapped(stream, packet.psn);
  const bool newer = packet.has_id && newer_id(packet.id, stream.newest_id);
  const bool ahead = psn > stream.high;
  PsnClass what = PsnClass::kBeyondWindow;
  if (ahead) {
    if (packet.has_id) evidence.note(newer);
    what = advance(stream, ring, psn, packet);
  } else if (stream.high - psn < window_) {
    respond(stream, psn, packet);
    what = classify(stream, read(stream, ring, psn), packet, evidence, psn);
    repeat(stream, ring, psn, what, packet);
  } else {
    return beyond(stream, ring, evidence, psn, packet);
  }
  see_id(stream, packet, newer, ahead);
  return what;
}

void PsnTracker::see_id(PsnStream& stream, const PsnPacket& packet, bool newer, bool ahead) {
  if (!newer && ahead) stream.stale_ids++;
  if (!newer && !(ahead && stream.stale_ids == kStaleIdsMax)) return;
  stream.newest_id = packet.id;
  stream.stale_ids = 0;
}

bool PsnTracker::add_next(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const {
  const std::int64_t psn = stream.high + 1;
  const bool plain = stream.used && !stream.fresh && !stream.told && !stream.closed && stream.run_length == 0;
  if (!plain || packet.psn != (static_cast<std::uint32_t>(psn) & roce::kPsnMask)) return false;
  if (packet.width != 1 || packet.trimmed) return false;
  const bool counts_responses = !sparse_ && packet.reliable;
  if (counts_responses && (stream.expected != psn || stream.next_size != psn)) return false;
  Entry entry = seen_by(packet);
  entry.flags |= first_flags(packet);
  if (packet.ends) entry.flags |= Entry::kEnd;
  at(ring, psn) = entry;
  stream.high = psn;
  stream.unique++;
  stream.unique_payload += packet.payload;
  stream.complete = packet.ends;
  stream.messages += packet.ends;
  const bool newer = packet.has_id && newer_id(packet.id, stream.newest_id);
  if (packet.has_id) evidence.note(newer);
  see_id(stream, packet, newer, true);
  if (counts_responses) {
    stream.expected = stream.next_size = psn + 1;
    size_next(stream, entry);
  }
  stream.last_time = packet.now;
  return true;
}

PsnClass PsnTracker::advance(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const {
  const std::int64_t gap = psn - stream.high - 1;
  const bool other_requests = sparse_ && packet.starts && stream.complete;
  if (gap > window_ && !other_requests) {
    begin_anew(stream, ring);
    start(stream, ring, packet);
    stream.restarts++;
    return PsnClass::kRestart;
  }
  if (stream.run_length > 0) give_up_run(stream);  // the stream goes on as it was
  respond(stream, psn, packet);
  if (gap > window_) {
    stream.ring_low = psn;
  } else if (gap > 0) {
    const std::uint16_t flags = other_requests ? std::uint16_t{0} : Entry::kHole;
    fill(ring, stream.high + 1, psn - 1, {packet.now, 0, 0, flags});
    if (!other_requests) {
      stream.holes += static_cast<std::uint64_t>(gap);
      stream.gaps++;
    }
  }
  fill_new(stream, ring, psn, packet);
  return PsnClass::kInOrder;
}

// What tells that, without identifications, whatever its age.
bool PsnTracker::is_sent_again(PsnStream& stream, const Entry& entry, const PsnPacket& packet, std::int64_t psn) const {
  const bool continues = stream.old_was_sent_again && packet.psn == stream.old_next;
  const bool behind_asked = stream.old_was_asked;
  // A run that goes on beyond what is asked for again is of an earlier time.
  const bool asked = roce::psn_in_window(packet.psn, stream.asked_first, stream.asked_count) &&
                     (!continues || packet.psn == stream.asked_first);
  stream.old_was_asked = asked;
  if (asked) {  // each PSN was asked for once; a second copy must find another reason
    const std::uint32_t used = ((packet.psn - stream.asked_first) & roce::kPsnMask) + 1;
    stream.asked_first = roce::psn_add(packet.psn, 1);
    stream.asked_count -= used;
    stream.resumed_at = stream.high + 1;
  }
  if (continues || asked || (packet.read && entry.has(Entry::kInside))) return true;
  // Selective repeat sends others behind the one that a NAK names: the one that was sent last, or all that are missing.
  if (sparse_ || !entry.has(Entry::kSeen) || stream.resumed_at != stream.high + 1 || psn < stream.next_response)
    return false;
  return !entry.has(Entry::kAgain) || (behind_asked && psn == stream.high);
}

PsnClass PsnTracker::classify(PsnStream& stream, const Entry& entry, const PsnPacket& packet,
                              const IdEvidence& evidence, std::int64_t psn) const {
  const bool seen = entry.has(Entry::kSeen);
  const PsnClass once_more = seen ? PsnClass::kDuplicate : PsnClass::kOutOfOrder;
  if (!packet.reliable) return once_more;
  // A retransmission that was itself overtaken is older than the stream's newest packet, but not than the copy that
  // came before it.
  const bool newer = packet.has_id && (newer_id(packet.id, stream.newest_id) || (seen && newer_than(packet, entry)));
  if (packet.has_id && evidence.informative()) return newer ? PsnClass::kRetransmission : once_more;
  if (is_sent_again(stream, entry, packet, psn)) return PsnClass::kRetransmission;
  if (packet.now - entry.time < retransmit_after_) return once_more;
  // Its age speaks for a retransmission. An identification that is not newer would speak against it, if the sender
  // steps it: one whose packets all bear the same does not.
  const bool same = packet.id == stream.newest_id && (psn != stream.high || packet.id == 0);
  return packet.has_id && evidence.open() && !newer && !same ? PsnClass::kUndecided : PsnClass::kRetransmission;
}

void PsnTracker::see_again(PsnStream& stream, Entry& entry, const PsnPacket& packet) const {
  if (newer_than(packet, entry)) entry.id = packet.id;
  entry.flags |= Entry::kAgain;
  if (!entry.has(Entry::kTrimmed) || packet.trimmed) return;
  entry.flags &= static_cast<std::uint16_t>(~Entry::kTrimmed);
  entry.size = packet.size;
  stream.only_trimmed--;
  stream.unique_payload += packet.payload;
}

void PsnTracker::repeat(PsnStream& stream, Entry* ring, std::int64_t psn, PsnClass what,
                        const PsnPacket& packet) const {
  const bool sent_again = what == PsnClass::kRetransmission;
  if (sent_again && !(stream.old_was_sent_again && packet.psn == stream.old_next)) {  // the first of a run
    const bool silent = packet.now - stream.last_time >= retransmit_after_;
    if (!sparse_ && silent && !stream.repeat_explained) stream.timeouts_suspected++;
    stream.repeat_explained = false;
  }
  stream.old_next = roce::psn_add(packet.psn, packet.width);
  stream.old_was_sent_again = sent_again;
  if (what == PsnClass::kDuplicate) stream.duplicates++;
  if (sent_again) stream.retransmissions++;
  if (what == PsnClass::kUndecided) stream.undecided++;
  if (what == PsnClass::kOutOfOrder) {
    const auto degree = static_cast<std::uint64_t>(stream.high - psn);
    stream.out_of_order++;
    stream.degree_sum += degree;
    stream.degree_max = std::max(stream.degree_max, degree);
  }
  // Memory begins lower than it was: nothing is known of what lies between.
  for (std::int64_t low = this->low(stream); low > psn;) at(ring, --low) = {stream.base, 0, 0, 0};
  stream.ring_low = std::min(stream.ring_low, psn);
  stream.first = std::min(stream.first, psn);
  const std::int64_t last = psn + packet.width - 1, old_last = std::min(last, stream.high);
  const Entry seen = seen_by(packet);
  for (std::int64_t each = psn; each <= old_last; each++) {
    Entry& entry = at(ring, each);
    if (entry.has(Entry::kSeen)) {
      see_again(stream, entry, packet);
      continue;
    }
    stream.unique++;
    if (entry.has(Entry::kHole)) {
      stream.holes_filled++;
      if (what == PsnClass::kOutOfOrder) stream.holes_filled_late++;
    }
    entry = seen;
    if (each > psn) {
      entry.flags |= Entry::kInside;
      entry.size = 0;
      continue;
    }
    entry.flags |= first_flags(packet);
    if (packet.trimmed)
      stream.only_trimmed++;
    else
      stream.unique_payload += packet.payload;
  }
  if (last > old_last) {  // a READ whose length was not known when it was counted first
    fill(ring, old_last + 1, last, {packet.now, 0, packet.id, Entry::kSeen | Entry::kInside});
    stream.unique += static_cast<std::uint64_t>(last - old_last);
    stream.high = last;
    stream.complete = packet.ends;
  }
  if (packet.ends) end_message(stream, at(ring, last), packet);
}

}  // namespace rocebox::inspect
