// SPDX-License-Identifier: BSD-3-Clause
// The multicast Allgather's receive datapath on one core: the handlers in C that also run on the emulated DPA, from a
// CQE to the bitmap, the slot's copy to the user's buffer by a WRITE, and the slot's repost. Bounds: UD 20 million
// chunks of 64 B a second, with chunks of 4 KiB 0.6 of memcpy's bandwidth; UC 30 million. `to_table_1` is the rate to
// that of one thread of the paper's DPA: 5.2 and 11.9 GiB/s of 4 KiB chunks.
#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/micro/allgather_handlers.h"

namespace rocebox::bench {
namespace {

constexpr std::uint32_t kReceives = 1024, kBurst = 64, kQpn = 0x123, kAddress = 0x0100000A, kGrhBytes = 40;
constexpr double kTable1Ud = 5.2 * (1 << 30) / 4096, kTable1Uc = 11.9 * (1 << 30) / 4096;

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// A leaf of a Broadcast with one subgroup, whose datagrams lie in their slots before they are told of.
class Leaf {
 public:
  Leaf(bool is_ud, std::uint32_t chunk_bytes, std::uint32_t chunks)
      : is_ud_(is_ud), chunk_bytes_(chunk_bytes), chunks_(chunks), bitmap_((chunks + 63) / 64) {
    const std::uint32_t slot_bytes = chunk_bytes + kGrhBytes;
    staging_.resize(is_ud ? std::size_t{kReceives} * slot_bytes : 0);
    buffer_.resize(is_ud ? std::size_t{chunks} * chunk_bytes : 0);
    for (std::uint32_t i = 0; is_ud && i < kReceives; i++) {
      std::uint8_t* slot = &staging_[std::size_t{i} * slot_bytes];
      std::memcpy(slot + 32, &kAddress, sizeof kAddress);
      std::iota(slot + kGrhBytes, slot + slot_bytes, static_cast<std::uint8_t>(i));
    }
    allgather_worker& w = worker_;
    w.cq_ring = address_of(cqes_.data()), w.cq_doorbell = address_of(doorbells_);
    w.receive_doorbell = address_of(doorbells_ + 2), w.loopback_ring = address_of(writes_.data());
    w.log_cq_entries = static_cast<std::uint32_t>(std::countr_zero(cqes_.size()));
    w.log_receives = static_cast<std::uint32_t>(std::countr_zero(kReceives));
    w.staging = address_of(staging_.data()), w.slot_bytes = slot_bytes;
    w.finished = address_of(finished_.data()), w.copies = address_of(copies_.data());
    w.senders = address_of(&sender_), w.address_offset = 32;
    w.chunk_bits = 24, w.operations = 1;
    allgather_operation& o = w.operation[0];
    o.blocks = 1, o.chunks_per_block = o.length = chunks, o.chunk_bytes = chunk_bytes;
    o.block_bytes = std::uint64_t{chunks} * chunk_bytes, o.address = address_of(buffer_.data());
    o.bitmap = address_of(bitmap_.data()), o.landed = address_of(&landed_), o.team = address_of(&team_);
    o.root = 0, o.active = 1;
    team_.workers = 1, team_.host_flag = address_of(&flag_), team_.value = 1;
    queue_ = {reinterpret_cast<std::uint8_t*>(cqes_.data()),
              writes_.data(),
              static_cast<std::uint32_t>(cqes_.size() - 1),
              kReceives - 1,
              0,
              0};
  }
  // A collective, from its first chunk to the host's flag. False: that did not come.
  bool run() {
    std::ranges::fill(bitmap_, 0);
    landed_ = team_.finished = 0;
    flag_ = 0;
    worker_.operation[0].left = chunks_;
    for (std::uint32_t chunk = 0; chunk < chunks_;) {
      for (const std::uint32_t end = std::min(chunk + kBurst, chunks_); chunk < end; chunk++)
        handlers_publish(&queue_, is_ud_ ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_WR_IMM, chunk,
                         chunk_bytes_ + (is_ud_ ? kGrhBytes : 0), kQpn);
      (is_ud_ ? handlers_run_ud : handlers_run_uc)(&queue_, &worker_);
    }
    benchmark::ClobberMemory();
    return *static_cast<volatile std::uint64_t*>(&flag_) == 1 && worker_.returned == worker_.taken;
  }
  // The same bytes from slot to buffer, and nothing else.
  void copy_alone() {
    for (std::uint32_t i = 0; i < chunks_; i++)
      std::memcpy(&buffer_[std::size_t{i} * chunk_bytes_],
                  &staging_[std::size_t{i % kReceives} * worker_.slot_bytes + kGrhBytes], chunk_bytes_);
    benchmark::ClobberMemory();
  }
  bool is_right() {
    for (std::size_t i = 0; i < buffer_.size(); i++)
      if (buffer_[i] != static_cast<std::uint8_t>(i / chunk_bytes_ % kReceives + i % chunk_bytes_)) return false;
    return true;
  }

