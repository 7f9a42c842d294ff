// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/hash.h"

namespace rocebox::switch_model {
namespace {

constexpr CrcAlgorithm kAlgorithms[] = {
    {"crc32", 32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, true},   // Ethernet, zlib
    {"crc32c", 32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true},  // iSCSI
    {"crc32_bzip2", 32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, false},
    {"crc32_mpeg", 32, 0x04C11DB7, 0xFFFFFFFF, 0, false},
    {"crc16", 16, 0x8005, 0, 0, true},  // ARC
    {"crc16_usb", 16, 0x8005, 0xFFFF, 0xFFFF, true},
    {"crc16_dnp", 16, 0x3D65, 0, 0xFFFF, true},
    {"crc16_ccitt", 16, 0x1021, 0xFFFF, 0, false},  // IBM 3740, "CCITT-FALSE"
    {"crc16_xmodem", 16, 0x1021, 0, 0, false},
};

std::uint32_t reflect(std::uint32_t value, unsigned width) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < width; i++) result |= (value >> i & 1) << (width - 1 - i);
  return result;
}

}  // namespace

std::span<const CrcAlgorithm> crc_algorithms() { return kAlgorithms; }

HashUnit::HashUnit(const CrcAlgorithm& a)
    : initial_(a.reflected ? reflect(a.initial, a.width) : a.initial << (32 - a.width)),
      final_xor_(a.final_xor),
      shift_(32 - a.width),
      reflected_(a.reflected) {
  const std::uint32_t polynomial = a.reflected ? reflect(a.polynomial, a.width) : a.polynomial << shift_;
  for (std::uint32_t byte = 0; byte < 256; byte++) {
    std::uint32_t crc = reflected_ ? byte : byte << 24;
    for (unsigned bit = 0; bit < 8; bit++) {
      if (reflected_)
        crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
      else
        crc = crc << 1 ^ (crc >> 31 ? polynomial : 0);
    }
    tables_[0][byte] = crc;
  }
  for (std::size_t n = 1; n < tables_.size(); n++)
    for (std::uint32_t byte = 0; byte < 256; byte++) {
      const std::uint32_t crc = tables_[n - 1][byte];
      tables_[n][byte] = reflected_ ? crc >> 8 ^ tables_[0][crc & 0xFF] : crc << 8 ^ tables_[0][crc >> 24];
    }
}

HashUnit::HashUnit(Layout& layout, std::string_view name, At at, const CrcAlgorithm& algorithm, unsigned key_bits)
    : HashUnit(algorithm) {
  layout.declare(*this, {{}, std::string(name), ResourceKind::kHash, at, 0, key_bits, algorithm.width, 0, 0});
}

}  // namespace rocebox::switch_model
