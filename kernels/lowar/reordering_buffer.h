// SPDX-License-Identifier: BSD-3-Clause
// The reordering buffer: packets that wait for a lost one before them, in slots shared by all streams; each stream's
// stand in a list by PSN. All memory is taken when made.
#pragma once
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/packet/packet.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

class ReorderingBuffer {
 public:
  static constexpr std::uint16_t kNone = 0xFFFF;

  /// A list of packets, ascending by PSN, and the same in the order in which they came.
  struct List {
    std::uint16_t head = kNone, tail = kNone, oldest = kNone, newest = kNone;
    bool empty() const { return head == kNone; }
  };
  /// What kind of packet waits.
  struct Kind {
    bool unsequenced = false;  ///< takes no place in the sequence: goes behind all up to `psn`
    bool usable = false;       ///< held whole, so that it can be XORed
    bool rebuilt = false;      ///< its original may still come
  };
  struct Slot : Kind {
    std::uint16_t older = kNone, newer = kNone;
    PacketPtr packet;
    Nanos at = 0;           ///< when it came
    std::uint32_t psn = 0;  ///< a repair packet's: its block's first
    std::uint16_t previous = kNone, next = kNone;
  };
  static_assert(sizeof(Slot) == 32);

  explicit ReorderingBuffer(std::size_t slots) : slots_(slots) {
    for (std::size_t i = 0; i < slots; i++) slots_[i].next = static_cast<std::uint16_t>(i + 1 < slots ? i + 1 : kNone);
    free_ = 0;
  }

  bool full() const { return free_ == kNone; }
  std::uint32_t used() const { return used_; }
  Slot& operator[](std::uint16_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint16_t slot) const { return slots_[slot]; }

  /// Takes the packet in behind those with a PSN up to its own. Must not be full. None in the list came later.
  void insert(List& list, PacketPtr packet, std::uint32_t psn, Nanos at, Kind kind) {
    assert(!full());
    const std::uint16_t index = free_;
    Slot& slot = slots_[index];
    free_ = slot.next;
    used_++;
    std::uint16_t before = list.tail;
    while (before != kNone && roce::psn_after(slots_[before].psn, psn)) before = slots_[before].previous;
    slot.packet = std::move(packet);
    static_cast<Kind&>(slot) = kind;
    slot.at = at;
    slot.psn = psn;
    slot.previous = before;
    slot.next = before == kNone ? list.head : slots_[before].next;
    (before == kNone ? list.head : slots_[before].next) = index;
    (slot.next == kNone ? list.tail : slots_[slot.next].previous) = index;
    slot.older = list.newest;
    slot.newer = kNone;
    (list.newest == kNone ? list.oldest : slots_[list.newest].newer) = index;
    list.newest = index;
  }

  PacketPtr remove(List& list, std::uint16_t index) {
    Slot& slot = slots_[index];
    (slot.previous == kNone ? list.head : slots_[slot.previous].next) = slot.next;
    (slot.next == kNone ? list.tail : slots_[slot.next].previous) = slot.previous;
    (slot.older == kNone ? list.oldest : slots_[slot.older].newer) = slot.newer;
    (slot.newer == kNone ? list.newest : slots_[slot.newer].older) = slot.older;
    slot.next = free_;
    free_ = index;
    used_--;
    return std::exchange(slot.packet, PacketPtr());
  }

  /// The slot with a rebuilt packet of this PSN; kNone: none. Looks from the end, where most packets come.
  std::uint16_t find_rebuilt(const List& list, std::uint32_t psn) const {
    std::uint16_t at = list.tail;
    while (at != kNone && !roce::psn_before(slots_[at].psn, psn)) {
      if (slots_[at].rebuilt && slots_[at].psn == psn) return at;
      at = slots_[at].previous;
    }
    return kNone;
  }

  /// The first slot from `from` on that holds a data packet with this PSN or a later one; kNone: none.
  std::uint16_t find(std::uint16_t from, std::uint32_t psn) const {
    while (from != kNone && (slots_[from].unsequenced || roce::psn_before(slots_[from].psn, psn)))
      from = slots_[from].next;
    return from;
  }

 private:
  std::vector<Slot> slots_;
  std::uint16_t free_ = kNone;
  std::uint32_t used_ = 0;
};

}  // namespace rocebox::lowar
