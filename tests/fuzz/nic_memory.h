// SPDX-License-Identifier: BSD-3-Clause
// The memory of one side of nic_fuzz.cc: zones with different rights and guards between them, and which bytes may
// change. What nobody may read holds a secret that must not be seen on the wire.
#pragma once
#include <array>
#include <utility>
#include <vector>

#include "nic_model/host/host.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::nic_bed {

enum Zone : unsigned {
  kLocal,      ///< what work requests of this side name; no rights of others
  kOpen,       ///< all rights
  kReadOnly,   ///< others may read it
  kWriteOnly,  ///< others may write it
  kWindowed,   ///< others have what a window gives them
  kForeign,    ///< all rights, of another protection domain
  kZones
};
inline constexpr std::size_t kZoneBytes = 8192, kGuardBytes = 1024, kZoneStride = kZoneBytes + kGuardBytes;
inline constexpr std::size_t kArenaBytes = kZones * kZoneStride + kGuardBytes;
static_assert(kArenaBytes % 8 == 0);
inline constexpr std::uint64_t kArenaAddress = 0x7000'0000'0000;  // the same in all runs
inline constexpr std::uint64_t kSecret = 0xD7C3'95E1'B88D'A6F2;
inline constexpr std::size_t kWindowAt = 1024, kWindowBytes = 2048;
/// Keys of other regions' memory: pieces one behind the other, a table of them, and one that has no memory.
enum class Compound : unsigned { kPieces, kTable, kNull };
inline constexpr unsigned kCompounds = 3;
inline constexpr std::uint64_t kPiecesAddress = 0x6000'0000'0000, kPieceBytes = 512;

/// For loops over all memory, which cost more than all else where each access is looked at; and libFuzzer must not
/// learn from what they compare.
#define ROCEBOX_UNWATCHED __attribute__((no_sanitize("address", "undefined", "coverage")))

/// Whether `bytes` hold the secret.
ROCEBOX_UNWATCHED inline bool holds_secret(const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i + sizeof kSecret <= count; i++) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes + i, sizeof word);
    if (word == kSecret) return true;
  }
  return false;
}
/// Whether two memories of `count` words differ in bits of the mask.
ROCEBOX_UNWATCHED inline bool differ(const std::uint8_t* one, const std::uint8_t* other, const std::uint8_t* mask,
                                     std::size_t count) {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < count * 8; i += 8) {
    std::uint64_t a, b, m;
    __builtin_memcpy(&a, one + i, 8);
    __builtin_memcpy(&b, other + i, 8);
    __builtin_memcpy(&m, mask + i, 8);
    found |= (a ^ b) & m;
  }
  return found != 0;
}

class Arena {
 public:
  /// `writes_by_others`: some queue pair lets its peer write.
  Arena(nic_model::Memory& memory, std::uint32_t domain, std::uint32_t foreign_domain, bool without_bytes,
        bool writes_by_others)
      : memory_(memory),
        domain_(domain),
        foreign_domain_(foreign_domain),
        without_bytes_(without_bytes),
        writes_by_others_(writes_by_others),
        bytes_(kArenaBytes),
        fixed_(kArenaBytes, 0xFF) {
    hide(0, kArenaBytes);
    for (unsigned zone = 0; zone < kZones; zone++) open(static_cast<Zone>(zone));
    expected_ = bytes_;
  }

  static std::size_t offset_of(Zone zone) { return kGuardBytes + zone * kZoneStride; }
  std::uint64_t address(Zone zone) const { return kArenaAddress + offset_of(zone); }
  std::uint32_t key(Zone zone) const { return keys_[zone]; }
  std::uint8_t* bytes(Zone zone) { return bytes_.data() + offset_of(zone); }
  bool is_registered(Zone zone) const { return registered_[zone]; }

