// SPDX-License-Identifier: BSD-3-Clause
// flows::hash_bytes beside XXH3_64bits, inlined as the former is, over keys of the sizes that flow tables have and over
// packets. Throughput: keys that do not depend on one another, as in a burst. Latency: each key holds the hash before.
#include <benchmark/benchmark.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/flows/flow_table.h"

namespace rocebox::bench {
namespace {

struct Ours {
  template <std::size_t kSize>
  static std::uint64_t hash(const void* bytes) {
    return flows::hash_bytes<kSize>(bytes);  // which refuses what is longer than a key
  }
};
struct Xxh3 {
  template <std::size_t kSize>
  static std::uint64_t hash(const void* bytes) {
    return XXH3_64bits(bytes, kSize);
  }
};

void set_ns(benchmark::State& state, std::size_t keys) {
  const auto hashes = static_cast<double>(state.iterations()) * static_cast<double>(keys) / 1e9;
  state.counters["ns"] = benchmark::Counter(hashes, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// As many as a burst has.
template <std::size_t kSize>
std::vector<std::array<std::uint8_t, kSize>> random_keys() {
  std::vector<std::array<std::uint8_t, kSize>> keys(32);
  std::mt19937 random(1);
  for (auto& key : keys)
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random());
  return keys;
}

template <class Hash, std::size_t kSize>
void throughput(benchmark::State& state) {
  const auto keys = random_keys<kSize>();
  std::array<std::uint64_t, 32> hashes;
  for (auto _ : state) {
    for (std::size_t i = 0; i < keys.size(); i++) hashes[i] = Hash::template hash<kSize>(keys[i].data());
    benchmark::DoNotOptimize(hashes);
    benchmark::ClobberMemory();
  }
  set_ns(state, keys.size());
}

template <class Hash, std::size_t kSize>
void latency(benchmark::State& state) {
  auto keys = random_keys<kSize>();
  std::uint64_t hash = 0;
  for (auto _ : state) {
    for (auto& key : keys) {
      std::memcpy(key.data(), &hash, sizeof hash);
      hash = Hash::template hash<kSize>(key.data());
    }
    benchmark::DoNotOptimize(hash);
  }
  set_ns(state, keys.size());
}

template <class Hash, std::size_t... kSizes>
void add_throughput(const std::string& name, std::index_sequence<kSizes...>) {
  (benchmark::RegisterBenchmark((name + "/burst/" + std::to_string(kSizes)).c_str(), throughput<Hash, kSizes>), ...);
}
template <class Hash, std::size_t... kSizes>
void add_latency(const std::string& name, std::index_sequence<kSizes...>) {
  (benchmark::RegisterBenchmark((name + "/latency/" + std::to_string(kSizes)).c_str(), latency<Hash, kSizes>), ...);
}

const bool added = [] {
  using Keys = std::index_sequence<12, 16, 20, 32, 36, 40, 64>;
  add_throughput<Ours>("hash_bytes", Keys());
  add_throughput<Xxh3>("XXH3_64bits", Keys());
  add_latency<Ours>("hash_bytes", Keys());
  add_latency<Xxh3>("XXH3_64bits", Keys());
  return true;
}();

}  // namespace
}  // namespace rocebox::bench
