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
    std::uint32_t crc = initial_;
    if (reflected_)
      for (std::uint8_t byte : bytes) crc = crc >> 8 ^ table_[(crc ^ byte) & 0xFF];
    else
      for (std::uint8_t byte : bytes) crc = crc << 8 ^ table_[crc >> 24 ^ byte];
    return (reflected_ ? crc : crc >> shift_) ^ final_xor_;
  }
  /// Bits of the output.
  unsigned width() const { return 32 - shift_; }

 private:
  std::array<std::uint32_t, 256> table_;
  std::uint32_t initial_, final_xor_;
  unsigned shift_;  // a CRC that is not reflected is kept in the high bits
  bool reflected_;
};

}  // namespace rocebox::switch_model
