// SPDX-License-Identifier: BSD-3-Clause
// EventQueues: a queue for each flow and kind of event, between the collectors, which put, and the multiplexer, which
// takes (SCR, 4.3.2). One producer and one consumer, both on the NIC's core, so that no lock is needed.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/scr/coalescing.h"
#include "kernels/scr/limits.h"

namespace rocebox::scr {

using Strategies = std::array<Strategy, SCR_KINDS>;

class EventQueues {
 public:
  /// Rows are flows, and one more for the node. `ceiling`: an event of more bytes takes no more in.
  EventQueues(std::uint32_t flows, const Strategies& strategies, std::uint64_t ceiling)
      : flows_(flows), ceiling_(ceiling), strategies_(strategies), queues_(std::size_t{flows + 1} * SCR_KINDS) {
    std::uint32_t at = 0;
    for (unsigned kind = 0; kind < SCR_KINDS; kind++) {
      static_assert(std::ranges::all_of(kQueueDepth, [](unsigned depth) { return std::has_single_bit(depth); }));
      offset_[kind] = at;
      at += kQueueDepth[kind];
    }
    stride_ = at;
    events_.resize(std::size_t{flows + 1} * stride_);
  }

  /// Which queue: by row and kind.
  std::uint32_t key(std::uint32_t flow, unsigned kind) const {
    return (flow == SCR_NODE ? flows_ : flow) * SCR_KINDS + kind;
  }
  std::uint32_t keys() const { return static_cast<std::uint32_t>(queues_.size()); }

  enum class Put : std::uint8_t {
    kQueued,   ///< it waits by itself: somebody has to take it
    kMerged,   ///< one that waits has taken it in
    kOverfull  ///< the same, though that one was at the ceiling: the queue is full
  };
  Put put(const Event& event) {
    const unsigned kind = event.kind;
    const std::uint32_t number = key(event.flow, kind);
    Queue& queue = queues_[number];
    Slot* const first = &events_[std::size_t{number / SCR_KINDS} * stride_ + offset_[kind]];
    const unsigned depth = kQueueDepth[kind];
    if (queue.size) {
      const StrategyRow& strategy = kStrategies[static_cast<unsigned>(strategies_[kind])];
      Event& last = first[(queue.head + queue.size - 1u) & (depth - 1)].event;
      const bool fits = last.bytes + event.bytes <= ceiling_;
      if (fits && is_alike(last, event) && strategy.merge(last, event)) return Put::kMerged;
      if (queue.size == depth) {
        // Bytes are never lost; of what has none the newest counts.
        (last.bytes || event.bytes ? accumulate : keep_latest)(last, event);
        return Put::kOverfull;
      }
    }
    first[(queue.head + queue.size++) & (depth - 1)].event = event;
    return Put::kQueued;
  }
  /// The oldest of that queue, which is not empty; until the next put().
  Event& take(std::uint32_t key) {
    Queue& queue = queues_[key];
    const unsigned kind = key % SCR_KINDS, depth = kQueueDepth[kind];
    Event& event = events_[std::size_t{key / SCR_KINDS} * stride_ + offset_[kind] + queue.head].event;
    queue.head = static_cast<std::uint8_t>((queue.head + 1u) & (depth - 1));
    queue.size--;
    return event;
  }
  unsigned size(std::uint32_t key) const { return queues_[key].size; }

 private:
  struct Queue {
    std::uint8_t head = 0, size = 0;
  };
  struct alignas(64) Slot {
    Event event;
  };
  static_assert(sizeof(Slot) == 64, "an event is a line of the cache");
  const std::uint32_t flows_;
  const std::uint64_t ceiling_;
  const Strategies strategies_;
  std::array<std::uint32_t, SCR_KINDS> offset_{};
  std::uint32_t stride_ = 0;
  std::vector<Queue> queues_;
  std::vector<Slot> events_;
};

}  // namespace rocebox::scr
