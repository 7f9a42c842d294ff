// SPDX-License-Identifier: BSD-3-Clause
// What the micro benchmarks share: packets in a pool, and counters per packet.
#pragma once
#include <benchmark/benchmark.h>
#include <rte_cycles.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "runtime/packet/pool.h"
#include "runtime/roce/build.h"

namespace rocebox::bench {

inline constexpr unsigned kBurst = 32;

/// A number from 0 to `count` - 1.
inline std::uint32_t draw(std::mt19937& random, std::uint32_t count) {
  return static_cast<std::uint32_t>(random()) % count;
}

/// The pool of the process. EAL is started by the first call.
Pool& pool();

/// An IPv4 or IPv6 underlay that differs from packet to packet.
roce::Underlay underlay(std::uint8_t ip_version, std::mt19937& random);

/// A built packet with `payload_bytes` random bytes, parsed. It lives until the process ends.
Packet make_packet(const roce::Underlay& underlay, std::uint8_t opcode, std::uint32_t payload_bytes,
                   std::mt19937& random);

/// Instructions of this thread outside of the kernel since some time; nothing where the machine does not let us count
/// (perf_event_open, and many virtual machines have no counter).
std::optional<std::uint64_t> instructions();

/// Times a loop, and reports `ns`, `cycles`, and where they can be counted `instructions`, for each of `items` things
/// done in an iteration. The cycle is that of the time-stamp counter, which does not follow the clock of the core; how
/// long it is DPDK knows once EAL runs, which not every benchmark needs: `ns` are the clock's.
class PerItem {
 public:
  PerItem(benchmark::State& state, std::uint64_t items)
      : state_(state), items_(items), instructions_(instructions()), began_(Clock::now()), start_(rte_rdtsc()) {}
  ~PerItem() {
    const auto done = static_cast<double>(state_.iterations()) * static_cast<double>(items_);
    const auto cycles = static_cast<double>(rte_rdtsc() - start_);
    const std::chrono::duration<double, std::nano> ns = Clock::now() - began_;
    if (const auto now = instructions(); now && instructions_)
      state_.counters["instructions"] = static_cast<double>(*now - *instructions_) / done;
    state_.counters["cycles"] = cycles / done;
    state_.counters["ns"] = ns.count() / done;
  }
  PerItem(const PerItem&) = delete;
  PerItem& operator=(const PerItem&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  benchmark::State& state_;
  std::uint64_t items_;
  std::optional<std::uint64_t> instructions_;
  Clock::time_point began_;
  std::uint64_t start_;
};

}  // namespace rocebox::bench
