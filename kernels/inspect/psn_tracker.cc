// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/psn_tracker.h"

#include <algorithm>

namespace rocebox::inspect {
namespace {

// A sender whose in-order packets keep older identifications than the newest one was idle for half
// the ID space.
constexpr unsigned kStaleIdsMax = 8;

PsnTracker::Entry time_bits(const PsnStream& stream, Nanos now, unsigned shift) {
  return static_cast<PsnTracker::Entry>(now - stream.base) << shift;
}

}  // namespace

PsnTracker::Entry PsnTracker::seen_by(const PsnStream& stream, const PsnPacket& packet) {
  return time_bits(stream, packet.now, kTimeShift) | Entry{packet.id} << kIdShift | kSeen;
}

Nanos PsnTracker::since(const PsnStream& stream, Entry entry, Nanos now) {
  return static_cast<Nanos>((static_cast<Entry>(now - stream.base) - (entry >> kTimeShift)) & kTimeMask);
}

bool PsnTracker::newer_than(const PsnPacket& packet, Entry entry) {
  const auto id = static_cast<std::uint16_t>(entry >> kIdShift);
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(packet.id - id)) > 0;
}

std::int64_t PsnTracker::low(const PsnStream& stream) const {
  return std::max(stream.ring_low, stream.high - window_ + 1);
}

// A PSN below all that was written is as old as the stream: time 0, no flags.
PsnTracker::Entry PsnTracker::read(const PsnStream& stream, Entry* ring, std::int64_t psn) const {
  return psn < low(stream) || psn > stream.high ? 0 : at(ring, psn);
}

void PsnTracker::fill(const PsnStream&, Entry* ring, std::int64_t from, std::int64_t to, Entry value) const {
  for (std::int64_t psn = std::max(from, to - window_ + 1); psn <= to; psn++) at(ring, psn) = value;
}

// The PSNs psn..psn+width-1 are new and the highest.
void PsnTracker::fill_new(PsnStream& stream, Entry* ring, std::int64_t psn, std::uint32_t width,
                          const PsnPacket& packet) const {
  const Entry seen = seen_by(stream, packet);
  if (width == 1) {
    at(ring, psn) = seen;
  } else {
    fill(stream, ring, psn + 1, psn + width - 1, seen | kInside);
    if (width <= window_) at(ring, psn) = seen;
  }
  stream.high = psn + width - 1;
  stream.unique += width;
  stream.complete = packet.ends;
  if (packet.ends) end_message(stream, ring, stream.high);
}

void PsnTracker::end_message(PsnStream& stream, Entry* ring, std::int64_t psn) const {
  Entry& entry = at(ring, psn);
  if (entry & kMessage) return;
  entry |= kMessage;
  stream.messages++;
}

