// SPDX-License-Identifier: BSD-3-Clause
// ErasureCodec: parity of data chunks, and data chunks that are missing, written where they belong.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/sdr/erasure/code_shape.h"

namespace rocebox::sdr {

/// Multiplies and adds over GF(2^8): `out[i] = sum over j of matrix[i][j] * in[j]`, of `bytes` bytes each, at any
/// alignment.
class MatrixProduct;

/// How MDS codes are computed.
enum class Arithmetic : std::uint8_t {
  kBest,  ///< the fastest that this CPU has
  kIsal,  ///< ISA-L, which chooses its instructions itself
  kGfni,  ///< ours, by GFNI and AVX-512; where the CPU has none: ISA-L
};

/// ErasureCodec::recoverable() of a code of that shape, without one.
bool recoverable_of(const CodeShape& shape, std::span<const std::uint8_t> present);

/// Holds all that it works with: neither encode() nor recover() allocates. One thread at a time.
class ErasureCodec {
 public:
  /// 1 <= parity <= data, data + parity <= kCodeChunksMax; asserted, for options are checked where they are read.
  explicit ErasureCodec(const CodeShape& shape, Arithmetic arithmetic = Arithmetic::kBest);
  ~ErasureCodec();
  ErasureCodec(ErasureCodec&&) noexcept;

  const CodeShape& shape() const { return shape_; }
  /// Whether GFNI computes it.
  bool by_gfni() const { return gfni_; }

  /// Writes the parity chunks of the data chunks, `bytes` bytes each.
  void encode(const std::uint8_t* const* data, std::uint8_t* const* parity, std::size_t bytes);
  /// Whether all data chunks are here or can be recovered; `present` has a byte for each chunk, data first, zero where
  /// it is missing.
  bool recoverable(std::span<const std::uint8_t> present) const { return recoverable_of(shape_, present); }
  /// Writes the data chunks that are missing into their place among `chunks`, data first. False, with nothing written,
  /// when that cannot be. Parity chunks are only read.
  bool recover(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes);

 private:
  bool recover_mds(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes);
  void recover_xor(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes);

  CodeShape shape_;
  bool gfni_;
  std::vector<std::uint8_t> generator_;  // data + parity rows of data columns; the first `data` are the identity
  std::unique_ptr<MatrixProduct> encoder_, decoder_;
  std::vector<std::uint8_t> rows_, inverse_, wanted_;
  std::vector<const std::uint8_t*> in_;
  std::vector<std::uint8_t*> out_;
};

}  // namespace rocebox::sdr
