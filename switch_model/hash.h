// SPDX-License-Identifier: BSD-3-Clause
// HashUnit: CRC16 or CRC32 of a key, with the polynomial chosen, as ECMP and register indices use it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "switch_model/layout.h"

namespace rocebox::switch_model {

/// A CRC as catalogues describe it (Rocksoft model): width, polynomial, initial value, final XOR, reflected in and out.
struct CrcAlgorithm {
  std::string_view name;
  unsigned width;  ///< 16 or 32
  std::uint32_t polynomial, initial, final_xor;
  bool reflected;
};
/// Those that can be chosen by name.
std::span<const CrcAlgorithm> crc_algorithms();

/// A table-driven CRC.
class HashUnit : public ResourceHandle {
 public:
  /// `key_bits`: of the longest key, for the resource report.
  HashUnit(Layout& layout, std::string_view name, At at, const CrcAlgorithm& algorithm, unsigned key_bits);
  explicit HashUnit(const CrcAlgorithm& algorithm);

  std::uint32_t compute(std::span<const std::uint8_t> bytes) const {
    return reflected_ ? compute_reflected(bytes) ^ final_xor_ : (compute_plain(bytes) >> shift_) ^ final_xor_;
  }
  /// Bits of the output.
  unsigned width() const { return 32 - shift_; }

 private:
  // Four bytes at a time ("slicing"): tables_[n] is the CRC of a byte with n zero bytes behind it.
  std::uint32_t compute_reflected(std::span<const std::uint8_t> bytes) const {
    std::uint32_t crc = initial_;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
      crc ^= std::uint32_t{bytes[i]} | std::uint32_t{bytes[i + 1]} << 8 | std::uint32_t{bytes[i + 2]} << 16 |
             std::uint32_t{bytes[i + 3]} << 24;
      crc = tables_[3][crc & 0xFF] ^ tables_[2][crc >> 8 & 0xFF] ^ tables_[1][crc >> 16 & 0xFF] ^ tables_[0][crc >> 24];
    }
    for (; i < bytes.size(); i++) crc = crc >> 8 ^ tables_[0][(crc ^ bytes[i]) & 0xFF];
    return crc;
  }
  std::uint32_t compute_plain(std::span<const std::uint8_t> bytes) const {
    std::uint32_t crc = initial_;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
      crc ^= std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 | std::uint32_t{bytes[i + 2]} << 8 |
             bytes[i + 3];
      crc = tables_[3][crc >> 24] ^ tables_[2][crc >> 16 & 0xFF] ^ tables_[1][crc >> 8 & 0xFF] ^ tables_[0][crc & 0xFF];
    }
    for (; i < bytes.size(); i++) crc = crc << 8 ^ tables_[0][crc >> 24 ^ bytes[i]];
    return crc;
  }

  std::array<std::array<std::uint32_t, 256>, 4> tables_;
  std::uint32_t initial_, final_xor_;
  unsigned shift_;  // a CRC that is not reflected is kept in the high bits
  bool reflected_;
};

}  // namespace rocebox::switch_model
