// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/coding_units.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/packet/prefetch.h"

namespace rocebox::lowar {
namespace {

constexpr std::size_t kCacheLine = 64;

// A longer image than those before is copied beyond their end: there they count as zeros.
void merge(std::uint8_t* to, std::uint32_t had, const std::uint8_t* from, std::uint32_t count) {
  const std::uint32_t common = std::min(had, count);
  xor_into(to, from, common);
  if (count > common) std::memcpy(to + common, from + common, count - common);
}

}  // namespace

CodingUnits::CodingUnits(std::uint32_t count, std::uint32_t image_bytes)
    : stride_((kLead + image_bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
      image_bytes_max_(image_bytes),
      count_(count),
      free_(count),
      data_(stride_ * count, flows::Pages::kHuge),
      units_(count),
      queue_(count) {
  for (std::uint32_t i = 0; i < count; i++) queue_[i] = static_cast<std::uint16_t>(i + 1);
}

std::uint16_t CodingUnits::bind() {
  if (free_ == 0) return kNone;
  const std::uint16_t unit = queue_[head_];
  head_ = head_ + 1 == count_ ? 0 : head_ + 1;
  free_--;
  units_[unit - 1u] = {};
  return unit;
}

void CodingUnits::release(std::uint16_t unit) {
  assert(unit != kNone && free_ < count_);
  const std::uint32_t tail = head_ + free_;
  queue_[tail >= count_ ? tail - count_ : tail] = unit;
  free_++;
}

roce::Ahead CodingUnits::ahead(std::uint16_t unit, std::uint32_t bytes) const {
  if (unit == kNone) unit = queue_[head_];
  prefetch_line(&units_[unit - 1u]);
  constexpr auto kPrefix = static_cast<std::uint32_t>(sizeof(CodedPrefix));
  return {data(unit), std::min(kPrefix + bytes, image_bytes_max_)};
}

void CodingUnits::add(std::uint16_t unit, Packet packet) {
  Unit& state = units_[unit - 1u];
  const CodedPrefix prefix = prefix_of(packet);
  const std::uint32_t bytes = transport_bytes(packet);
  constexpr std::uint32_t kPrefix = sizeof(CodedPrefix);
  assert(kPrefix + bytes <= image_bytes_max_);
  const std::uint32_t had = state.image_bytes;
  merge(data(unit), std::min(had, kPrefix), reinterpret_cast<const std::uint8_t*>(&prefix), kPrefix);
  merge(data(unit) + kPrefix, had > kPrefix ? had - kPrefix : 0, transport(packet), bytes);
  state.image_bytes = static_cast<std::uint16_t>(std::max(had, kPrefix + bytes));
  state.packets++;
  state.sums += sums_of(packet);
}

}  // namespace rocebox::lowar
