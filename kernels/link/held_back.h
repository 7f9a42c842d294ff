// SPDX-License-Identifier: BSD-3-Clause
// Packets that are held back until a number of later packets has gone before them.
#pragma once
#include <array>
#include <cassert>
#include <cstdint>
#include <utility>

#include "kernels/link/hold_queue.h"
#include "kernels/link/limits.h"

namespace rocebox::link {

struct HeldBackPacket {
  Due limit;                  ///< leaves then at the latest; limit.sequence is its place in the order of arrival
  Nanos delay = 0;            ///< what an event adds to its delivery
  std::uint32_t missing = 0;  ///< later packets that have yet to pass
  PacketPtr packet;
};

/// In the order of arrival.
class HeldBack {
 public:
  unsigned size() const { return count_; }
  bool full() const { return count_ == kHeldBackMax; }

  void add(HeldBackPacket held) {
    assert(!full());
    if (held.limit < next_) next_ = held.limit;
    held_[count_++] = std::move(held);
  }

  /// A packet with this place in the order of arrival was passed on: it counts for those before it.
  void passed(std::uint64_t sequence) {
    for (unsigned i = 0; i < count_ && held_[i].limit.sequence < sequence; i++) held_[i].missing--;
  }

  /// Takes out the first that waits for no more packets; its packet is empty when there is none.
  HeldBackPacket take_ready() {
    for (unsigned i = 0; i < count_; i++)
      if (held_[i].missing == 0) return remove(i);
    return {};
  }

  /// The first that must leave whether or not packets have passed; kNever when there is none.
  Due next() const { return next_; }

  HeldBackPacket take_next() {
    unsigned first = 0;
    while (held_[first].limit.sequence != next_.sequence) first++;
    return remove(first);
  }

 private:
  HeldBackPacket remove(unsigned place) {
    HeldBackPacket removed = std::move(held_[place]);
    for (unsigned i = place + 1; i < count_; i++) held_[i - 1] = std::move(held_[i]);
    count_--;
    next_ = {};
    for (unsigned i = 0; i < count_; i++)
      if (held_[i].limit < next_) next_ = held_[i].limit;
    return removed;
  }

  std::array<HeldBackPacket, kHeldBackMax> held_;
  unsigned count_ = 0;
  Due next_;
};

}  // namespace rocebox::link
