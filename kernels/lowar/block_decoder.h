// SPDX-License-Identifier: BSD-3-Clause
// The block of a stream that its receiver is in (LoWAR, section IV-B, "decoding buffer"): where it begins, and the
// coding units with the XORs of what was handed over of it. The units' pool is the caller's.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/limits.h"
#include "kernels/lowar/repair_header.h"

namespace rocebox::lowar {

class BlockDecoder {
 public:
  /// (r, c) of the blocks that begin from now on.
  Coding next_coding() const { return next_coding_; }
  /// The sender says it, for what comes from `psn` on.
  void set_next_coding(Coding coding, std::uint32_t psn) {
    next_coding_ = coding;
    coding_psn_ = psn;
  }
  /// A repair packet says it. False: it is late, the sender has switched coding off since.
  bool follow_coding(const Block& block);

  /// Whether it is known where the block begins.
  bool aligned() const { return aligned_; }
  /// A block begins at `psn`, as a LoWAR packet said.
  void set_boundary(std::uint32_t psn) {
    boundary_psn_ = psn;
    has_boundary_ = true;
  }
  /// Where blocks begin is to be learned again.
  void lose_alignment(CodingUnits& units);
  /// A block begins at `psn`.
  void begin(CodingUnits& units, std::uint32_t psn);
  /// Where the block of the PSN ends, as far as one knows.
  std::uint32_t end_of_block(std::uint32_t psn) const;

  // A packet is handed over in three steps.
  /// The packet of this PSN is next: it may begin a block. Blocks begin with a message, where a LoWAR packet said, and
  /// after every r packets.
  void enter(CodingUnits& units, std::uint32_t psn, bool starts_message) {
    if (starts_message || (has_boundary_ && psn == boundary_psn_)) return begin(units, psn);
    if (aligned_ && roce::psn_distance(psn, base_psn_) >= coding_.r) leave_behind(units, psn);
  }
  /// Whether the packet needs a unit that is not bound yet.
  bool needs_unit(std::uint32_t psn) const { return complete_ && units_[isn(psn)] == CodingUnits::kNone; }
  /// XORs the packet into its unit. What cannot be, `usable` says, leaves the block without units, as does a pool
  /// without a free one: then it returns false.
  bool add(CodingUnits& units, Packet packet, std::uint32_t psn, bool usable) {
    return !complete_ || add_to_unit(units, packet, psn, usable);
  }
  /// The packet has its place. Where it completes the block nothing of that is lost, whatever its repair packets say.
  void leave(CodingUnits& units, std::uint32_t psn, bool message_ended) {
    if (message_ended || (aligned_ && roce::psn_distance(psn, base_psn_) + 1 >= coding_.r)) release_units(units);
  }
  /// The block cannot be decoded, or need not.
  void release_units(CodingUnits& units);

  /// The unit that the packet will be XORed into, if it is the next.
  roce::Ahead unit_ahead(const CodingUnits& units, Packet packet, std::uint32_t psn) const;
  /// The unit with the XOR of exactly those `delivered` packets that a repair packet covers; kNone: there is none.
  std::uint16_t unit_of(const CodingUnits& units, const RepairHeader& header, unsigned delivered) const;

 private:
  void leave_behind(CodingUnits& units, std::uint32_t psn);
  bool add_to_unit(CodingUnits& units, Packet packet, std::uint32_t psn, bool usable);
  unsigned isn(std::uint32_t psn) const {
    return static_cast<unsigned>(roce::psn_distance(psn, base_psn_)) % coding_.c;
  }

  std::uint32_t base_psn_ = 0;      // first PSN of the block in the units
  std::uint32_t boundary_psn_ = 0;  // a block begins here
  std::uint32_t coding_psn_ = 0;    // from where on next_coding_ holds, as the sender said
  Coding coding_, next_coding_;     // of the block in the units; of the next
  bool aligned_ = false;            // base_psn_ is known
  bool complete_ = false;           // all that was handed over of the block is in the units
  bool has_boundary_ = false;
  std::array<std::uint16_t, kInterleavingMax> units_{};  // by ISN
};

}  // namespace rocebox::lowar