PsnClass PsnTracker::add(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const {
  if (!stream.used) {
    stream.used = true;
    stream.base = packet.now;
    stream.first = stream.ring_low = packet.psn;
    stream.newest_id = packet.id;
    fill_new(stream, ring, packet.psn, packet.width, packet);
    stream.unique_payload += packet.payload;
    return PsnClass::kFirst;
  }
  const std::int64_t psn =
      stream.high + roce::psn_distance(packet.psn, static_cast<std::uint32_t>(stream.high) & roce::kPsnMask);
  const bool newer =
      packet.has_id && static_cast<std::int16_t>(static_cast<std::uint16_t>(packet.id - stream.newest_id)) > 0;
  const bool ahead = psn > stream.high;
  PsnClass what = PsnClass::kBeyondWindow;
  if (ahead) {
    if (packet.has_id) evidence.note(newer);
    what = advance(stream, ring, psn, packet);
  } else if (stream.high - psn < window_) {
    const bool informative = packet.has_id && evidence.informative();
    what = classify(stream, read(stream, ring, psn), packet, informative, newer);
    repeat(stream, ring, psn, what, packet);
  } else {
    stream.beyond_window++;
  }
  if (newer)
    stream.newest_id = packet.id, stream.stale_ids = 0;
  else if (ahead && ++stream.stale_ids == kStaleIdsMax)
    stream.newest_id = packet.id, stream.stale_ids = 0;
  return what;
}

PsnClass PsnTracker::advance(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const {
  const std::int64_t gap = psn - stream.high - 1;
  const bool other_requests = sparse_ && packet.starts && stream.complete;
  PsnClass what = PsnClass::kInOrder;
  if (gap > window_) {
    if (!other_requests) {
      if (!sparse_) stream.missing_before += stream.span() - stream.unique;
      stream.unique_before += stream.unique;
      stream.unique = 0;
      stream.first = psn;
      stream.resets++;
      what = PsnClass::kReset;
    }
    stream.ring_low = psn;
  } else if (gap > 0) {
    const Entry skipped = time_bits(stream, packet.now, kTimeShift) | (other_requests ? 0 : kHole);
    fill(stream, ring, stream.high + 1, psn - 1, skipped);
    if (!other_requests) stream.holes += static_cast<std::uint64_t>(gap);
  }
  fill_new(stream, ring, psn, packet.width, packet);
  stream.unique_payload += packet.payload;
  return what;
}

PsnClass PsnTracker::classify(PsnStream& stream, Entry entry, const PsnPacket& packet, bool informative,
                              bool newer) const {
  const PsnClass once_more = entry & kSeen ? PsnClass::kDuplicate : PsnClass::kOutOfOrder;
  if (!packet.reliable) return once_more;
  // A retransmission that was itself overtaken is older than the stream's newest packet, but not than the copy that
  // came before it.
  if (informative)
    return newer || ((entry & kSeen) && newer_than(packet, entry)) ? PsnClass::kRetransmission : once_more;
  const bool continues = stream.old_was_sent_again && packet.psn == stream.old_next;
  const bool asked = roce::psn_in_window(packet.psn, stream.asked_first, stream.asked_count);
  if (asked) {  // each PSN was asked for once; a second copy must find another reason
    const std::uint32_t used = ((packet.psn - stream.asked_first) & roce::kPsnMask) + 1;
    stream.asked_first = roce::psn_add(packet.psn, 1);
    stream.asked_count -= used;
  }
  const bool part_of_read = packet.read && (entry & kInside);
  return continues || asked || part_of_read || since(stream, entry, packet.now) >= retransmit_after_
             ? PsnClass::kRetransmission
             : once_more;
}

void PsnTracker::repeat(PsnStream& stream, Entry* ring, std::int64_t psn, PsnClass what,
                        const PsnPacket& packet) const {
  stream.old_next = roce::psn_add(packet.psn, packet.width);
  stream.old_was_sent_again = what == PsnClass::kRetransmission;
  if (what == PsnClass::kDuplicate) stream.duplicates++;
  if (what == PsnClass::kRetransmission) stream.retransmissions++;
  if (what == PsnClass::kOutOfOrder) {
    const auto degree = static_cast<std::uint64_t>(stream.high - psn);
    stream.out_of_order++;
    stream.degree_sum += degree;
    stream.degree_max = std::max(stream.degree_max, degree);
  }
  // Memory begins lower than it was: nothing is known of what lies between.
  for (std::int64_t low = this->low(stream); low > psn;) at(ring, --low) = 0;
  stream.ring_low = std::min(stream.ring_low, psn);
  stream.first = std::min(stream.first, psn);
  if (!(at(ring, psn) & kSeen)) stream.unique_payload += packet.payload;
  const std::int64_t last = psn + packet.width - 1, old_last = std::min(last, stream.high);
  const Entry seen = seen_by(stream, packet);
  for (std::int64_t each = psn; each <= old_last; each++) {
    Entry& entry = at(ring, each);
    if (entry & kSeen) {
      if (newer_than(packet, entry)) entry = (entry & ~kIdMask) | Entry{packet.id} << kIdShift;
      entry |= kAgain;
      continue;
    }
    stream.unique++;
    if (entry & kHole) {
      stream.holes_filled++;
      if (what == PsnClass::kOutOfOrder) stream.holes_filled_late++;
    }
    entry = seen | (each == psn ? 0 : kInside);
  }
  if (last > old_last) {  // a READ whose length was not known when it was counted first
    fill(stream, ring, old_last + 1, last, seen | kInside);
    stream.unique += static_cast<std::uint64_t>(last - old_last);
    stream.high = last;
    stream.complete = packet.ends;
  }
  if (packet.ends) end_message(stream, ring, last);
}

void PsnTracker::widen(PsnStream& stream, Entry* ring, std::uint32_t width) const {
  if (width <= 1) return;
  const Entry was = at(ring, stream.high);
  const std::int64_t last = stream.high + width - 1;
  at(ring, stream.high) = was & ~kMessage;
  fill(stream, ring, stream.high + 1, last, (was & ~(kMessage | kAnswered)) | kInside);
  at(ring, last) |= was & kMessage;
  stream.high = last;
  stream.unique += width - 1;
}

bool PsnTracker::answered(const PsnStream& stream, Entry* ring, std::uint32_t psn, Nanos now, Nanos& rtt) const {
  if (!stream.used) return false;
  const std::int64_t asked =
      stream.high + roce::psn_distance(psn, static_cast<std::uint32_t>(stream.high) & roce::kPsnMask);
  if (asked > stream.high || asked < low(stream)) return false;
  Entry& entry = at(ring, asked);
  if (!(entry & kSeen) || (entry & kAnswered)) return false;
  entry |= kAnswered;
  if (entry & kAgain) return false;
  rtt = since(stream, entry, now);
  return true;
}

}  // namespace rocebox::inspect
