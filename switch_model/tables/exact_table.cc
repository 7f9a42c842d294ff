// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/tables/exact_table.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_hash.h>

#include <utility>

#include "runtime/kernel/kernel.h"
#include "switch_model/tables/names.h"

namespace rocebox::switch_model {

HashIndex::HashIndex(std::uint32_t capacity, std::uint32_t key_bytes, HashFunction hash) : capacity_(capacity) {
  const std::string name = table_name();
  rte_hash_parameters parameters{};
  parameters.name = name.c_str();
  parameters.entries = places() - 1;
  parameters.key_len = key_bytes;
  parameters.socket_id = -1;  // any
  parameters.hash_func = hash;
  // Buckets that overflow get more room, so that a table takes as many keys as it says, whatever they are.
  parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE;
  hash_ = rte_hash_create(&parameters);
  if (!hash_)
    throw ConfigError(fmt::format("no memory for a table of {} entries: {}", capacity, rte_strerror(rte_errno)));
}

HashIndex::~HashIndex() { rte_hash_free(hash_); }
HashIndex::HashIndex(HashIndex&& other) noexcept
    : hash_(std::exchange(other.hash_, nullptr)), capacity_(other.capacity_) {}
HashIndex& HashIndex::operator=(HashIndex&& other) noexcept {
  std::swap(hash_, other.hash_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

std::uint32_t HashIndex::find(const void* key) const {
  const int entry = rte_hash_lookup(hash_, key);
  return entry < 0 ? kMiss : static_cast<std::uint32_t>(entry);
}

void HashIndex::find_bulk(const void** keys, std::uint32_t* hashes, std::uint32_t count, std::uint32_t* entries) const {
  if (count == 0) return;
  auto* positions = reinterpret_cast<std::int32_t*>(entries);
  rte_hash_lookup_with_hash_bulk(hash_, keys, hashes, count, positions);
  static_assert(kMiss == 0xFFFFFFFF, "a negative position, with its sign in all bits");
  for (std::uint32_t i = 0; i < count; i++) positions[i] |= positions[i] >> 31;
}

std::uint32_t HashIndex::insert(const void* key) {
  if (size() >= capacity_) return find(key);  // rte_hash has room left where the capacity is small
  const int entry = rte_hash_add_key(hash_, key);
  return entry < 0 ? kMiss : static_cast<std::uint32_t>(entry);
}

bool HashIndex::erase(const void* key) { return rte_hash_del_key(hash_, key) >= 0; }
std::uint32_t HashIndex::size() const { return static_cast<std::uint32_t>(rte_hash_count(hash_)); }

}  // namespace rocebox::switch_model
