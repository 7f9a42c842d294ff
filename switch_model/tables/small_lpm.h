// SPDX-License-Identifier: BSD-3-Clause
// SmallLpm: longest-prefix match for a few prefixes, in as little memory as they need: the ranges of addresses between
// the borders of prefixes, sorted.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "switch_model/tables/miss.h"

namespace rocebox::switch_model {

/// Up to so many prefixes a table is made of these: rte_lpm's and rte_lpm6's take 64 MiB of address space each, which
/// hundreds of switches have not.
inline constexpr std::uint32_t kSmallLpmPrefixes = 256;

/// Keys have their most significant byte first. Only insert() and erase() allocate.
template <std::size_t kBytes>
class SmallLpm {
 public:
  using Key = std::array<std::uint8_t, kBytes>;

  std::uint32_t lookup(const Key& key) const {
    const auto behind =
        std::upper_bound(ranges_.begin(), ranges_.end(), key, [](const Key& k, const Range& r) { return k < r.first; });
    return behind == ranges_.begin() ? kMiss : (behind - 1)->value;
  }
  /// A prefix that is there gets the new value; false when there are `capacity` others.
  bool insert(Key key, unsigned bits, std::uint32_t value, std::size_t capacity) {
    key = masked(key, bits);
    const auto same = std::ranges::find_if(prefixes_, [&](const Prefix& p) { return p.bits == bits && p.key == key; });
    if (same == prefixes_.end() && prefixes_.size() >= capacity) return false;
    if (same != prefixes_.end())
      same->value = value;
    else
      prefixes_.push_back({key, bits, value});
    cover({key, bits, value});
    return true;
  }
  bool erase(Key key, unsigned bits) {
    key = masked(key, bits);
    if (std::erase_if(prefixes_, [&](const Prefix& p) { return p.bits == bits && p.key == key; }) == 0) return false;
    ranges_.clear();
    for (const Prefix& prefix : prefixes_) cover(prefix);
    return true;
  }

 private:
  struct Prefix {
    Key key;
    unsigned bits;
    std::uint32_t value;
  };
  struct Range {
    Key first;
    unsigned bits;  // of the prefix that its value is from
    std::uint32_t value;
  };

  static Key masked(Key key, unsigned bits) {
    for (std::size_t i = 0; i < kBytes; i++) {
      const unsigned here = bits > 8 * i ? std::min<unsigned>(8, bits - static_cast<unsigned>(8 * i)) : 0;
      key[i] = static_cast<std::uint8_t>(key[i] & (0xFF00u >> here));
    }
    return key;
  }
  // The first key behind those of a prefix; false when these are the last ones.
  static bool behind(Key& key, unsigned bits) {
    for (unsigned byte = (bits + 7) / 8, step = 1u << ((8 - bits % 8) % 8); byte-- > 0; step = 1) {
      const unsigned sum = key[byte] + step;
      key[byte] = static_cast<std::uint8_t>(sum);
      if (sum <= 0xFF) return true;
    }
    return false;
  }
  // The range that begins at `key`, which is made by dividing the one that has it.
  std::size_t divide(const Key& key) {
    const auto at =
        std::lower_bound(ranges_.begin(), ranges_.end(), key, [](const Range& r, const Key& k) { return r.first < k; });
    const auto place = static_cast<std::size_t>(at - ranges_.begin());
    if (at != ranges_.end() && at->first == key) return place;
    const Range before = place == 0 ? Range{key, 0, kMiss} : ranges_[place - 1];
    ranges_.insert(at, {key, before.bits, before.value});
    return place;
  }
  void cover(const Prefix& prefix) {
    const std::size_t first = divide(prefix.key);
    Key end = prefix.key;
    const std::size_t last = behind(end, prefix.bits) ? divide(end) : ranges_.size();
    for (std::size_t i = first; i < last; i++)
      if (ranges_[i].value == kMiss || ranges_[i].bits <= prefix.bits) {
        ranges_[i].bits = prefix.bits;
        ranges_[i].value = prefix.value;
      }
  }

  std::vector<Prefix> prefixes_;
  std::vector<Range> ranges_;
};

}  // namespace rocebox::switch_model
