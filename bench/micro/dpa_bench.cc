// SPDX-License-Identifier: BSD-3-Clause
// What CQEs cost a DPA's program on one core: SDR's receiver in C (nic_model/dpa/programs/chunks), compiled in and run
// by the engine; and what the kernel dpa adds to a packet that passes. The bound is 25 million completions a second;
// the paper has 15 million with 16 DPA threads and chunks of one packet, and the multicast paper 598 cycles of 1.8 GHz
// a CQE.
#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <bit>

#include "bench/micro/bump.h"
#include "bench/micro/packets.h"
#include "kernels/dpa/station.h"
#include "kernels/dpa/surroundings.h"
#include "nic_model/dpa/engine.h"
#include "nic_model/dpa/guarded_memory.h"
#include "nic_model/dpa/library.h"
#include "nic_model/dpa/programs/chunks.h"
#include "runtime/kernel/counter_set.h"

namespace rocebox::bench {
namespace {

constexpr std::uint32_t kEntries = 4096, kRing = 64;
constexpr double kPaper = 15e6;

void count(benchmark::State& state, std::int64_t completions) {
  state.SetItemsProcessed(completions);
  state.counters["to_paper"] =
      benchmark::Counter(static_cast<double>(completions) / kPaper, benchmark::Counter::kIsRate);
}

void write(mlx5_cqe64& cqe, std::uint32_t number, bool owner) {
  cqe.imm_inval_pkey = htobe32(number << 4);
  cqe.byte_cnt = htobe32(4096);
  cqe.op_own = static_cast<std::uint8_t>(MLX5_CQE_RESP_WR_IMM << 4 | (owner ? MLX5_CQE_OWNER_MASK : 0));
}

// The steps of the handler, with the calls of the device API resolved to what they are without an engine.
void compiled_in(benchmark::State& state) {
  const auto log_chunk = static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned>(state.range(0))));
  std::vector<mlx5_cqe64> ring(kEntries);
  std::vector<std::uint64_t> bits(CHUNKS_PACKETS / 64);
  std::vector<std::uint8_t> host(CHUNKS_PACKETS);
  std::uint32_t written = 0, index = 0;
  std::uint64_t complete = 0;
  __be32 doorbell = 0;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < kRing; i++, written++)
      write(ring[written % kEntries], written, written / kEntries & 1);
    while (index != written) {
      const mlx5_cqe64& cqe = ring[index % kEntries];
      if ((cqe.op_own & MLX5_CQE_OWNER_MASK) != (index / kEntries & 1)) break;
      const std::uint32_t number = be32toh(cqe.imm_inval_pkey) >> 4;
      if (chunks_take(bits.data(), number, log_chunk)) {
        reinterpret_cast<volatile std::uint8_t*>(host.data())[number >> log_chunk & (CHUNKS_PACKETS - 1)] = 1;
        complete++;
      }
      index++;
      benchmark::DoNotOptimize(doorbell = htobe32(index & 0xFFFFFF));
    }
  }
  if (complete != written >> log_chunk) return state.SkipWithError("a chunk is not complete");
  count(state, static_cast<std::int64_t>(written));
}
BENCHMARK(compiled_in)->ArgName("packets_a_chunk")->Arg(1)->Arg(16);

// One activation for each burst of CQEs: what a device has under load.
void through_the_engine(benchmark::State& state) {
  CounterSet stats;
  dpa_observer::Counters counters(stats);
  dpa_observer::Surroundings around(counters);
  nic_model::dpa::DpaConfig config;
  nic_model::dpa::Engine engine(around, config);
  nic_model::dpa::Process& process = engine.create_process(nic_model::dpa::library_path("chunks"));
  nic_model::dpa::GuardedMemory host(CHUNKS_PACKETS);
  dpa_observer::StationOptions with;
  with.handler = "chunks_handler";
  with.cq_entries = kEntries;
  const std::uint32_t domain = around.alloc_pd();
  with.host_address = reinterpret_cast<std::uintptr_t>(host.data());
  with.host_bytes = host.size();
  with.host_key = around.memory().add(domain, host.data(), host.size(), IBV_ACCESS_LOCAL_WRITE);
  with.window = process.create_window(domain);
  with.count = static_cast<std::uint32_t>(state.range(0));
  dpa_observer::Station station(process, with);
  nic_model::CompletionQueue& cq = station.cq();
  std::uint32_t written = 0;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < kRing; i++, written++) {
      mlx5_cqe64* cqe = cq.next();
      cqe->imm_inval_pkey = htobe32(written << 4);
      cqe->byte_cnt = htobe32(4096);
      cq.publish(cqe, MLX5_CQE_RESP_WR_IMM, false);
    }
    engine.on_published(cq, cq.take_event());
    engine.run();
  }
  if (station.shared().messages != written || process.stopped()) return state.SkipWithError("CQEs are left");
  count(state, static_cast<std::int64_t>(written));
}
BENCHMARK(through_the_engine)->ArgName("packets_a_chunk")->Arg(1)->Arg(16);

// A bump with the kernel: an activation for each packet.
void watched(benchmark::State& state, const char* path, const char* kernels) {
  std::mt19937 random(1);
  const std::unique_ptr<Device> device = make_bump(path, kernels);
  if (!device) return state.SkipWithError("its configuration has mistakes");
  std::vector<Packet> packets;
  for (unsigned i = 0; i < kBurst; i++)
    packets.push_back(make_packet(underlay(4, random), IBV_OPCODE_UC_SEND_ONLY, 1024, random));
  device->set_sink([](Port, std::span<Packet>, Nanos) {});
  Nanos now = 0;
  for (auto _ : state) {
    const Arrivals arrivals{0, packets};
    device->step(now += 1000, {&arrivals, 1});
  }
  state.SetItemsProcessed(state.iterations() * kBurst);
}
BENCHMARK_CAPTURE(watched, no_kernel, "a <-> b", "{}");
BENCHMARK_CAPTURE(watched, dpa, "a <-> dpa <-> b", "{dpa: {check_icrc: false}}");
BENCHMARK_CAPTURE(watched, dpa_with_icrc, "a <-> dpa <-> b", "{dpa: {}}");

}  // namespace
}  // namespace rocebox::bench
