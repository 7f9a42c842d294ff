// SPDX-License-Identifier: BSD-3-Clause
// The erasure codes against arithmetic of their own: GF(2^8) by shift and add, and the definition of each code.
#include "kernels/sdr/erasure/codec.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace rocebox::sdr_codec_test {
namespace {

using sdr::Arithmetic, sdr::CodeKind, sdr::CodeShape, sdr::ErasureCodec;
using Bytes = std::vector<std::uint8_t>;

std::uint8_t times(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b; b >>= 1, a = a << 1 ^ (a & 0x80 ? 0x11d : 0))
    if (b & 1) product ^= a;
  return static_cast<std::uint8_t>(product);
}

std::uint8_t inverse(unsigned a) {
  for (unsigned b = 1; b < 256; b++)
    if (times(a, b) == 1) return static_cast<std::uint8_t>(b);
  return 0;
}

// Parity i of an MDS code is the sum of data j / (i + j), i counted behind the data: a Cauchy matrix.
std::uint8_t parity_byte(const CodeShape& shape, const std::vector<Bytes>& data, unsigned parity, std::size_t at) {
  std::uint8_t sum = 0;
  for (unsigned j = 0; j < shape.data; j++)
    if (shape.kind == CodeKind::kMds)
      sum ^= times(inverse((shape.data + parity) ^ j), data[j][at]);
    else if (j % shape.parity == parity)
      sum ^= data[j][at];
  return sum;
}

bool should_recover(const CodeShape& shape, const Bytes& present) {
  std::vector<unsigned> lost(shape.parity, 0);
  unsigned all = 0;
  for (unsigned chunk = 0; chunk < present.size(); chunk++)
    if (!present[chunk]) {
      all++;
      lost[chunk < shape.data ? chunk % shape.parity : chunk - shape.data]++;
    }
  if (shape.kind == CodeKind::kMds) return all <= shape.parity;
  for (unsigned group = 0; group < shape.parity; group++)  // a parity chunk alone is not missed
    if (lost[group] > 1) return false;
  return true;
}

struct Stripe {
  explicit Stripe(unsigned chunks, std::size_t size, std::mt19937_64& random) : bytes(chunks, Bytes(size + 1)) {
    for (Bytes& chunk : bytes) {
      for (std::uint8_t& byte : chunk) byte = static_cast<std::uint8_t>(random());
      at.push_back(chunk.data() + 1);  // not aligned
    }
  }
  std::vector<Bytes> bytes;
  std::vector<std::uint8_t*> at;
};

void check(const CodeShape& shape, Arithmetic arithmetic, std::size_t size, std::mt19937_64& random) {
  ErasureCodec codec(shape, arithmetic);
  Stripe stripe(shape.data + shape.parity, size, random);
  codec.encode(stripe.at.data(), stripe.at.data() + shape.data, size);
  for (unsigned parity = 0; parity < shape.parity; parity++)
    for (std::size_t byte = 0; byte < size; byte += 1 + size / 7)
      ASSERT_EQ(stripe.at[shape.data + parity][byte], parity_byte(shape, stripe.bytes, parity, byte + 1));
  const std::vector<Bytes> whole = stripe.bytes;
  for (unsigned round = 0; round < 12; round++) {
    Bytes present(shape.data + shape.parity, 1);
    const unsigned losses = static_cast<unsigned>(random() % (shape.parity + 2));
    for (unsigned i = 0; i < losses; i++) present[random() % present.size()] = 0;
    stripe.bytes = whole;
    for (std::size_t chunk = 0; chunk < present.size(); chunk++) {
      stripe.at[chunk] = stripe.bytes[chunk].data() + 1;
      if (!present[chunk]) std::fill_n(stripe.at[chunk], size, std::uint8_t{0xee});
    }
    const std::vector<Bytes> before = stripe.bytes;
    const bool can = should_recover(shape, present);
    // Data that is all here needs nothing, whatever parity there is.
    const bool all_data = std::accumulate(present.begin(), present.begin() + shape.data, 0u) == shape.data;
    ASSERT_EQ(codec.recoverable(present), can || all_data);
    ASSERT_EQ(codec.recover(stripe.at.data(), present, size), can || all_data);
    for (std::size_t chunk = 0; chunk < present.size(); chunk++)
      ASSERT_EQ(stripe.bytes[chunk], can && chunk < shape.data ? whole[chunk] : before[chunk]) << chunk;
  }
}

TEST(SdrCodec, ParityIsAsDefinedAndWhatCanBeRecoveredIs) {
  std::mt19937_64 random(11);
  for (const CodeKind kind : {CodeKind::kMds, CodeKind::kXor})
    for (const Arithmetic arithmetic : {Arithmetic::kBest, Arithmetic::kIsal, Arithmetic::kGfni})
      for (const auto& [data, parity] : {std::pair(32u, 8u), {1u, 1u}, {5u, 2u}, {17u, 11u}, {8u, 8u}, {200u, 55u}})
        for (const std::size_t size : {1u, 63u, 64u, 1000u, 4097u})
          if (data < 100 || size == 1000) check({kind, data, parity}, arithmetic, size, random);
}

// Every set of losses that the code promises to bear, of a small one.
TEST(SdrCodec, AnyLossesUpToParityAreRecovered) {
  std::mt19937_64 random(3);
  const CodeShape shape{CodeKind::kMds, 6, 4};
  ErasureCodec codec(shape);
  Stripe stripe(10, 100, random);
  codec.encode(stripe.at.data(), stripe.at.data() + 6, 100);
  const std::vector<Bytes> whole = stripe.bytes;
  for (unsigned lost = 0; lost < 1u << 10; lost++) {
    if (__builtin_popcount(lost) > 4) continue;
    Bytes present(10);
    for (unsigned chunk = 0; chunk < 10; chunk++) present[chunk] = lost >> chunk & 1 ? 0 : 1;
    for (unsigned chunk = 0; chunk < 6; chunk++)
      if (!present[chunk]) std::fill_n(stripe.at[chunk], 100, std::uint8_t{0});
    ASSERT_TRUE(codec.recover(stripe.at.data(), present, 100));
    for (unsigned chunk = 0; chunk < 6; chunk++) ASSERT_EQ(stripe.bytes[chunk], whole[chunk]) << lost;
  }
}

}  // namespace
}  // namespace rocebox::sdr_codec_test
