// SPDX-License-Identifier: BSD-3-Clause
// What is kept back of a stream so that it leaves in order: the packets behind a lost one, the repair packets that may
// still rebuild it, and for how long. The slots are the caller's, shared by all streams (reordering_buffer.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/lowar/limits.h"
#include "kernels/lowar/patience.h"
#include "kernels/lowar/reordering_buffer.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {

/// Where the packets are that a repair packet covers.
struct Share {
  std::array<std::uint16_t, kBlockPacketsMax> slots;  ///< of those that wait; `held` of them
  unsigned held = 0;
  unsigned delivered = 0;  ///< handed over before
  unsigned missing = 0;
  std::uint32_t missing_psn = 0;  ///< of one that is missing
  bool usable = true;             ///< all that wait are held whole
};

/// The end of a coding block.
struct BlockEnd {
  std::uint32_t psn = 0;
  bool message_ended = false;
};

class OrderQueue {
 public:
  using Buffer = ReorderingBuffer;
  static constexpr std::uint16_t kNone = Buffer::kNone;

  /// Whether packets wait for a lost one before them. So it is from a stream's beginning; until it is known that the
  /// far end codes, only for one loss.
  bool keeps_order() const { return mode_ != Mode::kOff; }
  /// A gateway stands at the far end: waiting is of use.
  void far_end_heard() {
    if (mode_ == Mode::kUnproven) mode_ = Mode::kOn;
  }
  void keep_order() { mode_ = Mode::kOn; }
  /// Packets pass as they come.
  void stop() { mode_ = Mode::kOff; }
  /// A loss was given up, and nothing shows that the far end codes.
  bool waited_in_vain() const { return mode_ == Mode::kUnproven; }

  /// Whether no packet waits for one before it; repair packets may.
  bool empty() const { return held_.empty(); }
  /// Whether nothing waits.
  bool idle() const { return held_.empty() && repairs_.empty(); }

  /// Keeps a packet back behind those with a PSN up to its own. The buffer must not be full, here and below.
  void hold(Buffer& buffer, PacketPtr packet, std::uint32_t psn, Nanos now, Buffer::Kind kind) {
    buffer.insert(held_, std::move(packet), psn, now, kind);
  }
  /// Keeps a packet back behind all that wait. There must be one.
  void hold_last(Buffer& buffer, PacketPtr packet, Nanos now) {
    buffer.insert(held_, std::move(packet), buffer[held_.tail].psn, now, {.unsequenced = true});
  }
  /// The packet that waits with the lowest PSN. There must be one, here and below.
  const Buffer::Slot& first(const Buffer& buffer) const { return buffer[held_.head]; }
  PacketPtr take_first(Buffer& buffer) { return buffer.remove(held_, held_.head); }
  /// Whether a packet of this PSN would leave behind one that waits.
  bool has_before(const Buffer& buffer, std::uint32_t psn) const {
    return !held_.empty() && !roce::psn_before(psn, first(buffer).psn);
  }
  /// Whether the packet that came last before, of those that wait, has the PSN before this one.
  bool came_before(const Buffer& buffer, std::uint32_t psn) const {
    return held_.newest != kNone && psn == roce::psn_add(buffer[held_.newest].psn, 1);
  }
  /// The highest PSN of a data packet that waits.
  std::optional<std::uint32_t> last_psn(const Buffer& buffer) const;
  /// A packet has come that was rebuilt before, and that waits: it goes as if it were the original. False: there is
  /// none.
  bool replace_rebuilt(Buffer& buffer, Packet original);
  /// Where the packets are that the repair packet covers, where `expected` is the next to be handed over.
  Share share_of(const Buffer& buffer, const RepairHeader& header, std::uint32_t expected) const;

  /// Keeps a repair packet back that may still be of use. Not when repairs_full().
  void hold_repair(Buffer& buffer, PacketPtr packet, std::uint32_t base_psn, Nanos now) {
    buffer.insert(repairs_, std::move(packet), base_psn, now, {});
    repairs_held_++;
  }
  bool repairs_full() const { return repairs_held_ == kRepairsHeld; }
  bool has_repairs() const { return !repairs_.empty(); }
  /// The slots of the repair packets, by their blocks' PSN; kNone ends them.
  std::uint16_t first_repair() const { return repairs_.head; }
  static std::uint16_t repair_after(const Buffer& buffer, std::uint16_t slot) { return buffer[slot].next; }
  PacketPtr take_repair(Buffer& buffer, std::uint16_t slot) {
    repairs_held_--;
    return buffer.remove(repairs_, slot);
  }
  /// The end of the block that has `psn`, as a repair packet that waits says; of the last one behind `psn`.
  std::optional<std::uint32_t> end_of_block(const Buffer& buffer, std::uint32_t psn) const;
  std::optional<BlockEnd> last_end(const Buffer& buffer, std::uint32_t psn) const;

  /// A packet came, see Patience::arrived.
  void note_arrival(bool within_message, Nanos now, Nanos hold_max) {
    patience_.arrived(within_message, now, hold_max);
  }
  /// The next packet's distance from the last one says nothing of how fast they come.
  void interrupt_arrivals() { patience_.interrupt(); }
  /// How long packets wait, see Patience::wait_time.
  Nanos patience(Nanos packets, Nanos hold_min, Nanos hold_max) const {
    return patience_.wait_time(packets, hold_min, hold_max);
  }
  /// When the oldest packet came that waits. There must be one, of either kind.
  Nanos oldest(const Buffer& buffer) const;

 private:
  enum class Mode : std::uint8_t { kUnproven, kOn, kOff };

  ReorderingBuffer::List held_, repairs_;
  [[no_unique_address]] Patience patience_;  // the next members lie in its tail: there are many streams
  std::uint8_t repairs_held_ = 0;
  Mode mode_ = Mode::kUnproven;
};

}  // namespace rocebox::lowar
