// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/erasure/matrix_product.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cstring>

namespace rocebox::sdr {
namespace {

constexpr unsigned kTableBytes = 32;
// So much of each chunk at a time: what ISA-L reads again for the next outputs is still in the cache.
constexpr std::size_t kBlockBytes = 4096;

// The matrix of a multiplication, as gf2p8affineqb takes it: bit j of byte 7 - i is bit i of element * 2^j.
std::uint64_t bit_matrix(std::uint8_t element) {
  std::uint64_t matrix = 0;
  for (unsigned j = 0; j < 8; j++) {
    const unsigned product = gf_mul(element, static_cast<unsigned char>(1u << j));
    for (unsigned i = 0; i < 8; i++) matrix |= static_cast<std::uint64_t>(product >> i & 1) << (8 * (7 - i) + j);
  }
  return matrix;
}

}  // namespace

MatrixProduct::MatrixProduct(unsigned inputs_max, unsigned outputs_max, bool gfni)
    : gfni_(gfni),
      tables_(gfni ? 0 : std::size_t{kTableBytes} * inputs_max * outputs_max),
      matrices_(gfni ? std::size_t{inputs_max} * outputs_max : 0),
      in_(inputs_max),
      out_(outputs_max) {}

void MatrixProduct::set(const std::uint8_t* matrix, unsigned inputs, unsigned outputs) {
  inputs_ = inputs;
  outputs_ = outputs;
  if (gfni_)
    std::transform(matrix, matrix + std::size_t{inputs} * outputs, matrices_.begin(), bit_matrix);
  else
    ec_init_tables(static_cast<int>(inputs), static_cast<int>(outputs), const_cast<std::uint8_t*>(matrix),
                   tables_.data());
}

void MatrixProduct::run(const std::uint8_t* const* in, std::uint8_t* const* out, std::size_t bytes) {
  if (gfni_) return gfni_product(matrices_.data(), inputs_, outputs_, in, out, bytes);
  std::copy_n(in, inputs_, in_.begin());
  std::copy_n(out, outputs_, out_.begin());
  for (std::size_t at = 0; at < bytes; at += kBlockBytes) {
    ec_encode_data(static_cast<int>(std::min(kBlockBytes, bytes - at)), static_cast<int>(inputs_),
                   static_cast<int>(outputs_), tables_.data(), const_cast<std::uint8_t**>(in_.data()), out_.data());
    for (unsigned i = 0; i < inputs_; i++) in_[i] += kBlockBytes;
    for (unsigned i = 0; i < outputs_; i++) out_[i] += kBlockBytes;
  }
}

void xor_of(const std::uint8_t* const* in, unsigned count, unsigned step, std::uint8_t* out, std::size_t bytes) {
  constexpr std::size_t kWide = 64;
  using Vector = std::uint64_t __attribute__((vector_size(kWide)));
  std::size_t at = 0;
  for (; at + kWide <= bytes; at += kWide) {
    Vector sum{};
    for (unsigned i = 0; i < count; i += step) {
      Vector one;
      std::memcpy(&one, in[i] + at, kWide);
      sum ^= one;
    }
    std::memcpy(out + at, &sum, kWide);
  }
  for (; at < bytes; at++) {
    std::uint8_t sum = 0;
    for (unsigned i = 0; i < count; i += step) sum ^= in[i][at];
    out[at] = sum;
  }
}

}  // namespace rocebox::sdr
