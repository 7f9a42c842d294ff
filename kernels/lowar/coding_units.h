// SPDX-License-Identifier: BSD-3-Clause
// Coding units (LoWAR, section IV-B2): the intermediate values of XORs, in a pool with a FIFO queue of free units (the
// paper's appendix). One pool for each direction, all memory taken when made.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/lowar/image.h"
#include "runtime/flows/flow_table.h"
#include "runtime/roce/icrc.h"

namespace rocebox::lowar {

class CodingUnits {
 public:
  static constexpr std::uint16_t kNone = 0;

  /// What is known of the packets in a unit.
  struct Unit {
    std::uint16_t packets;
    std::uint16_t image_bytes;  ///< of the longest image
    Sums sums;
  };

  /// `count` units of at most `image_bytes` bytes each.
  CodingUnits(std::uint32_t count, std::uint32_t image_bytes);

  /// Bytes of memory that they take, when all have been used.
  std::size_t bytes() const { return data_.size() + count_ * (sizeof(Unit) + sizeof(std::uint16_t)); }

  /// The unit that has been free for longest, empty; kNone when all are bound.
  std::uint16_t bind();
  /// Dissolves the binding.
  void release(std::uint16_t unit);
  std::uint32_t bound() const { return count_ - free_; }
  bool all_bound() const { return free_ == 0; }

  /// The memory that a transport packet of so many bytes needs of the unit; kNone: of that which will be bound next.
  roce::Ahead ahead(std::uint16_t unit, std::uint32_t bytes) const;

  /// XORs a data packet's image into the unit. The image must fit, and the packet be held up to its ICRC.
  void add(std::uint16_t unit, Packet packet);

  const Unit& operator[](std::uint16_t unit) const { return units_[unit - 1u]; }
  std::span<const std::uint8_t> image(std::uint16_t unit) const { return {data(unit), units_[unit - 1u].image_bytes}; }

 private:
  // The prefix stands in front of a cache line's border, so that the XOR of the transport packets begins at one.
  static constexpr std::size_t kLead = 64 - sizeof(CodedPrefix);
  std::uint8_t* data(std::uint16_t unit) { return data_.data() + (unit - 1u) * stride_ + kLead; }
  const std::uint8_t* data(std::uint16_t unit) const { return data_.data() + (unit - 1u) * stride_ + kLead; }

  std::size_t stride_;
  std::uint32_t image_bytes_max_, count_, free_, head_ = 0;
  flows::ZeroedArray<std::uint8_t> data_;
  flows::ZeroedArray<Unit> units_;
  flows::ZeroedArray<std::uint16_t> queue_;  // a ring of the free units, oldest at head_
};

}  // namespace rocebox::lowar
