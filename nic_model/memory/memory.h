// SPDX-License-Identifier: BSD-3-Clause
// Memory: what a NIC may read and write of its host: protection domains, regions, keys, and the copies that are its DMA
// (IB specification, volume 1, 10.6).
#pragma once
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "nic_model/limits.h"
#include "nic_model/memory/extents.h"

namespace rocebox::nic_model {

/// Why the memory under a key cannot be used.
enum class MemoryError : std::uint8_t { kNone, kNoKey, kWrongDomain, kOutOfBounds, kNoRight, kTooDeep };

/// A piece of an indirect region.
struct IndirectPiece {
  std::uint32_t key;
  std::uint64_t address, bytes;
};

/// Memory under one key. lkey and rkey are one number, as in mlx5.
struct Region {
  enum class Kind : std::uint8_t {
    kFree,      ///< no region has this key now
    kDirect,    ///< `bytes`, or extents alone where that is null
    kIndirect,  ///< pieces of other regions, one behind the other
    kNull,      ///< takes all that is written; reads as zeros
    kWindow,    ///< a part of another region with rights of its own; not bound yet where length is 0
  };
  Kind kind = Kind::kFree;
  std::uint8_t variant = 0;  ///< the low 8 bits of the key
  std::uint32_t domain = 0;
  std::uint32_t access = 0;  ///< ibv_access_flags
  std::uint64_t address = 0, length = 0;
  std::uint8_t* bytes = nullptr;      ///< the host's, who keeps it as long as the region
  std::unique_ptr<Extents> placed;    ///< of regions without bytes: what was written where
  std::vector<IndirectPiece> pieces;  ///< kIndirect
  std::uint64_t stride =
      0;  ///< kIndirect: addresses that each piece has, whatever its length; 0: as many as it is long
  std::uint32_t window_of = 0, window_qpn = 0;  ///< kWindow: the region's key, and who may use it
  std::uint64_t window_at = 0;                  ///< kWindow: where `address` lies in that region
  std::uint32_t bound_place = 0;                ///< kWindow: its place among those that are bound
};

/// Memory under a key, and where that key has it.
struct Mapping {
  std::uint32_t key = 0;  ///< 0: there is none, see Memory
  std::uint64_t address = 0;
};

/// Who wants to use memory: keys are good within one protection domain, windows of type 2 for one queue pair.
struct Accessor {
  std::uint32_t domain;
  std::uint32_t qpn = 0;
};

/// The memory that is registered with one NIC. Keys of what was taken back are not given out again soon: their low 8
/// bits count.
class Memory {
 public:
  /// A new protection domain's number, from 1.
  std::uint32_t new_domain() { return ++domains_; }

  /// `bytes` of memory from `address` on, which the caller keeps. The key; 0: there are kRegionsMax, or peers may write
  /// it (IBV_ACCESS_REMOTE_WRITE, _ATOMIC) and the host may not (no _LOCAL_WRITE), which ibv_reg_mr refuses. Its
  /// address is another one in each process: whoever tells a peer takes map(), so that packets say the same in equal
  /// runs.
  std::uint32_t add(std::uint32_t domain, void* address, std::uint64_t bytes, std::uint32_t access);
  /// The same, addressed from `address` on, as by ibv_reg_mr_iova.
  std::uint32_t add_at(std::uint32_t domain, void* memory, std::uint64_t address, std::uint64_t bytes,
                       std::uint32_t access);
  /// The same, addressed where no other mapping of this NIC was or will be: the first, second, ... of equal sizes have
  /// equal addresses in all runs. From a page's first byte on, with an unused page behind it.
  Mapping map(std::uint32_t domain, void* memory, std::uint64_t bytes, std::uint32_t access);
  /// The same without bytes, for simulated hosts: what is written is kept as extents; reading gives zeros.
  std::uint32_t add_without_bytes(std::uint32_t domain, std::uint64_t address, std::uint64_t bytes,
                                  std::uint32_t access);
  /// A key for `pieces` one behind the other, addressed from `address` on.
  std::uint32_t add_indirect(std::uint32_t domain, std::uint64_t address, std::vector<IndirectPiece> pieces,
                             std::uint32_t access);
  /// A key for a table of `entries` pieces, each with `stride` bytes of addresses from 0 on, as mlx5's KSM. A piece may
  /// be shorter; beyond it there is nothing. All are empty until set_entry().
  std::uint32_t add_table(std::uint32_t domain, std::uint32_t entries, std::uint64_t stride, std::uint32_t access);
  /// Puts another piece into a table. False: `table` is none, has no such entry, or the piece is longer than its
  /// stride.
  bool set_entry(std::uint32_t table, std::uint32_t entry, const IndirectPiece& piece);
  std::uint32_t add_null(std::uint32_t domain);
  /// A memory window of type 2 that is bound to nothing yet.
  std::uint32_t add_window(std::uint32_t domain);
  /// Binds a window to a part of `region`; its key's low 8 bits are `variant` from now on. With IBV_ACCESS_ZERO_BASED
  /// its first byte is 0 to those who use the window. The new key; 0 and `error` when it cannot be.
  std::uint32_t bind(std::uint32_t window, std::uint8_t variant, std::uint32_t region, std::uint64_t address,
                     std::uint64_t bytes, std::uint32_t access, Accessor by, MemoryError& error);
  /// Ends a window's binding, as local and remote invalidation do. False: there is no such window, or it is another's.
  bool invalidate(std::uint32_t key, Accessor by);
  /// Ends the bindings of all windows of a queue pair: it is over, and another one may have its number.
  void unbind_all(Accessor by);
  /// False: no region has this key.
  bool remove(std::uint32_t key);

