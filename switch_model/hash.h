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
    const std::uint32_t state = follow(initial_, bytes);
    return (reflected_ ? state : state >> shift_) ^ final_xor_;
  }
  /// From now on the same bytes, such as a seed, stand in front of every key.
  void set_constant(std::span<const std::uint8_t> bytes) { initial_ = follow(initial_, bytes); }
  /// Bits of the output.
  unsigned width() const { return 32 - shift_; }

 private:
  static constexpr unsigned kTables = 16;

  std::uint32_t follow(std::uint32_t state, std::span<const std::uint8_t> bytes) const {
    const std::uint8_t* at = bytes.data();
    for (std::size_t odd = bytes.size() % 4; odd > 0; odd--) state = follow_byte(state, *at++);
    std::size_t words = bytes.size() / 4;
    for (; words >= 4; words -= 4, at += 16) state = follow_words<4>(state, at);
    if (words == 3) return follow_words<3>(state, at);
    if (words == 2) return follow_words<2>(state, at);
    return words == 1 ? follow_words<1>(state, at) : state;
  }
  std::uint32_t follow_byte(std::uint32_t state, std::uint8_t byte) const {
    return reflected_ ? state >> 8 ^ tables_[0][(state ^ byte) & 0xFF] : state << 8 ^ tables_[0][state >> 24 ^ byte];
  }
  // Several words at once ("slicing"): their bytes' parts of the CRC do not wait for one another.
  template <unsigned Words>
  std::uint32_t follow_words(std::uint32_t state, const std::uint8_t* bytes) const {
    std::uint32_t next = 0;
    std::uint32_t before = reflected_ ? state : __builtin_bswap32(state);
    for (unsigned i = 0; i < Words; i++, before = 0) {
      const unsigned behind = 4 * (Words - 1 - i);
      const std::uint32_t word =
          before ^ (std::uint32_t{bytes[4 * i]} | std::uint32_t{bytes[4 * i + 1]} << 8 |
                    std::uint32_t{bytes[4 * i + 2]} << 16 | std::uint32_t{bytes[4 * i + 3]} << 24);
      next ^= tables_[behind + 3][word & 0xFF] ^ tables_[behind + 2][word >> 8 & 0xFF] ^
              tables_[behind + 1][word >> 16 & 0xFF] ^ tables_[behind][word >> 24];
    }
    return next;
  }

  std::array<std::array<std::uint32_t, 256>, kTables> tables_;  // [n]: the CRC of a byte with n zero bytes behind it
  std::uint32_t initial_, final_xor_;
  unsigned shift_;  // a CRC that is not reflected is kept in the high bits
  bool reflected_;
};

}  // namespace rocebox::switch_model
