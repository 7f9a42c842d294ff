// SPDX-License-Identifier: BSD-3-Clause
// ExactTable: exact match on rte_hash. The entry that a key finds is a number; the action data stand beside.
#pragma once
#include <rte_hash_crc.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "runtime/packet/prefetch.h"
#include "switch_model/layout.h"
#include "switch_model/tables/miss.h"

struct rte_hash;

namespace rocebox::switch_model {

/// The hash of a key: CRC32C, which the compiler unrolls where the length is known. Not rte_hash_crc(), which reads
/// keys as if they stood on eight bytes. Of a key of zeros it must not be 0: rte_hash (DPDK 22.11) takes an empty place
/// for such a key when one is overwritten, and loses a place with each time.
inline std::uint32_t key_hash(const void* key, std::size_t bytes, std::uint32_t hash = 0xFFFFFFFF) {
  const auto* at = static_cast<const std::uint8_t*>(key);
  for (; bytes >= sizeof(std::uint64_t); bytes -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    hash = rte_hash_crc_8byte(word, hash);
  }
  if (bytes >= sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, at, sizeof word);
    hash = rte_hash_crc_4byte(word, hash);
    bytes -= sizeof word;
    at += sizeof word;
  }
  for (; bytes > 0; bytes--) hash = rte_hash_crc_1byte(*at++, hash);
  return hash;
}

/// rte_hash with keys of plain bytes, owned. Not a template, so that DPDK's header stays in one file.
class HashIndex {
 public:
  using HashFunction = std::uint32_t (*)(const void* key, std::uint32_t bytes, std::uint32_t);

  /// Throws ConfigError when memory is short.
  HashIndex(std::uint32_t capacity, std::uint32_t key_bytes, HashFunction hash);
  ~HashIndex();
  HashIndex(HashIndex&& other) noexcept;
  HashIndex& operator=(HashIndex&& other) noexcept;

  std::uint32_t find(const void* key) const;
  /// keys, hashes: of count (at most kBatchMax) keys, pointers and what the hash function gives.
  void find_bulk(const void** keys, std::uint32_t* hashes, std::uint32_t count, std::uint32_t* entries) const;
  /// The key's entry, new or old; kMiss when the table is full.
  std::uint32_t insert(const void* key);
  bool erase(const void* key);
  std::uint32_t size() const;
  /// Every entry is below; more than the capacity where that is small.
  std::uint32_t places() const { return std::max(capacity_, kPlacesLeast) + 1; }
  std::uint32_t capacity() const { return capacity_; }

 private:
  static constexpr std::uint32_t kPlacesLeast = 8;  // of an rte_hash

  rte_hash* hash_ = nullptr;
  std::uint32_t capacity_;
};

/// `Key` is plain bytes without padding; `Value` is the action data. The datapath looks up; the control plane
/// (configuration, Program::on_timer, Change) inserts and erases between batches.
///
/// Both may have kBits, when a table of hardware has less than all their bytes. A key may have `std::uint32_t hash()
/// const` and `bool same_as(const Key&) const` where these can be cheaper than over all its bytes, whose equality they
/// must agree with; what is said at key_hash() of a key of zeros holds for them, too.
///
/// Before rte_hash is asked, the entry that was found last for an equal hash (of as many bits as there are entries, or
/// one or two more) is looked at: a packet of a flow that was seen lately costs a hash and a comparison.
template <class KeyType, class Value>
class ExactTable : public ResourceHandle {
  static_assert(std::is_trivially_copyable_v<KeyType> && std::has_unique_object_representations_v<KeyType>,
                "keys are compared and hashed as bytes");

 public:
  using Key = KeyType;

  ExactTable(Layout& layout, std::string_view name, At at, std::uint32_t capacity, std::uint64_t per_flow = 0)
      : index_(capacity, sizeof(Key),
               [](const void* key, std::uint32_t, std::uint32_t) { return hash_of(*static_cast<const Key*>(key)); }),
        rows_(std::size_t{index_.places()} + 1),
        recent_(std::bit_ceil(2 * std::size_t{capacity})) {
    layout.declare(*this, {{},
                           std::string(name),
                           ResourceKind::kExactTable,
                           at,
                           capacity,
                           bits_of<Key>(),
                           bits_of<Value>(),
                           0,
                           per_flow});
  }

