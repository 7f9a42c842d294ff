// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/erasure/codec.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cassert>

#include "kernels/sdr/erasure/matrix_product.h"

namespace rocebox::sdr {

// Of a Cauchy matrix below the identity every square part has an inverse, which is what makes the code MDS; ISA-L's
// Vandermonde matrices do not keep that for all sizes.
ErasureCodec::ErasureCodec(const CodeShape& shape, Arithmetic arithmetic)
    : shape_(shape), gfni_(arithmetic != Arithmetic::kIsal && has_gfni() && shape.kind == CodeKind::kMds) {
  const unsigned data = shape.data, parity = shape.parity, all = data + parity;
  assert(parity >= 1 && parity <= data && all <= kCodeChunksMax);
  in_.resize(data + 1);
  out_.resize(parity);
  if (shape.kind == CodeKind::kXor) return;
  generator_.resize(std::size_t{all} * data);
  gf_gen_cauchy1_matrix(generator_.data(), static_cast<int>(all), static_cast<int>(data));
  encoder_ = std::make_unique<MatrixProduct>(data, parity, gfni_);
  encoder_->set(generator_.data() + std::size_t{data} * data, data, parity);
  decoder_ = std::make_unique<MatrixProduct>(data, parity, gfni_);
  rows_.resize(std::size_t{data} * data);
  inverse_.resize(rows_.size());
  wanted_.resize(std::size_t{parity} * data);
}

ErasureCodec::~ErasureCodec() = default;
ErasureCodec::ErasureCodec(ErasureCodec&&) noexcept = default;

void ErasureCodec::encode(const std::uint8_t* const* data, std::uint8_t* const* parity, std::size_t bytes) {
  if (shape_.kind == CodeKind::kMds) return encoder_->run(data, parity, bytes);
  for (unsigned group = 0; group < shape_.parity; group++)
    xor_of(data + group, shape_.data - group, shape_.parity, parity[group], bytes);
}

bool recoverable_of(const CodeShape& shape, std::span<const std::uint8_t> present) {
  const unsigned data = shape.data, parity = shape.parity;
  const bool all_data = std::find(present.begin(), present.begin() + data, std::uint8_t{0}) == present.begin() + data;
  if (all_data) return true;
  if (shape.kind == CodeKind::kMds) {
    const auto all = std::count_if(present.begin(), present.begin() + data + parity, [](std::uint8_t p) { return p; });
    return all >= data;
  }
  for (unsigned group = 0; group < parity; group++) {
    unsigned missing = 0;
    for (unsigned chunk = group; chunk < data; chunk += parity) missing += present[chunk] ? 0 : 1;
    if (missing > 1 || (missing == 1 && !present[data + group])) return false;
  }
  return true;
}

bool ErasureCodec::recover(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes) {
  if (!recoverable(present)) return false;
  if (shape_.kind == CodeKind::kMds) return recover_mds(chunks, present, bytes);
  recover_xor(chunks, present, bytes);
  return true;
}

// The first k chunks that are here are data times these rows of the generator; its inverse gives back the data.
bool ErasureCodec::recover_mds(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes) {
  const unsigned data = shape_.data;
  unsigned missing = 0, taken = 0;
  for (unsigned chunk = 0; taken < data; chunk++) {
    if (!present[chunk]) continue;
    std::copy_n(generator_.begin() + static_cast<std::ptrdiff_t>(std::size_t{chunk} * data), data,
                rows_.begin() + static_cast<std::ptrdiff_t>(std::size_t{taken} * data));
    in_[taken++] = chunks[chunk];
  }
  for (unsigned chunk = 0; chunk < data; chunk++)
    if (!present[chunk]) out_[missing++] = chunks[chunk];
  if (missing == 0) return true;
  if (gf_invert_matrix(rows_.data(), inverse_.data(), static_cast<int>(data)) != 0) return false;
  missing = 0;
  for (unsigned chunk = 0; chunk < data; chunk++)
    if (!present[chunk])
      std::copy_n(inverse_.begin() + static_cast<std::ptrdiff_t>(std::size_t{chunk} * data), data,
                  wanted_.begin() + static_cast<std::ptrdiff_t>(std::size_t{missing++} * data));
  decoder_->set(wanted_.data(), data, missing);
  decoder_->run(in_.data(), out_.data(), bytes);
  return true;
}

void ErasureCodec::recover_xor(std::uint8_t* const* chunks, std::span<const std::uint8_t> present, std::size_t bytes) {
  for (unsigned group = 0; group < shape_.parity; group++) {
    unsigned taken = 0;
    std::uint8_t* lost = nullptr;
    for (unsigned chunk = group; chunk < shape_.data; chunk += shape_.parity)
      if (present[chunk])
        in_[taken++] = chunks[chunk];
      else
        lost = chunks[chunk];
    if (!lost) continue;
    in_[taken++] = chunks[shape_.data + group];
    xor_of(in_.data(), taken, 1, lost, bytes);
  }
}

}  // namespace rocebox::sdr
