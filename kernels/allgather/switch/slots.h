// SPDX-License-Identifier: BSD-3-Clause
// Slots: the chunks that are being summed. Contributions are kept until all have come and then added in the order of
// the children, so that a sum of floating-point numbers does not depend on who was first.
#pragma once
#include <bitset>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/flows/zeroed_array.h"
#include "runtime/roce/address.h"
#include "switch_model/limits.h"

namespace rocebox::reduce {

using Children = std::bitset<switch_model::kSwitchPortsMax>;

/// Which chunk a slot is for.
struct ChunkKey {
  roce::IpAddress owner{};
  std::uint32_t qpn = 0, immediate = 0;
  bool is_float = false;
  bool operator==(const ChunkKey&) const = default;
};

/// Longest headers that a sum takes over: two VLAN tags, IPv6 with an extension, all that a datagram has.
inline constexpr std::uint32_t kHeadMax = 14 + 8 + 40 + 40 + 8 + 12 + 8 + 4;

struct Slot {
  ChunkKey key, last;  ///< what is summed, and what was summed before
  bool busy = false, has_last = false, has_bytes = false;
  std::uint32_t bytes = 0;  ///< of each contribution
  Children came;
  std::uint32_t head_child = 0, head_bytes = 0;
  std::uint8_t head[kHeadMax] = {};  ///< headers of the first child's contribution
};

class Slots {
 public:
  Slots(std::uint32_t slots, std::size_t children, std::uint64_t bytes)
      : slots_(slots),
        words_per_child_(bytes / 4),
        words_per_slot_(words_per_child_ * children),
        words_(std::size_t{slots} * words_per_slot_, flows::Pages::kSmall, flows::Touch::kAsUsed) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  Slot& operator[](std::uint32_t index) { return slots_[index]; }
  const Slot& operator[](std::uint32_t index) const { return slots_[index]; }

  void keep(std::uint32_t slot, std::size_t child, const std::uint8_t* payload, std::uint32_t bytes) {
    std::memcpy(words(slot, child), payload, bytes);
  }
  /// Writes the sum of what `children` have given. Numbers are little-endian, as x86 hosts have them; whole ones wrap.
  void sum(std::uint32_t slot, const Children& children, bool is_float, std::uint8_t* to, std::uint32_t bytes) {
    is_float ? sum_of<float>(slot, children, to, bytes) : sum_of<std::uint32_t>(slot, children, to, bytes);
  }

 private:
  std::uint32_t* words(std::uint32_t slot, std::size_t child) {
    return words_.data() + slot * words_per_slot_ + child * words_per_child_;
  }
  template <class T>
  void sum_of(std::uint32_t slot, const Children& children, std::uint8_t* to, std::uint32_t bytes) {
    for (std::uint32_t word = 0; word < bytes / 4; word++) {
      T sum{};
      bool first = true;
      for (std::size_t child = 0; child < children.size(); child++) {
        if (!children[child]) continue;
        T one;
        std::memcpy(&one, words(slot, child) + word, sizeof one);
        sum = first ? one : static_cast<T>(sum + one);
        first = false;
      }
      std::memcpy(to + 4 * word, &sum, sizeof sum);
    }
  }

  std::vector<Slot> slots_;
  std::size_t words_per_child_, words_per_slot_;
  flows::ZeroedArray<std::uint32_t> words_;
};

}  // namespace rocebox::reduce
