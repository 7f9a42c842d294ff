// SPDX-License-Identifier: BSD-3-Clause
// Registrations: keys of buffers that have been registered, kept for when they come again (V-A).
#pragma once
#include <algorithm>
#include <cstdint>
#include <list>

#include "kernels/allgather/limits.h"
#include "nic_model/memory/memory.h"

namespace rocebox::allgather {

/// A buffer of the application, as NICs address it: so packets say the same in each run. Null: it has no bytes, and
/// only what was written where is kept.
struct Buffer {
  std::uint64_t address = 0, bytes = 0;
  void* memory = nullptr;
};

class Registrations {
 public:
  Registrations(nic_model::Memory& memory, std::uint32_t domain) : memory_(memory), domain_(domain) {}

  /// Its key, which is the caller's until put() as often as get(); 0: the NIC has no more regions.
  std::uint32_t get(const Buffer& buffer) {
    if (const auto at = row_of(buffer); at != rows_.end()) {
      hits_++;
      at->users++;
      rows_.splice(rows_.begin(), rows_, at);
      return at->key;
    }
    constexpr std::uint32_t kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const std::uint32_t key = buffer.memory
                                  ? memory_.add_at(domain_, buffer.memory, buffer.address, buffer.bytes, kAccess)
                                  : memory_.add_without_bytes(domain_, buffer.address, buffer.bytes, kAccess);
    if (!key) return 0;
    rows_.push_front({buffer, key, 1});
    evict();
    return key;
  }
  /// Its key, of which the caller has no part; 0: it is not registered.
  std::uint32_t find(const Buffer& buffer) {
    const auto at = row_of(buffer);
    return at != rows_.end() ? at->key : 0;
  }
  void put(std::uint32_t key) {
    for (Row& row : rows_)
      if (row.key == key) row.users--;
    evict();
  }
  /// It can be used by nobody any more, whoever still has the key.
  void drop(std::uint32_t key) {
    rows_.remove_if([&](const Row& row) { return row.key == key; });
    memory_.remove(key);
  }
  std::size_t size() const { return rows_.size(); }
  std::uint64_t hits() const { return hits_; }

 private:
  struct Row {
    Buffer buffer;
    std::uint32_t key;
    unsigned users;
  };
  std::list<Row>::iterator row_of(const Buffer& buffer) {
    return std::ranges::find_if(rows_, [&](const Row& row) {
      return row.buffer.address == buffer.address && row.buffer.bytes == buffer.bytes;
    });
  }
  // The one that nobody has had for longest goes first.
  void evict() {
    while (rows_.size() > kRegistrationsMax) {
      auto at = rows_.end();
      while (at != rows_.begin() && std::prev(at)->users > 0) --at;
      if (at == rows_.begin()) return;
      memory_.remove(std::prev(at)->key);
      rows_.erase(std::prev(at));
    }
  }

  nic_model::Memory& memory_;
  std::uint32_t domain_;
  std::list<Row> rows_;  // the one that was got last first
  std::uint64_t hits_ = 0;
};

}  // namespace rocebox::allgather