  /// The entry of `key`, or kMiss.
  std::uint32_t lookup(const Key& key) const { return index_.find(&key); }
  /// entries[i] is the entry of keys[i]; at most kBatchMax at once. Cheaper than one by one.
  void lookup_bulk(std::span<const Key> keys, std::span<std::uint32_t> entries) const {
    lookup_bulk(keys, entries, [](std::size_t, std::uint32_t) {});
  }
  /// The same; `found(i, entry)` is called for those that were found lately, to prefetch what belongs to them.
  template <class Found>
  void lookup_bulk(std::span<const Key> keys, std::span<std::uint32_t> entries, Found&& found) const {
    std::uint32_t hashes[kBatchMax], missed[kBatchMax];
    for (std::size_t i = 0; i < keys.size(); i++) {
      hashes[i] = hash_of(keys[i]);
      prefetch_line(&recent(hashes[i]));
    }
    for (std::size_t i = 0; i < keys.size(); i++) {
      entries[i] = recent(hashes[i]);
      prefetch_line(&rows_[entries[i]]);
    }
    std::uint32_t missed_count = 0;
    for (std::uint32_t i = 0; i < keys.size(); i++) {
      const std::uint32_t row = entries[i]--;
      if (row != kNone && same(rows_[row].key, keys[i])) [[likely]]
        found(i, row - 1);
      else
        missed[missed_count++] = i;
    }
    if (missed_count) search(keys, hashes, {missed, missed_count}, entries);
  }
  const Value& value(std::uint32_t entry) const { return rows_[entry + 1].value; }
  Value& value(std::uint32_t entry) { return rows_[entry + 1].value; }
  const Key& key(std::uint32_t entry) const { return rows_[entry + 1].key; }

  /// Inserts or overwrites. kMiss when the table is full: count it.
  std::uint32_t insert(const Key& key, const Value& value) {
    const std::uint32_t entry = index_.insert(&key);
    if (entry != kMiss) rows_[entry + 1] = {key, value};
    return entry;
  }
  bool erase(const Key& key) {
    std::uint32_t& row = recent(hash_of(key));
    if (row != kNone && same(rows_[row].key, key)) row = kNone;  // what `recent_` says is in the table
    return index_.erase(&key);
  }
  std::uint32_t size() const { return index_.size(); }
  std::uint32_t capacity() const { return index_.capacity(); }
  /// Every entry is below.
  std::uint32_t rows() const { return index_.places(); }

 private:
  // Where they are not larger than a cache line they lie in one.
  struct alignas(std::min(std::bit_ceil(sizeof(Key) + sizeof(Value)), std::size_t{64})) Row {
    Key key;
    Value value;
  };
  static constexpr std::uint32_t kNone = 0;

  template <class T>
  static constexpr unsigned bits_of() {
    if constexpr (requires { T::kBits; }) return T::kBits;
    return 8 * sizeof(T);
  }
  std::uint32_t& recent(std::uint32_t hash) const { return recent_[hash & (recent_.size() - 1)]; }
  static std::uint32_t hash_of(const Key& key) {
    if constexpr (requires { key.hash(); })
      return key.hash();
    else
      return key_hash(&key, sizeof(Key));
  }
  static bool same(const Key& a, const Key& b) {
    if constexpr (requires { a.same_as(b); })
      return a.same_as(b);
    else
      return std::memcmp(&a, &b, sizeof(Key)) == 0;
  }

  [[gnu::noinline]] void search(std::span<const Key> keys, const std::uint32_t* hashes,
                                std::span<const std::uint32_t> missed, std::span<std::uint32_t> entries) const {
    const void* pointers[kBatchMax];
    std::uint32_t missed_hashes[kBatchMax], found[kBatchMax];
    for (std::size_t i = 0; i < missed.size(); i++) {
      pointers[i] = &keys[missed[i]];
      missed_hashes[i] = hashes[missed[i]];
    }
    index_.find_bulk(pointers, missed_hashes, static_cast<std::uint32_t>(missed.size()), found);
    for (std::size_t i = 0; i < missed.size(); i++) {
      entries[missed[i]] = found[i];
      if (found[i] != kMiss) recent(missed_hashes[i]) = found[i] + 1;
    }
  }

  HashIndex index_;
  flows::ZeroedArray<Row> rows_;                      // that of an entry has the entry's number plus one
  mutable flows::ZeroedArray<std::uint32_t> recent_;  // by hash: the row found last, or kNone
};

}  // namespace rocebox::switch_model
