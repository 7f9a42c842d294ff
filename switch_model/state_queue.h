// SPDX-License-Identifier: BSD-3-Clause
// StateSlab: packets that wait, with their metadata, in any number of first-in-first-out queues over one memory.
#pragma once
#include <cassert>
#include <cstdint>
#include <vector>

#include "switch_model/packet_state.h"

namespace rocebox::switch_model {

/// One queue of a slab. Plain data: copies are the same queue.
struct StateQueue {
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  std::uint32_t head = kEnd, tail = kEnd, size = 0;
  bool empty() const { return size == 0; }
};

/// A packet that waits since `entered`, when it found so many bytes in its queue.
struct WaitingPacket {
  PacketState state;
  Nanos entered = 0;
  std::uint64_t found_bytes = 0;
};

/// Fixed room for waiting packets; no allocation after construction. Frees the packets that still wait.
class StateSlab {
 public:
  explicit StateSlab(std::uint32_t capacity) : nodes_(capacity) {
    for (std::uint32_t i = 0; i < capacity; i++) nodes_[i].next = i + 1 < capacity ? i + 1 : StateQueue::kEnd;
    free_ = capacity ? 0 : StateQueue::kEnd;
  }
  ~StateSlab() {
    for (Node& node : nodes_)
      if (node.waiting.state.packet) PacketPtr(node.waiting.state.packet);
  }
  StateSlab(const StateSlab&) = delete;
  StateSlab& operator=(const StateSlab&) = delete;

  bool full() const { return free_ == StateQueue::kEnd; }
  /// The slab owns the packet until it is popped. Not when full().
  void push(StateQueue& queue, const PacketState& state, Nanos entered, std::uint64_t found_bytes = 0) {
    assert(!full());
    const std::uint32_t at = free_;
    free_ = nodes_[at].next;
    nodes_[at] = {{state, entered, found_bytes}, StateQueue::kEnd};
    (queue.size++ ? nodes_[queue.tail].next : queue.head) = at;
    queue.tail = at;
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
    if (queue.size) {
      __builtin_prefetch(&nodes_[queue.head]);
      nodes_[queue.head].waiting.state.packet.prefetch();
    }
    return waiting;
  }

 private:
  struct Node {
    WaitingPacket waiting;
    std::uint32_t next = StateQueue::kEnd;
  };
  std::vector<Node> nodes_;
  std::uint32_t free_ = StateQueue::kEnd;
};

}  // namespace rocebox::switch_model
