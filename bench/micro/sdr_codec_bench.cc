// SPDX-License-Identifier: BSD-3-Clause
// SDR's erasure codes as in Figure 11 of its paper: (32, 8), 64 KiB chunks over 128 MiB, one core. Bytes are those of
// data. ISA-L called directly is what the ratios are to.
#include <benchmark/benchmark.h>
#include <isa-l/erasure_code.h>

#include "kernels/sdr/erasure/codec.h"

namespace rocebox::sdr {
namespace {

constexpr std::size_t kChunkBytes = 64 << 10, kBufferBytes = 128 << 20;
constexpr unsigned kData = 32, kParity = 8, kSubmessages = kBufferBytes / kChunkBytes / kData;

// The message and its parity, and where the chunks of each submessage stand.
struct Message {
  Message() : data(kBufferBytes), parity(kBufferBytes / kData * kParity) {
    for (std::size_t i = 0; i < data.size(); i++) data[i] = static_cast<std::uint8_t>(i * 2654435761u >> 24);
    for (unsigned s = 0; s < kSubmessages; s++) {
      for (unsigned i = 0; i < kData; i++) chunks.push_back(&data[(std::size_t{s} * kData + i) * kChunkBytes]);
      for (unsigned i = 0; i < kParity; i++) chunks.push_back(&parity[(std::size_t{s} * kParity + i) * kChunkBytes]);
    }
  }
  std::uint8_t** of(unsigned submessage) { return &chunks[std::size_t{submessage} * (kData + kParity)]; }
  std::vector<std::uint8_t> data, parity;
  std::vector<std::uint8_t*> chunks;
};

Message& message() {
  static Message one;
  return one;
}

void count(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBufferBytes));
}

void isal_direct(benchmark::State& state) {
  std::vector<std::uint8_t> matrix((kData + kParity) * kData), tables(32 * kData * kParity);
  gf_gen_cauchy1_matrix(matrix.data(), kData + kParity, kData);
  ec_init_tables(kData, kParity, &matrix[kData * kData], tables.data());
  for (auto _ : state)
    for (unsigned s = 0; s < kSubmessages; s++)
      ec_encode_data(kChunkBytes, kData, kParity, tables.data(), message().of(s), message().of(s) + kData);
  count(state);
}
BENCHMARK(isal_direct)->Unit(benchmark::kMillisecond);

void encode(benchmark::State& state, CodeKind kind, Arithmetic arithmetic) {
  ErasureCodec codec({kind, kData, kParity}, arithmetic);
  if (arithmetic == Arithmetic::kGfni && !codec.by_gfni()) return state.SkipWithError("this CPU has no GFNI");
  for (auto _ : state)
    for (unsigned s = 0; s < kSubmessages; s++) codec.encode(message().of(s), message().of(s) + kData, kChunkBytes);
  count(state);
}
BENCHMARK_CAPTURE(encode, mds_isal, CodeKind::kMds, Arithmetic::kIsal)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, mds_gfni, CodeKind::kMds, Arithmetic::kGfni)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, mds_best, CodeKind::kMds, Arithmetic::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, xor, CodeKind::kXor, Arithmetic::kBest)->Unit(benchmark::kMillisecond);

// One of each group is missing, the last one.
void recover(benchmark::State& state, CodeKind kind) {
  ErasureCodec codec({kind, kData, kParity});
  std::vector<std::uint8_t> present(kData + kParity, 1);
  std::fill(present.begin() + kData - kParity, present.begin() + kData, std::uint8_t{0});
  for (unsigned s = 0; s < kSubmessages; s++) codec.encode(message().of(s), message().of(s) + kData, kChunkBytes);
  for (auto _ : state)
    for (unsigned s = 0; s < kSubmessages; s++) codec.recover(message().of(s), present, kChunkBytes);
  count(state);
}
BENCHMARK_CAPTURE(recover, mds, CodeKind::kMds)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(recover, xor, CodeKind::kXor)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rocebox::sdr