  /// Brings nearer where was written last; then what was written there, of memory without bytes.
  void prefetch() const {
    if (last_written_) prefetch_far_lines(last_written_, last_written_ + 1);
    if (last_placed_) prefetch_far_lines(last_placed_, last_placed_ + 1);
  }
  void prefetch_placed() const {
    if (last_placed_) last_placed_->prefetch();
  }

  /// Brings nearer the beginning of bytes that are read or written soon: behind it the processor has seen what comes. A
  /// hint; the address need not be checked.
  void prefetch_bytes(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const {
    const Region* region = find(key);
    if (!region || !region->bytes || address - region->address >= region->length) return;
    const std::uint64_t offset = address - region->address;
    const std::uint8_t* const from = region->bytes + offset;
    prefetch_far_lines(from, from + std::min({bytes, region->length - offset, kPrefetchedBytes}));
  }
  /// What a packet has of fewer bytes is copied before its prefetch would have come.
  static constexpr std::uint64_t kPrefetchedBytes = 1024;

  /// The region of that key; null when none has it now.
  const Region* find(std::uint32_t key) const {
    const std::uint32_t index = key >> 8;
    if (index >= regions_.size()) return nullptr;
    const Region& region = regions_[index];
    return region.kind != Region::Kind::kFree && region.variant == (key & 0xFF) ? &region : nullptr;
  }
  /// Whether `by` may do `access` (0: read as the local side, which needs no right) with all of these bytes.
  MemoryError check(std::uint32_t key, Accessor by, std::uint64_t address, std::uint64_t bytes,
                    std::uint32_t access) const {
    const Region* region = find(key);
    if (region && region->kind == Region::Kind::kDirect && region->domain == by.domain &&
        (region->access & access) == access && address >= region->address) [[likely]] {
      const std::uint64_t offset = address - region->address;
      if (offset <= region->length && bytes <= region->length - offset) [[likely]]
        return MemoryError::kNone;
    }
    return check_at(key, by, address, bytes, access, 0);
  }

  /// Copies out of memory that was checked; `to` null: only the extents count, and nothing is to be done.
  void read(std::uint32_t key, std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const {
    const Region* region = find(key);
    if (!to || !region) return;
    if (region->kind == Region::Kind::kDirect && region->bytes) [[likely]]
      return copy(to, region->bytes + (address - region->address), bytes);
    read_other(*region, address, bytes, to);
  }
  /// Copies into memory that was checked; `from` null: the packet has no bytes, only their place is known.
  void write(std::uint32_t key, std::uint64_t address, std::uint32_t bytes, const std::uint8_t* from) {
    Region* region = const_cast<Region*>(find(key));
    if (!region) return;
    if (region->kind == Region::Kind::kDirect) [[likely]] {
      const std::uint64_t offset = address - region->address;
      last_written_ = region;
      last_placed_ = region->placed.get();
      if (region->placed) return region->placed->add(offset, bytes);
      if (from) copy(region->bytes + offset, from, bytes);
      return;
    }
    write_other(*region, address, bytes, from);
  }
  /// Whether all of these bytes, which were checked, lie in one region, or in the null one: an atomic cannot be one
  /// over several pieces.
  bool in_one_piece(std::uint32_t key, std::uint64_t address, std::uint32_t bytes) const {
    return holder(key, address, bytes) != nullptr;
  }
  /// The eight bytes at `address`, for atomics: null where they are not one piece of memory with bytes.
  std::uint8_t* eight_bytes(std::uint32_t key, std::uint64_t address);

  std::size_t regions() const { return in_use_; }
  /// Changes whenever a key may no longer do what it could: who has checked one and goes on with it looks again then.
  std::uint32_t revocations() const { return revocations_; }

 private:
  void forget_last() {
    last_written_ = nullptr;
    last_placed_ = nullptr;
  }
  static void copy(std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
  void end_binding(Region& window);
  Region* take(std::uint32_t domain, Region::Kind kind, std::uint32_t& key);
  void read_other(const Region& region, std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const;
  void write_other(Region& region, std::uint64_t address, std::uint32_t bytes, const std::uint8_t* from);
  MemoryError check_pieces(const Region& region, Accessor by, std::uint64_t offset, std::uint64_t bytes,
                           std::uint32_t access, unsigned depth) const;
  MemoryError check_at(std::uint32_t key, Accessor by, std::uint64_t address, std::uint64_t bytes, std::uint32_t access,
                       unsigned depth) const;
  // The region that all of these bytes lie in, through windows and pieces, and where; null: several do.
  const Region* holder(std::uint32_t key, std::uint64_t& address, std::uint32_t bytes) const;
  template <class Each>
  void each_piece(const Region& region, std::uint64_t offset, std::uint32_t bytes, Each each) const;

  std::vector<Region> regions_;           // by index; the first is never used, so that no key is 0
  const Region* last_written_ = nullptr;  // these two: only hints for the cache
  const Extents* last_placed_ = nullptr;
  std::deque<std::uint32_t> free_;
  std::vector<std::uint32_t> bound_;  // windows that are bound, by index
  std::uint64_t next_address_ = kMappingsFrom;
  std::uint32_t domains_ = 0;
  std::size_t in_use_ = 0;
  std::uint32_t revocations_ = 0;
};

}  // namespace rocebox::nic_model
