// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/tables/exact_table.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_hash.h>

#include <algorithm>
#include <utility>

#include "runtime/kernel/kernel.h"
#include "switch_model/tables/names.h"

namespace rocebox::switch_model {

HashIndex::HashIndex(std::uint32_t capacity, std::uint32_t key_bytes) {
  const std::string name = table_name();
  rte_hash_parameters parameters{};
  parameters.name = name.c_str();
  parameters.entries = std::max(capacity, 8u);
  parameters.key_len = key_bytes;
  parameters.socket_id = -1;  // any
  // Buckets that overflow get more room, so that a table takes as many keys as it says, whatever they are.
  parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE;
  hash_ = rte_hash_create(&parameters);
  if (!hash_)
    throw ConfigError(fmt::format("no memory for a table of {} entries: {}", capacity, rte_strerror(rte_errno)));
}

HashIndex::~HashIndex() { rte_hash_free(hash_); }
HashIndex::HashIndex(HashIndex&& other) noexcept : hash_(std::exchange(other.hash_, nullptr)) {}
HashIndex& HashIndex::operator=(HashIndex&& other) noexcept {
  std::swap(hash_, other.hash_);
  return *this;
}

std::uint32_t HashIndex::find(const void* key) const {
  const int entry = rte_hash_lookup(hash_, key);
  return entry < 0 ? kMiss : static_cast<std::uint32_t>(entry);
}

void HashIndex::find_bulk(const void** keys, std::uint32_t count, std::uint32_t* entries) const {
  std::int32_t positions[kBatchMax];
  if (count == 0) return;
  rte_hash_lookup_bulk(hash_, keys, count, positions);
  for (std::uint32_t i = 0; i < count; i++)
    entries[i] = positions[i] < 0 ? kMiss : static_cast<std::uint32_t>(positions[i]);
}

std::uint32_t HashIndex::insert(const void* key) {
  const int entry = rte_hash_add_key(hash_, key);
  return entry < 0 ? kMiss : static_cast<std::uint32_t>(entry);
}

bool HashIndex::erase(const void* key) { return rte_hash_del_key(hash_, key) >= 0; }
std::uint32_t HashIndex::size() const { return static_cast<std::uint32_t>(rte_hash_count(hash_)); }

}  // namespace rocebox::switch_model