 private:
  const bool is_ud_;
  const std::uint32_t chunk_bytes_, chunks_;
  std::vector<mlx5_cqe64> cqes_{2 * kReceives, invalid()};
  std::vector<std::uint8_t> writes_ = std::vector<std::uint8_t>(kReceives * 64), staging_, buffer_;
  std::vector<std::uint8_t> finished_ = std::vector<std::uint8_t>(kReceives);
  std::vector<allgather_copy> copies_ = std::vector<allgather_copy>(kReceives);
  std::vector<std::uint64_t> bitmap_;
  allgather_sender sender_{kQpn, kAddress};
  allgather_team team_{};
  allgather_worker worker_{};
  handlers_queue queue_{};
  std::uint32_t landed_ = 0, doorbells_[4] = {};
  std::uint64_t flag_ = 0;

  static mlx5_cqe64 invalid() {
    mlx5_cqe64 cqe{};
    cqe.op_own = MLX5_CQE_INVALID << 4 | MLX5_CQE_OWNER_MASK;
    return cqe;
  }
};

void count(benchmark::State& state, std::uint32_t chunks, double table_1) {
  const auto all = static_cast<std::int64_t>(state.iterations()) * chunks;
  state.SetItemsProcessed(all);
  state.counters["to_table_1"] = benchmark::Counter(static_cast<double>(all) / table_1, benchmark::Counter::kIsRate);
}

void ud(benchmark::State& state) {
  constexpr std::uint32_t kChunks = 16384;
  Leaf leaf(true, static_cast<std::uint32_t>(state.range(0)), kChunks);
  for (auto _ : state)
    if (!leaf.run()) return state.SkipWithError("the host's flag did not come");
  if (!leaf.is_right()) return state.SkipWithError("bytes are wrong");
  count(state, kChunks, kTable1Ud);
}
BENCHMARK(ud)->ArgName("chunk")->Arg(64)->Unit(benchmark::kMicrosecond);

void uc(benchmark::State& state) {
  constexpr std::uint32_t kChunks = 16384;
  Leaf leaf(false, static_cast<std::uint32_t>(state.range(0)), kChunks);
  for (auto _ : state)
    if (!leaf.run()) return state.SkipWithError("the host's flag did not come");
  count(state, kChunks, kTable1Uc);
}
BENCHMARK(uc)->ArgName("chunk")->Arg(64)->Unit(benchmark::kMicrosecond);

// `to_memcpy`: in turn with memcpy from the same slots to the same buffer, 4 MiB of each; the best of both.
void ud_copied(benchmark::State& state) {
  constexpr std::uint32_t kChunks = 1024, kBytes = 4096;
  Leaf leaf(true, kBytes, kChunks);
  if (!leaf.run() || !leaf.is_right()) return state.SkipWithError("bytes are wrong");
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> best_run = std::chrono::hours(1), best_copy = best_run;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    if (!leaf.run()) return state.SkipWithError("the host's flag did not come");
    const Clock::time_point middle = Clock::now();
    leaf.copy_alone();
    best_copy = std::min<std::chrono::duration<double>>(best_copy, Clock::now() - middle);
    best_run = std::min<std::chrono::duration<double>>(best_run, middle - begin);
  }
  const double rate = kChunks / best_run.count();
  state.counters["GB_a_second"] = rate * kBytes / 1e9;
  state.counters["to_table_1"] = rate / kTable1Ud;
  state.counters["to_memcpy"] = best_copy / best_run;
}
BENCHMARK(ud_copied)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rocebox::bench
