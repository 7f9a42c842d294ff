// SPDX-License-Identifier: BSD-3-Clause
// Messages: a slot for each message ID of each connection, with the bitmap of the packets that have come of the message
// that has the ID now.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sdr/observer/config.h"
#include "kernels/sdr/observer/connections.h"
#include "kernels/sdr/observer/counters.h"
#include "kernels/sdr/observer/slot.h"
#include "runtime/packet/prefetch.h"

namespace rocebox::sdr::observer {

/// A packet of a message.
struct Part {
  Immediate immediate;
  std::uint32_t bytes;
  std::uint32_t qpn;
  std::uint32_t generation;  ///< of its queue pair
};

enum class EventKind : std::uint8_t { kLate, kDuplicate, kOutside, kConflict, kMissing };

struct Event {
  Nanos at;
  std::uint64_t number;  ///< of the message
  std::uint32_t group, offset, qpn;
  std::uint32_t packets;  ///< of kMissing: how many
  EventKind kind;
};

class Messages {
 public:
  Messages(const Config& config, Counters& counters);

  /// Brings nearer what arrive() needs.
  void prefetch(std::uint32_t group, const Immediate& immediate) const {
    const std::size_t index = index_of(group, immediate.message);
    prefetch_line(&slots_[index]);
    prefetch_line(reinterpret_cast<const char*>(&slots_[index]) + 64);
    if (immediate.offset < packets_) prefetch_line(&bits_[index * words_ + immediate.offset / 64]);
  }
  /// `number`: of the message, as Connections say; the immediate's ID is below the connection's.
  void arrive(Group& group, std::uint32_t group_index, std::uint64_t number, const Part& part, Nanos now);

  // For the report.

  /// Messages whose ID was used again, in the order in which they ended.
  std::span<const EndedMessage> ended() const { return {ended_.data(), ended_count_}; }
  /// The message that has an ID; its number is 0 where there is none.
  const Slot& slot(std::uint32_t group, std::uint32_t id) const { return slots_[index_of(group, id)]; }
  std::span<const Event> events() const { return {events_.data(), events_count_}; }
  std::span<const std::uint64_t> bitmap(std::uint32_t group, std::uint32_t id) const {
    return {&bits_[index_of(group, id) * words_], words_};
  }
  std::uint32_t chunks_of(std::uint32_t packets) const { return (packets + chunk_ - 1) / chunk_; }
  MissingRuns missing_of(const Slot& slot, std::span<const std::uint64_t> bits) const;
  /// Whether that packet of the message that has its ID has come, or is behind the message's end.
  bool has_come(std::uint32_t group, const Immediate& immediate) const {
    const Slot& slot = slots_[index_of(group, immediate.message)];
    if (!slot.number || (slot.end && immediate.offset >= slot.end)) return slot.number != 0;
    return immediate.offset < packets_ &&
           bits_[index_of(group, immediate.message) * words_ + immediate.offset / 64] >> immediate.offset % 64 & 1;
  }
  bool has_chunk(std::span<const std::uint64_t> bits, const Slot& slot, std::uint32_t chunk) const;
  /// Bytes of state of each message ID.
  std::size_t bytes_a_slot() const { return sizeof(Slot) + words_ * sizeof(std::uint64_t); }

 private:
  std::size_t index_of(std::uint32_t group, std::uint32_t id) const { return std::size_t{group} * ids_ + id; }
  void begin(Slot& slot, std::uint64_t* bits, Group& group, std::uint32_t group_index, std::uint64_t number,
             std::uint32_t generation, Nanos now);
  void end(Slot& slot, const std::uint64_t* bits, Group& group, Nanos now);
  void take_fragment(Slot& slot, std::uint64_t number, const Part& part, Nanos now);
  void set_end(Slot& slot, std::uint64_t* bits, std::uint32_t end);
  void set(Slot& slot, std::uint64_t* bits, Group& group, const Part& part, Nanos now);
  void settle(Slot& slot, Group& group, Nanos now);
  bool range_is_set(const std::uint64_t* bits, std::uint32_t first, std::uint32_t last) const;
  void note(EventKind kind, const Slot& slot, std::uint64_t number, const Part& part, Nanos now,
            std::uint32_t packets = 0);

  const ImmediateLayout layout_;
  const std::uint32_t ids_, packets_, chunk_, mtu_;
  const std::size_t words_;
  Counters& counters_;
  flows::ZeroedArray<Slot> slots_;
  flows::ZeroedArray<std::uint64_t> bits_;
  flows::ZeroedArray<EndedMessage> ended_;
  flows::ZeroedArray<Event> events_;
  std::size_t ended_count_ = 0, events_count_ = 0;
};

}  // namespace rocebox::sdr::observer
