// SPDX-License-Identifier: BSD-3-Clause
// The two erasure codes of the paper's section 5.1.1, by kind and size.
#pragma once
#include <cstdint>

namespace rocebox::sdr {

enum class CodeKind : std::uint8_t {
  kMds,  ///< any `parity` of all chunks may be missing
  kXor,  ///< parity chunk i is the XOR of data chunks j with j mod parity = i: one of each such group may be missing
};

/// A code of k data and m parity chunks.
struct CodeShape {
  CodeKind kind = CodeKind::kMds;
  unsigned data = 32, parity = 8;
};

/// GF(2^8) has no more elements, so an MDS code over it has no more chunks; the XOR code is held to the same.
inline constexpr unsigned kCodeChunksMax = 255;

/// Why there is no such code, for people; null: there is.
constexpr const char* mistake_of(const CodeShape& shape) {
  return shape.parity >= 1 && shape.parity <= shape.data && shape.data < kCodeChunksMax &&
                 shape.parity <= kCodeChunksMax - shape.data
             ? nullptr
             : "a code has 1 parity chunk up to as many as data chunks, and 255 of both at most";
}

}  // namespace rocebox::sdr