  /// Keys that claim all rights over pieces of zones as they are now, whose own rights count.
  void compound() {
    static constexpr Zone kPiecesOf[] = {kOpen, kReadOnly, kOpen, kForeign, kLocal, kWriteOnly};
    std::vector<nic_model::IndirectPiece> pieces;
    for (const Zone zone : kPiecesOf) pieces.push_back({keys_[zone], address(zone) + 64 * pieces.size(), kPieceBytes});
    give_back_compounds();
    compounds_[0] = memory_.add_indirect(domain_, kPiecesAddress, pieces, kAll);
    compounds_[1] = memory_.add_table(domain_, std::size(kPiecesOf), kPieceBytes, kAll);
    compounds_[2] = memory_.add_null(domain_);
    for (std::uint32_t i = 0; i < pieces.size(); i += 1 + (i == 2))  // one entry has nothing
      require(memory_.set_entry(compounds_[1], i, pieces[i]), "a table takes an entry");
  }
  void give_back_compounds() {
    for (std::uint32_t& key : compounds_)
      if (key) require(memory_.remove(std::exchange(key, 0)), "a key can be given back");
  }
  std::uint32_t key(Compound which) const { return compounds_[static_cast<unsigned>(which)]; }
  std::uint64_t address(Compound which) const { return which == Compound::kPieces ? kPiecesAddress : 0; }

  /// Registers a zone (anew).
  void open(Zone zone) {
    static constexpr unsigned kAccess[kZones] = {
        IBV_ACCESS_LOCAL_WRITE,
        kAll,
        IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
        kAll,
    };
    const std::uint32_t domain = zone == kForeign ? foreign_domain_ : domain_;
    const std::uint64_t at = address(zone);
    keys_[zone] = without_bytes_ ? memory_.add_without_bytes(domain, at, kZoneBytes, kAccess[zone])
                                 : memory_.add_at(domain, bytes(zone), at, kZoneBytes, kAccess[zone]);
    require(keys_[zone] != 0, "there is a key");
    registered_[zone] = true;
    if (zone == kLocal || zone == kOpen || zone == kReadOnly)
      for (std::size_t i = 0; i < kZoneBytes; i++) bytes(zone)[i] = static_cast<std::uint8_t>(i * 7 + zone);
    keep(zone);
    if ((zone == kOpen || zone == kWriteOnly) && writes_by_others_) allow(zone, 0, kZoneBytes);
  }
  /// Takes a zone back: from now on nobody may see or change it.
  void close(Zone zone) {
    require(memory_.remove(keys_[zone]), "a region can be taken back");
    registered_[zone] = false;
    hide(offset_of(zone), kZoneBytes);
    keep(zone);
  }
  /// These bytes may be written from now on.
  void allow(Zone zone, std::size_t offset, std::size_t count) {
    std::fill_n(fixed_.begin() + static_cast<std::ptrdiff_t>(offset_of(zone) + offset), count, std::uint8_t{0});
  }
  void allow_window() {
    if (writes_by_others_) allow(kWindowed, kWindowAt, kWindowBytes);
  }
  /// What is in this zone now stays, unless it is allowed again.
  void keep(Zone zone) {
    const auto from = static_cast<std::ptrdiff_t>(offset_of(zone));
    if (expected_.empty()) return;
    std::copy_n(bytes_.begin() + from, kZoneBytes, expected_.begin() + from);
    std::fill_n(fixed_.begin() + from, kZoneBytes, std::uint8_t{0xFF});
  }

  void require_untouched() const {
    require(!differ(bytes_.data(), expected_.data(), fixed_.data(), kArenaBytes / 8),
            "memory changes only where somebody may write");
    for (const Zone zone : {kReadOnly, kForeign})
      if (const nic_model::Region* region = registered_[zone] ? memory_.find(keys_[zone]) : nullptr;
          region && region->placed)
        require(region->placed->bytes_written() == 0, "nothing is placed where nobody may write");
  }

  static constexpr unsigned kAll =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

 private:
  void hide(std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; i++) bytes_[i] = static_cast<std::uint8_t>(kSecret >> 8 * (i % 8));
  }

  nic_model::Memory& memory_;
  std::uint32_t domain_, foreign_domain_;
  bool without_bytes_, writes_by_others_;
  std::vector<std::uint8_t> bytes_, expected_;
  std::vector<std::uint8_t> fixed_;  // 0xFF: nobody may change this byte
  std::array<std::uint32_t, kZones> keys_{};
  std::array<bool, kZones> registered_{};
  std::array<std::uint32_t, kCompounds> compounds_{};
};

}  // namespace rocebox::fuzz::nic_bed
