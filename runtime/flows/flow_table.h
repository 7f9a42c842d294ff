// SPDX-License-Identifier: BSD-3-Clause
// FlowTable: a hash table of fixed capacity from a key of plain bytes to a number 0, 1, 2... in
// order of insertion; numbers of erased keys are given anew. The owner keeps what belongs to a key
// in arrays of its own, under that number.
#pragma once
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "runtime/flows/zeroed_array.h"
#include "runtime/limits.h"
#include "runtime/packet/prefetch.h"

namespace rocebox::flows {

/// Mixes the bytes of a key into 64 bits by folded 128-bit products (the construction of wyhash and of Abseil's hash).
/// xxHash, which hashes all that leaves a replay, is slower for the keys that there are: XXH3_64bits, inlined,
/// takes 1.2 to 1.5 times as long for 20 to 40 bytes of a burst (36 bytes: 3.4 ns against 2.3 ns), and plugins would
/// need its headers. From 256 bytes on it is quicker, 3 times at 1 KiB. bench/micro/hash_bench.cc compares them.
template <std::size_t kSize>
std::uint64_t hash_bytes(const void* bytes) {
  static_assert(kSize <= 64, "take XXH3_64bits for what is longer than a key");
  __extension__ using Wide = unsigned __int128;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  constexpr std::uint64_t kOdd1 = 0xa0761d6478bd642full, kOdd2 = 0xe7037ed1a0b428dbull;
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t hash = kOdd1 ^ kSize, words[2];
  constexpr std::size_t kRest = kSize % sizeof words, kWhole = kSize - kRest;
  for (std::size_t i = 0; i < kWhole; i += sizeof words) {
    std::memcpy(words, at + i, sizeof words);
    hash = fold(words[0] ^ kOdd2 ^ hash, words[1] ^ kOdd1);
  }
  if constexpr (kRest > 0) {
    words[0] = words[1] = 0;
    // Word by word: what was written in other pieces than it is read in takes the CPU five times as long.
    std::memcpy(words, at + kWhole, kRest < 8 ? kRest : 8);
    if constexpr (kRest > 8) std::memcpy(words + 1, at + kWhole + 8, kRest - 8);
    hash = fold(words[0] ^ kOdd2 ^ hash, words[1] ^ kOdd1);
  }
  return fold(hash ^ kOdd1, kOdd2);
}

/// Open addressing, linear probing. No allocation after construction. At most kFlowProbesMax slots
/// are looked at, whatever keys the network sends; at the load of at most 1/2 chance does not get
/// there.
template <class Key>
class FlowTable {
  static_assert(std::is_trivially_copyable_v<Key> && std::has_unique_object_representations_v<Key>,
                "keys are compared and hashed as bytes: no padding, no float");

 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  explicit FlowTable(std::uint32_t capacity)
      : keys_(capacity), vacated_(capacity), slots_(slots_for(capacity)), mask_(slots_.size() - 1) {}

  std::uint32_t size() const { return size_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(keys_.size()); }

  /// The key with number `index`, which has not been erased since.
  const Key& key(std::uint32_t index) const { return keys_[index]; }
  /// All keys, in order of insertion; where none has been erased.
  std::span<const Key> keys() const { return {keys_.data(), size_}; }

  static std::uint64_t hash(const Key& key) { return hash_bytes<sizeof(Key)>(&key); }
  /// Brings the slot of `hash` nearer; for batches: hash all, prefetch all, then find.
  void prefetch(std::uint64_t hash) const { prefetch_line(&slots_[hash & mask_]); }

  /// The number of `key`, or kNone.
  std::uint32_t find(const Key& key, std::uint64_t hash) const {
    for (unsigned probe = 0; probe < kFlowProbesMax; probe++) {
      const Slot& slot = slots_[(hash + probe) & mask_];
      if (slot.number == 0) return kNone;
      if (holds(slot, key, hash)) return slot.number - 1;
    }
    return kNone;
  }
  std::uint32_t find(const Key& key) const { return find(key, hash(key)); }

  /// The number of `key`, which is inserted when it is new; kNone when it is new and there is no
  /// room.
  std::uint32_t insert(const Key& key, std::uint64_t hash) {
    Slot* place = nullptr;  // the first that may be taken
    for (unsigned probe = 0; probe < kFlowProbesMax; probe++) {
      Slot& slot = slots_[(hash + probe) & mask_];
      if (holds(slot, key, hash)) return slot.number - 1;
      if (!place && (slot.number == 0 || slot.number == kErased)) place = &slot;
      if (slot.number == 0) break;
    }
    if (!place || size_ == capacity()) return kNone;
    const std::uint32_t index = vacated_count_ ? vacated_[--vacated_count_] : size_;
    keys_[index] = key;
    *place = {tag_of(hash), index + 1};
    size_++;
    return index;
  }
  std::uint32_t insert(const Key& key) { return insert(key, hash(key)); }

  /// Bytes of memory that a table for so many keys takes, when all of it has been touched.
  static constexpr std::size_t bytes(std::uint32_t capacity) {
    return capacity * (sizeof(Key) + sizeof(std::uint32_t)) + slots_for(capacity) * sizeof(Slot);
  }

  /// Forgets the key with number `index`, which has not been erased since; a later key will have that number.
  void erase(std::uint32_t index) {
    std::size_t at = hash(keys_[index]) & mask_;
    for (unsigned probe = 0; slots_[at].number != index + 1; at = (at + 1) & mask_) {
      assert(probe < kFlowProbesMax);
      if (++probe >= kFlowProbesMax) return;
    }
    slots_[at] = {0, kErased};
    vacated_[vacated_count_++] = index;
    size_--;
    // Where a probe would end at the next slot anyhow, it may end here.
    for (unsigned i = 0; i < kFlowProbesMax && slots_[at].number == kErased; i++, at = (at - 1) & mask_) {
      if (slots_[(at + 1) & mask_].number != 0) break;
      slots_[at].number = 0;
    }
  }

 private:
  struct Slot {
    std::uint32_t tag;
    std::uint32_t number;  // index + 1; 0: free; kErased: free, but a key may lie behind it
  };
  static constexpr std::size_t slots_for(std::uint32_t capacity) {
    return std::bit_ceil(std::size_t{capacity} * 2 + 2);
  }
  static constexpr std::uint32_t kErased = 0xFFFFFFFF;
  bool holds(const Slot& slot, const Key& key, std::uint64_t hash) const {
    if (slot.tag != tag_of(hash) || slot.number == 0 || slot.number == kErased) return false;
    return equal(keys_[slot.number - 1], key);
  }
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  static bool equal(const Key& a, const Key& b) { return std::memcmp(&a, &b, sizeof(Key)) == 0; }

  ZeroedArray<Key> keys_;
  ZeroedArray<std::uint32_t> vacated_;  // numbers of erased keys; the last one is given first
  ZeroedArray<Slot> slots_;
  std::size_t mask_;
  std::uint32_t size_ = 0, vacated_count_ = 0;
};

}  // namespace rocebox::flows
