// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/memory/memory.h"

#include <algorithm>
#include <cstring>

namespace rocebox::nic_model {
namespace {

// What a key of other regions' memory needs there, to be used so: who changes it must be able to write it.
std::uint32_t local_right(std::uint32_t access) {
  constexpr std::uint32_t kChanges = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return access & kChanges ? std::uint32_t{IBV_ACCESS_LOCAL_WRITE} : 0;
}

// As ibv_reg_mr: who lets its peers write it must be able to write it itself.
bool is_possible(std::uint32_t access) { return (access & local_right(access)) == local_right(access); }

// The address in the window's region of what users of the window call `address`.
std::uint64_t in_region(const Region& window, std::uint64_t address) {
  return address - window.address + window.window_at;
}

}  // namespace

Region* Memory::take(std::uint32_t domain, Region::Kind kind, std::uint32_t& key) {
  std::uint32_t index;
  if (regions_.empty()) regions_.emplace_back();
  // Oldest first, so that a key is long unknown before it comes again.
  if (!free_.empty() && (free_.size() > 64 || regions_.size() > kRegionsMax)) {
    index = free_.front();
    free_.pop_front();
  } else {
    if (regions_.size() > kRegionsMax) return nullptr;
    index = static_cast<std::uint32_t>(regions_.size());
    forget_last();
    regions_.emplace_back();
  }
  Region& region = regions_[index];
  region.kind = kind;
  region.domain = domain;
  region.variant++;
  key = index << 8 | region.variant;
  in_use_++;
  return &region;
}

std::uint32_t Memory::add(std::uint32_t domain, void* address, std::uint64_t bytes, std::uint32_t access) {
  return add_at(domain, address, reinterpret_cast<std::uintptr_t>(address), bytes, access);
}

std::uint32_t Memory::add_at(std::uint32_t domain, void* memory, std::uint64_t address, std::uint64_t bytes,
                             std::uint32_t access) {
  std::uint32_t key = 0;
  Region* region = is_possible(access) ? take(domain, Region::Kind::kDirect, key) : nullptr;
  if (!region) return 0;
  region->address = address;
  region->length = bytes;
  region->access = access;
  region->bytes = static_cast<std::uint8_t*>(memory);
  return key;
}

Mapping Memory::map(std::uint32_t domain, void* memory, std::uint64_t bytes, std::uint32_t access) {
  constexpr std::uint64_t kPage = 4096;
  const Mapping mapping{add_at(domain, memory, next_address_, bytes, access), next_address_};
  if (mapping.key) next_address_ += (bytes + kPage - 1) / kPage * kPage + kPage;
  return mapping;
}

std::uint32_t Memory::add_without_bytes(std::uint32_t domain, std::uint64_t address, std::uint64_t bytes,
                                        std::uint32_t access) {
  std::uint32_t key = 0;
  Region* region = is_possible(access) ? take(domain, Region::Kind::kDirect, key) : nullptr;
  if (!region) return 0;
  region->address = address;
  region->length = bytes;
  region->access = access;
  region->placed = std::make_unique<Extents>();
  return key;
}

std::uint32_t Memory::add_indirect(std::uint32_t domain, std::uint64_t address, std::vector<IndirectPiece> pieces,
                                   std::uint32_t access) {
  std::uint32_t key = 0;
  if (pieces.size() > kIndirectPiecesMax || !is_possible(access)) return 0;
  Region* region = take(domain, Region::Kind::kIndirect, key);
  if (!region) return 0;
  region->address = address;
  region->access = access;
  for (const IndirectPiece& piece : pieces) region->length += piece.bytes;
  region->pieces = std::move(pieces);
  return key;
}

std::uint32_t Memory::add_table(std::uint32_t domain, std::uint32_t entries, std::uint64_t stride,
                                std::uint32_t access) {
  std::uint32_t key = 0;
  if (entries == 0 || entries > kTableEntriesMax || stride == 0 || stride > UINT64_MAX / entries ||
      !is_possible(access))
    return 0;
  Region* region = take(domain, Region::Kind::kIndirect, key);
  if (!region) return 0;
  region->access = access;
  region->stride = stride;
  region->length = stride * entries;
  region->pieces.resize(entries);
  return key;
}

bool Memory::set_entry(std::uint32_t table, std::uint32_t entry, const IndirectPiece& piece) {
  auto* region = const_cast<Region*>(find(table));
  if (!region || region->stride == 0 || entry >= region->pieces.size() || piece.bytes > region->stride) return false;
  region->pieces[entry] = piece;
  return true;
}

std::uint32_t Memory::add_null(std::uint32_t domain) {
  std::uint32_t key = 0;
  Region* region = take(domain, Region::Kind::kNull, key);
  if (!region) return 0;
  region->length = UINT64_MAX;
  region->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  return key;
}

std::uint32_t Memory::add_window(std::uint32_t domain) {
  std::uint32_t key = 0;
  return take(domain, Region::Kind::kWindow, key) ? key : 0;
}

std::uint32_t Memory::bind(std::uint32_t window, std::uint8_t variant, std::uint32_t region, std::uint64_t address,
                           std::uint64_t bytes, std::uint32_t access, Accessor by, MemoryError& error) {
  auto* bound = const_cast<Region*>(find(window));
  const Region* of = find(region);
  error = MemoryError::kNone;
  if (!bound || bound->kind != Region::Kind::kWindow || !of || of->kind == Region::Kind::kWindow)
    error = MemoryError::kNoKey;
  else if (bound->domain != by.domain || of->domain != by.domain)
    error = MemoryError::kWrongDomain;
  else if (!(of->access & IBV_ACCESS_MW_BIND) || bound->length)  // one that is bound must be invalidated first
    error = MemoryError::kNoRight;
  else
    error = check(region, by, address, bytes, local_right(access));
  if (error != MemoryError::kNone) return 0;
  bound->address = access & IBV_ACCESS_ZERO_BASED ? 0 : address;
  bound->length = bytes;
  bound->access = access;
  bound->window_at = address;
  bound->window_of = region;
  bound->window_qpn = by.qpn;
  bound->variant = variant;
  if (bytes) {
    bound->bound_place = static_cast<std::uint32_t>(bound_.size());
    bound_.push_back(window >> 8);
  }
  return (window & ~0xFFu) | variant;
}

void Memory::end_binding(Region& window) {
  if (window.length == 0) return;
  const std::uint32_t last = bound_.back();
  regions_[last].bound_place = window.bound_place;
  bound_[window.bound_place] = last;
  bound_.pop_back();
  window.length = 0;
}

void Memory::unbind_all(Accessor by) {
  for (std::size_t i = bound_.size(); i-- > 0;) {
    Region& window = regions_[bound_[i]];
    if (window.domain != by.domain || window.window_qpn != by.qpn) continue;
    end_binding(window);
    revocations_++;
  }
}

bool Memory::invalidate(std::uint32_t key, Accessor by) {
  auto* region = const_cast<Region*>(find(key));
  if (!region || region->kind != Region::Kind::kWindow || region->domain != by.domain) return false;
  if (region->length && region->window_qpn != by.qpn) return false;
  end_binding(*region);
  revocations_++;
  return true;
}

bool Memory::remove(std::uint32_t key) {
  auto* region = const_cast<Region*>(find(key));
  if (!region) return false;
  const std::uint8_t variant = region->variant;
  if (region->kind == Region::Kind::kWindow) end_binding(*region);
  *region = Region();
  forget_last();
  region->variant = variant;  // the next key at this place is another
  free_.push_back(key >> 8);
  in_use_--;
  revocations_++;
  return true;
}

MemoryError Memory::check_at(std::uint32_t key, Accessor by, std::uint64_t address, std::uint64_t bytes,
                             std::uint32_t access, unsigned depth) const {
  const Region* region = find(key);
  if (!region) return MemoryError::kNoKey;
  if (region->domain != by.domain) return MemoryError::kWrongDomain;
  const bool is_window = region->kind == Region::Kind::kWindow;
  if (is_window && (region->length == 0 || region->window_qpn != by.qpn)) return MemoryError::kNoKey;
  if ((region->access & access) != access) return MemoryError::kNoRight;
  if (region->kind == Region::Kind::kNull) return MemoryError::kNone;
  const std::uint64_t offset = address - region->address;
  if (address < region->address || offset > region->length || bytes > region->length - offset)
    return MemoryError::kOutOfBounds;
  if (is_window) return check_at(region->window_of, by, in_region(*region, address), bytes, 0, depth + 1);
  if (region->kind == Region::Kind::kIndirect) return check_pieces(*region, by, offset, bytes, access, depth);
  return MemoryError::kNone;
}

template <class Each>
void Memory::each_piece(const Region& region, std::uint64_t offset, std::uint32_t bytes, Each each) const {
  if (region.stride) {
    while (bytes) {
      const IndirectPiece& piece = region.pieces[offset / region.stride];
      const std::uint64_t within = offset % region.stride;
      const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, region.stride - within));
      each(piece, piece.address + within, some);
      offset += some;
      bytes -= some;
    }
    return;
  }
  for (const IndirectPiece& piece : region.pieces) {
    if (bytes == 0) return;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, piece.bytes - offset));
    each(piece, piece.address + offset, some);
    bytes -= some;
    offset = 0;
  }
}

