// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/block_decoder.h"

#include <utility>

#include "kernels/lowar/image.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

bool BlockDecoder::follow_coding(const Block& block) {
  if (next_coding_.off() && roce::psn_before(block.base_psn, coding_psn_)) return false;
  next_coding_ = block.coding;
  return true;
}

void BlockDecoder::lose_alignment(CodingUnits& units) {
  release_units(units);
  aligned_ = has_boundary_ = false;
}

void BlockDecoder::begin(CodingUnits& units, std::uint32_t psn) {
  release_units(units);
  base_psn_ = psn;
  coding_ = next_coding_;
  aligned_ = complete_ = !coding_.off();
  has_boundary_ = has_boundary_ && roce::psn_before(psn, boundary_psn_);
}

std::uint32_t BlockDecoder::end_of_block(std::uint32_t psn) const {
  const std::int32_t r = next_coding_.r;
  const std::int32_t left = has_boundary_ ? psn_distance(boundary_psn_, psn) : 0;
  return left > 0 && left <= r ? boundary_psn_ : psn_add(psn, r);
}

// The packet lies behind the block that was entered last.
void BlockDecoder::leave_behind(CodingUnits& units, std::uint32_t psn) {
  const std::int32_t behind = psn_distance(psn, base_psn_), r = coding_.r;
  if (behind % r == 0) return begin(units, psn);
  release_units(units);  // the first packets of its own block were given up
  base_psn_ = psn_add(base_psn_, behind / r * r);
}

bool BlockDecoder::add_to_unit(CodingUnits& units, Packet packet, std::uint32_t psn, bool usable) {
  bool full = false;
  if (usable) {
    std::uint16_t& unit = units_[isn(psn)];
    if (unit == CodingUnits::kNone) unit = units.bind();
    full = unit == CodingUnits::kNone;
    if (!full) units.add(unit, packet);
  }
  if (!usable || full) release_units(units);
  return !full;
}

void BlockDecoder::release_units(CodingUnits& units) {
  for (unsigned isn = 0; isn < coding_.c; isn++)
    if (units_[isn] != CodingUnits::kNone) units.release(std::exchange(units_[isn], CodingUnits::kNone));
  complete_ = false;
}

roce::Ahead BlockDecoder::unit_ahead(const CodingUnits& units, Packet packet, std::uint32_t psn) const {
  if (!aligned_) return {};
  const std::int32_t place = psn_distance(psn, base_psn_);
  const bool is_bound = complete_ && place >= 0 && place < coding_.r;
  return units.ahead(is_bound ? units_[isn(psn)] : CodingUnits::kNone, transport_bytes(packet));
}

std::uint16_t BlockDecoder::unit_of(const CodingUnits& units, const RepairHeader& header, unsigned delivered) const {
  const Block& block = header.block;
  if (!complete_ || base_psn_ != block.base_psn || coding_.c != block.coding.c) return CodingUnits::kNone;
  const std::uint16_t unit = units_[header.isn];
  return unit != CodingUnits::kNone && units[unit].packets == delivered ? unit : CodingUnits::kNone;
}

}  // namespace rocebox::lowar
