// SPDX-License-Identifier: BSD-3-Clause
// GuardedMemory: pages between two that nobody may touch, so that running over either end is a fault and no wrong data.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::nic_model::dpa {

/// Memory of device programs: their heap and stacks; for hosts, what they open a window to.
class GuardedMemory {
 public:
  /// All zeros; `bytes` is rounded up to pages. Throws std::bad_alloc.
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  bool holds(const void* address) const {
    const auto* at = static_cast<const std::uint8_t*>(address);
    return at >= data_ && at < data_ + bytes_;
  }
  /// Whether `address` is in one of the two pages.
  bool guards(const void* address) const;

 private:
  std::uint8_t* data_;
  std::size_t bytes_;
};

}  // namespace rocebox::nic_model::dpa
