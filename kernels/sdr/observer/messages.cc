// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/observer/messages.h"

#include <bit>
#include <cstring>

namespace rocebox::sdr::observer {
namespace {

constexpr std::uint32_t kWordBits = 64;

}  // namespace

Messages::Messages(const Config& config, Counters& counters)
    : layout_(config.layout()),
      ids_(config.slots()),
      packets_(static_cast<std::uint32_t>(config.packets)),
      chunk_(static_cast<std::uint32_t>(config.chunk)),
      mtu_(config.mtu_bytes()),
      words_(config.words()),
      counters_(counters),
      // Small pages, each when its IDs come: most connections use few of them.
      slots_(static_cast<std::size_t>(config.connections) * ids_, flows::Pages::kSmall, flows::Touch::kAsUsed),
      bits_(slots_.size() * words_, flows::Pages::kSmall, flows::Touch::kAsUsed),
      ended_(static_cast<std::size_t>(config.listed), flows::Pages::kSmall, flows::Touch::kAsUsed),
      events_(static_cast<std::size_t>(config.events), flows::Pages::kSmall, flows::Touch::kAsUsed) {}

void Messages::arrive(Group& group, std::uint32_t group_index, std::uint64_t number, const Part& part, Nanos now) {
  const std::size_t index = index_of(group_index, part.immediate.message);
  Slot& slot = slots_[index];
  std::uint64_t* bits = &bits_[index * words_];
  if (slot.number != number) {
    if (slot.number > number) {
      slot.late++, group.late++;
      counters_.late.add();
      return note(EventKind::kLate, slot, number, part, now);
    }
    if (slot.number) end(slot, bits, group, now);
    begin(slot, bits, group, group_index, number, part.generation, now);
  }
  slot.last = now;
  if (layout_.fragment_bits) take_fragment(slot, number, part, now);
  const std::uint32_t offset = part.immediate.offset;
  if (part.bytes == 0) {
    // The first of the empty Writes stands right behind the message's last packet.
    slot.empty++;
    counters_.empty.add();
    if (!slot.end || offset < slot.end) set_end(slot, bits, offset);
    return settle(slot, group, now);
  }
  if (slot.end && offset >= slot.end) {
    slot.outside++, group.outside++;
    counters_.outside.add();
    return note(EventKind::kOutside, slot, number, part, now);
  }
  if (offset >= packets_) {
    group.beyond++;
    return counters_.beyond.add();
  }
  set(slot, bits, group, part, now);
}

void Messages::begin(Slot& slot, std::uint64_t* bits, Group& group, std::uint32_t group_index, std::uint64_t number,
                     std::uint32_t generation, Nanos now) {
  std::memset(bits, 0, (slot.high + kWordBits - 1) / kWordBits * sizeof *bits);
  slot = Slot();
  slot.number = number;
  slot.group = group_index;
  slot.generation = generation;
  slot.first = now;
  group.messages++;
  counters_.messages.add();
}

// The ID is used again: what has not come, will not.
void Messages::end(Slot& slot, const std::uint64_t* bits, Group& group, Nanos now) {
  if (const std::uint32_t missing = slot.missing()) {
    group.missing += missing;
    counters_.missing.add(missing);
    note(EventKind::kMissing, slot, slot.number, {{0, slot.expected(), 0}, 0, 0, 0}, now, missing);
  }
  if (ended_count_ < ended_.size())
    ended_[ended_count_++] = {slot, missing_of(slot, {bits, words_})};
  else
    counters_.messages_not_listed.add();
}

void Messages::take_fragment(Slot& slot, std::uint64_t number, const Part& part, Nanos now) {
  const unsigned index = part.immediate.offset % layout_.fragments(), shift = index * layout_.fragment_bits;
  const std::uint32_t value = part.immediate.fragment << shift;
  const std::uint32_t mask = ((1u << layout_.fragment_bits) - 1) << shift;
  if (!(slot.fragments >> index & 1)) {
    slot.fragments |= 1u << index;
    slot.user |= value;
  } else if ((slot.user & mask) != value) {
    slot.conflicts++;
    note(EventKind::kConflict, slot, number, part, now);
  }
}

// Chunks that end where the message does are complete without what would be behind it.
void Messages::set_end(Slot& slot, std::uint64_t* bits, std::uint32_t end) {
  slot.end = end;
  if (end == 0 || end % chunk_ == 0 || end > packets_) return;
  if (range_is_set(bits, end / chunk_ * chunk_, end)) {
    slot.chunks++;
    counters_.chunks_complete.add();
  }
}

bool Messages::range_is_set(const std::uint64_t* bits, std::uint32_t first, std::uint32_t last) const {
  for (std::uint32_t at = first; at < last;) {
    const std::uint32_t stop = std::min(last, (at / kWordBits + 1) * kWordBits), count = stop - at;
    const std::uint64_t mask = (count == kWordBits ? ~0ull : (1ull << count) - 1) << at % kWordBits;
    if ((bits[at / kWordBits] & mask) != mask) return false;
    at = stop;
  }
  return true;
}

void Messages::set(Slot& slot, std::uint64_t* bits, Group& group, const Part& part, Nanos now) {
  const std::uint32_t offset = part.immediate.offset;
  const std::uint64_t bit = 1ull << offset % kWordBits;
  if (bits[offset / kWordBits] & bit) {
    slot.duplicates++, group.duplicates++;
    counters_.duplicates.add();
    return note(EventKind::kDuplicate, slot, slot.number, part, now);
  }
  bits[offset / kWordBits] |= bit;
  slot.packets++;
  slot.bytes += part.bytes;
  slot.high = std::max(slot.high, offset + 1);
  const std::uint32_t mtu = mtu_ ? mtu_ : group.mtu = std::max(group.mtu, std::bit_ceil(part.bytes));
  const std::uint32_t first = offset / chunk_ * chunk_;
  const std::uint32_t last = slot.end ? std::min(first + chunk_, slot.end) : first + chunk_;
  if (last <= packets_ && range_is_set(bits, first, last)) {
    slot.chunks++;
    counters_.chunks_complete.add();
  } else if (part.bytes < mtu && !slot.end) {
    set_end(slot, bits, offset + 1);  // only a message's last packet is short
    return settle(slot, group, now);
  }
  if (part.bytes < mtu && !slot.end) slot.end = offset + 1;
  settle(slot, group, now);
}

void Messages::settle(Slot& slot, Group& group, Nanos now) {
  if (slot.complete || !slot.end || slot.packets < slot.end || slot.high > slot.end) return;
  slot.complete = now;
  group.complete++;
  counters_.messages_complete.add();
}

MissingRuns Messages::missing_of(const Slot& slot, std::span<const std::uint64_t> bits) const {
  MissingRuns found{};
  unsigned count = 0;
  const std::uint32_t end = std::min(slot.expected(), packets_);
  const auto has = [&](std::uint32_t packet) { return bits[packet / kWordBits] >> packet % kWordBits & 1; };
  for (std::uint32_t at = 0; at < end; at++) {
    if (bits[at / kWordBits] == ~0ull) {
      at |= kWordBits - 1;
      continue;
    }
    if (has(at)) continue;
    if (count == kMissingRunsMax) return found.has_more = true, found;
    found.runs[count].first = at;
    while (at < end && !has(at)) at++;
    found.runs[count++].end = at;
  }
  return found;
}

bool Messages::has_chunk(std::span<const std::uint64_t> bits, const Slot& slot, std::uint32_t chunk) const {
  const std::uint32_t first = chunk * chunk_;
  const std::uint32_t last = slot.end ? std::min(first + chunk_, slot.end) : first + chunk_;
  return last <= packets_ && range_is_set(bits.data(), first, last);
}

void Messages::note(EventKind kind, const Slot& slot, std::uint64_t number, const Part& part, Nanos now,
                    std::uint32_t packets) {
  if (events_count_ == events_.size()) return counters_.events_not_listed.add();
  events_[events_count_++] = {now, number, slot.group, part.immediate.offset, part.qpn, packets, kind};
}

}  // namespace rocebox::sdr::observer
