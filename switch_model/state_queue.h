// SPDX-License-Identifier: BSD-3-Clause
// StateSlab: packets that wait, with their metadata, in any number of first-in-first-out queues over one memory.
#pragma once
#include <cassert>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "runtime/packet/prefetch.h"
#include "runtime/packet/reserved_memory.h"
#include "switch_model/packet_state.h"

namespace rocebox::switch_model {

/// One queue of a slab. Plain data: copies are the same queue.
struct StateQueue {
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  std::uint32_t head = kEnd, tail = kEnd, size = 0;
  Packet first;  // of the head, where there is one
  bool empty() const { return size == 0; }
};

/// A packet that waits since `entered`, when it found so many bytes in its queue.
struct WaitingPacket {
  PacketState state;
  Nanos entered = 0;
  std::uint64_t found_bytes = 0;
};

/// Fixed room for waiting packets; no allocation after construction. Frees the packets that still wait. Memory is
/// touched when first used, and what was used last is used first: only as much of it as packets ever waited at once.
class StateSlab {
 public:
  explicit StateSlab(std::uint32_t capacity) : capacity_(capacity), nodes_(capacity) {}
  ~StateSlab() {
    for (std::uint32_t i = 0; i < made_; i++)
      if (nodes_[i].waiting.state.packet) PacketPtr(nodes_[i].waiting.state.packet);
  }
  StateSlab(const StateSlab&) = delete;
  StateSlab& operator=(const StateSlab&) = delete;

  bool full() const { return free_ == StateQueue::kEnd && made_ == capacity_; }
  /// The slab owns the packet until it is popped. Not when full().
  void push(StateQueue& queue, const PacketState& state, Nanos entered, std::uint64_t found_bytes = 0) {
    assert(!full());
    const std::uint32_t at = free_ != StateQueue::kEnd ? free_ : made_++;
    if (at == free_) free_ = nodes_[at].next;
    std::construct_at(&nodes_[at], Node{{state, entered, found_bytes}, StateQueue::kEnd, Packet()});
    if (queue.size++) {
      nodes_[queue.tail].next = at;
      nodes_[queue.tail].behind = state.packet;
    } else {
      queue.head = at;
      queue.first = state.packet;
    }
    queue.tail = at;
  }
  /// Brings the first packet that waits and its place nearer.
  void prefetch(const StateQueue& queue) const {
    prefetch_far_lines(&nodes_[queue.head], &nodes_[queue.head] + 1);
    queue.first.prefetch_far();
  }
  const WaitingPacket& front(const StateQueue& queue) const { return nodes_[queue.head].waiting; }
  WaitingPacket pop(StateQueue& queue) {
    const std::uint32_t at = queue.head;
    const WaitingPacket waiting = nodes_[at].waiting;
    queue.head = nodes_[at].next;
    queue.size--;
    nodes_[at].waiting.state.packet = Packet();
    nodes_[at].next = free_;
    free_ = at;
    if (queue.size) {  // nothing of the next one is in the cache any more when its turn comes
      prefetch_lines(&nodes_[queue.head], &nodes_[queue.head] + 1);
      queue.first = nodes_[at].behind;
      queue.first.prefetch();
    }
    return waiting;
  }

 private:
  struct alignas(RTE_CACHE_LINE_SIZE) Node {
    WaitingPacket waiting;
    std::uint32_t next = StateQueue::kEnd;
    Packet behind;  // of the next one: known without a look at it
  };
  static_assert(std::is_trivially_destructible_v<Node>);
  const std::uint32_t capacity_;
  std::uint32_t made_ = 0, free_ = StateQueue::kEnd;
  const ReservedArray<Node> nodes_;
};

}  // namespace rocebox::switch_model
