// SPDX-License-Identifier: BSD-3-Clause
// TernaryTable: values under masks with priorities, on rte_acl.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "switch_model/layout.h"
#include "switch_model/tables/miss.h"

struct rte_acl_ctx;

namespace rocebox::switch_model {

/// rte_acl over keys of plain bytes, owned.
class AclIndex {
 public:
  /// Highest priority first; 1 to kPriorityMax.
  static constexpr std::uint32_t kPriorityMax = 1u << 29;
  struct Rule {
    const void *value, *mask;
    std::uint32_t priority;
  };

  explicit AclIndex(std::uint32_t key_bytes) : key_bytes_(key_bytes) {}
  ~AclIndex();
  AclIndex(AclIndex&& other) noexcept : acl_(std::exchange(other.acl_, nullptr)), key_bytes_(other.key_bytes_) {}
  AclIndex& operator=(AclIndex&&) = delete;

  /// Replaces all rules; a lookup gives the number of the rule. Throws ConfigError when they cannot be built; the old
  /// ones stay then.
  void build(std::span<const Rule> rules);
  void swap(AclIndex& other) noexcept { std::swap(acl_, other.acl_); }
  /// At most kBatchMax keys, `stride` bytes apart.
  void find_bulk(const std::uint8_t* keys, std::size_t stride, std::uint32_t count, std::uint32_t* entries) const;

 private:
  rte_acl_ctx* acl_ = nullptr;
  std::uint32_t key_bytes_;
};

/// `KeyType` is plain bytes, a multiple of four, at most 64. The control plane changes it between batches.
template <class KeyType, class Value>
class TernaryTable : public ResourceHandle {
  static_assert(std::is_trivially_copyable_v<KeyType> && std::has_unique_object_representations_v<KeyType>);
  static_assert(sizeof(KeyType) % 4 == 0 && sizeof(KeyType) <= 64);

 public:
  using Key = KeyType;
  struct Entry {
    Key value, mask;         ///< bits that the mask leaves out may be anything
    std::uint32_t priority;  ///< 1 to AclIndex::kPriorityMax; of those that match, the highest wins
    Value action;
  };

  TernaryTable(Layout& layout, std::string_view name, At at, std::uint32_t capacity)
      : index_(sizeof(Key)), capacity_(capacity) {
    layout.declare(
        *this,
        {{}, std::string(name), ResourceKind::kTernaryTable, at, capacity, 8 * sizeof(Key), 8 * sizeof(Value), 0, 0});
  }

  /// One beside the declared ones, to be filled and then taken over by swap_entries().
  explicit TernaryTable(std::uint32_t capacity) : index_(sizeof(Key)), capacity_(capacity) {}

  /// Takes the entries of a table of the same capacity, and leaves it its own. Does not allocate.
  void swap_entries(TernaryTable& other) noexcept {
    index_.swap(other.index_);
    entries_.swap(other.entries_);
  }
  /// Replaces all entries. False when there are more than the table holds. Throws ConfigError; see AclIndex::build.
  bool set(std::vector<Entry> entries) {
    if (entries.size() > capacity_) return false;
    std::vector<AclIndex::Rule> rules;
    for (const Entry& entry : entries) rules.push_back({&entry.value, &entry.mask, entry.priority});
    index_.build(rules);
    entries_ = std::move(entries);
    return true;
  }
  std::uint32_t lookup(const Key& key) const {
    std::uint32_t entry;
    lookup_bulk({&key, 1}, {&entry, 1});
    return entry;
  }
  void lookup_bulk(std::span<const Key> keys, std::span<std::uint32_t> entries) const {
    index_.find_bulk(reinterpret_cast<const std::uint8_t*>(keys.data()), sizeof(Key),
                     static_cast<std::uint32_t>(keys.size()), entries.data());
  }
  const Value& value(std::uint32_t entry) const { return entries_[entry].action; }
  std::uint32_t capacity() const { return capacity_; }

 private:
  AclIndex index_;
  std::vector<Entry> entries_;
  std::uint32_t capacity_;
};

}  // namespace rocebox::switch_model