MemoryError Memory::check_pieces(const Region& region, Accessor by, std::uint64_t offset, std::uint64_t bytes,
                                 std::uint32_t access, unsigned depth) const {
  if (depth >= kIndirectDepthMax) return MemoryError::kTooDeep;
  MemoryError error = MemoryError::kNone;
  each_piece(region, offset, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX)),
             [&](const IndirectPiece& piece, std::uint64_t address, std::uint32_t some) {
               // A piece's own region grants what the piece's key grants the local side; rights are the outer key's.
               if (address - piece.address + some > piece.bytes) error = MemoryError::kOutOfBounds;
               if (error == MemoryError::kNone)
                 error = check_at(piece.key, by, address, some, local_right(access), depth + 1);
             });
  return error;
}

void Memory::read_other(const Region& region, std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const {
  if (region.kind == Region::Kind::kWindow) return read(region.window_of, in_region(region, address), bytes, to);
  if (region.kind != Region::Kind::kIndirect) {
    std::memset(to, 0, bytes);
    return;
  }
  each_piece(region, address - region.address, bytes,
             [&](const IndirectPiece& piece, std::uint64_t at, std::uint32_t some) {
               read(piece.key, at, some, to);
               to += some;
             });
}

void Memory::write_other(Region& region, std::uint64_t address, std::uint32_t bytes, const std::uint8_t* from) {
  if (region.kind == Region::Kind::kWindow) return write(region.window_of, in_region(region, address), bytes, from);
  if (region.kind != Region::Kind::kIndirect) return;
  each_piece(region, address - region.address, bytes,
             [&](const IndirectPiece& piece, std::uint64_t at, std::uint32_t some) {
               write(piece.key, at, some, from);
               if (from) from += some;
             });
}

const Region* Memory::holder(std::uint32_t key, std::uint64_t& address, std::uint32_t bytes) const {
  const Region* region = find(key);
  if (!region || region->kind == Region::Kind::kDirect || region->kind == Region::Kind::kNull) return region;
  if (region->kind == Region::Kind::kWindow) {
    address = in_region(*region, address);
    return holder(region->window_of, address, bytes);
  }
  const Region* found = nullptr;
  std::uint64_t place = address;
  each_piece(*region, address - region->address, bytes,
             [&](const IndirectPiece& piece, std::uint64_t at, std::uint32_t some) {
               place = at;
               found = some == bytes ? holder(piece.key, place, bytes) : nullptr;
             });
  address = place;
  return found;
}

std::uint8_t* Memory::eight_bytes(std::uint32_t key, std::uint64_t address) {
  const Region* region = holder(key, address, 8);
  return region && region->bytes ? region->bytes + (address - region->address) : nullptr;
}

}  // namespace rocebox::nic_model
