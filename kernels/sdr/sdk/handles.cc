// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/sdk/handles.h"

namespace rocebox::libsdr {

// Never destroyed: other threads may use it while the process ends.
Handles& Handles::get() {
  static auto* const all = new Handles;
  return *all;
}

void Handles::limit(std::size_t most) {
  const std::lock_guard lock(change_);
  most_ = most < kMost ? most : kMost;
}

Handles::Value Handles::add(HandleKind kind, void* object) {
  const std::lock_guard lock(change_);
  // Those that were given back longest ago first, and only when there are some: a number is not soon used again.
  std::size_t place = used_;
  if (free_.size() > 1024 || used_ >= most_) {
    if (free_.empty()) return 0;
    place = free_.front();
    free_.pop_front();
  } else if (used_++ % kEntries == 0) {
    segments_[place / kEntries].store(new Entry[kEntries], std::memory_order_release);
  }
  Entry& entry = *at(place);
  entry.generation = (entry.generation + 1) & 0xFFFFFF;
  const Value value = Value{static_cast<std::uint8_t>(kind)} << 56 | Value{entry.generation} << 32 | place << 8 | 0xA5;
  entry.object.store(object, std::memory_order_release);
  entry.value.store(value, std::memory_order_release);
  return value;
}

bool Handles::remove(Value value) {
  const std::lock_guard lock(change_);
  const std::size_t place = value >> 8 & 0xFFFFFF;
  Entry* entry = at(place);
  if (!value || !entry || entry->value.load() != value) return false;
  entry->value.store(0, std::memory_order_release);
  free_.push_back(place);
  return true;
}

void* Handles::find(HandleKind kind, Value value) const {
  if (value >> 56 != static_cast<std::uint8_t>(kind) || (value & 0xFF) != 0xA5) return nullptr;
  const Entry* entry = at(value >> 8 & 0xFFFFFF);
  if (!entry || entry->value.load(std::memory_order_acquire) != value) return nullptr;
  return entry->object.load(std::memory_order_acquire);
}

}  // namespace rocebox::libsdr
