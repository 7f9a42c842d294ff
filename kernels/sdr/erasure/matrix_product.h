// SPDX-License-Identifier: BSD-3-Clause
// The inner loops of the codes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocebox::sdr {

class MatrixProduct {
 public:
  /// Of at most so many inputs and outputs.
  MatrixProduct(unsigned inputs_max, unsigned outputs_max, bool gfni);
  /// `matrix`: `outputs` rows of `inputs` elements of GF(2^8) by 0x11d, ISA-L's polynomial.
  void set(const std::uint8_t* matrix, unsigned inputs, unsigned outputs);
  void run(const std::uint8_t* const* in, std::uint8_t* const* out, std::size_t bytes);

 private:
  unsigned inputs_ = 0, outputs_ = 0;
  bool gfni_;
  std::vector<std::uint8_t> tables_;     // ISA-L's: 32 bytes an element
  std::vector<std::uint64_t> matrices_;  // GFNI's: an 8x8 bit matrix an element
  std::vector<const std::uint8_t*> in_;  // ISA-L's argument: it takes arrays that may be written
  std::vector<std::uint8_t*> out_;
};

/// Whether this CPU has what ours needs.
bool has_gfni();
/// out = sum of matrices * in, by GFNI and AVX-512; only where has_gfni().
void gfni_product(const std::uint64_t* matrices, unsigned inputs, unsigned outputs, const std::uint8_t* const* in,
                  std::uint8_t* const* out, std::size_t bytes);
/// out = XOR of in[0], in[step], in[2 * step], ... below `count`.
void xor_of(const std::uint8_t* const* in, unsigned count, unsigned step, std::uint8_t* out, std::size_t bytes);

}  // namespace rocebox::sdr
