// SPDX-License-Identifier: BSD-3-Clause
// Packets through one kernel alone, with its defaults or one of its examples. Byte 0 chooses the kernel, byte 1 the
// configuration; then packets: port and flags (bit 3: the ICRC is made right, as a forger would), time step (2, in
// units of 100 ns), length (2), bytes.
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/kernel/workload.h"
#include "runtime/process/eal.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace rocebox;
using fuzz::require;

constexpr PoolSizes kSizes{.small = 1024, .large = 64, .giant = 4};
constexpr std::uint64_t kTablesMebibytes = 256;  // a switch's routes: two tables of all /24
constexpr unsigned kDrainStepsMax = 10'000;
Pool* pool = nullptr;

struct Input {
  Nanos step;
  Port in;
  std::uint32_t wire_more;
  bool sealed;
  std::span<const std::uint8_t> bytes;
};

std::vector<Input> cut(std::span<const std::uint8_t> data, Port inputs) {
  std::vector<Input> packets;
  while (data.size() >= 5 && packets.size() < 256) {
    const std::size_t length = std::min<std::size_t>(static_cast<std::size_t>(data[3] << 8 | data[4]), data.size() - 5);
    packets.push_back({(data[1] << 8 | data[2]) * 100, static_cast<Port>((data[0] & 7) % inputs), (data[0] >> 4) * 64u,
                       (data[0] & 8) != 0, data.subspan(5, length)});
    data = data.subspan(5 + length);
  }
  return packets;
}

struct Out {
  Nanos at;
  std::uint32_t wire_bytes;
  std::vector<std::uint8_t> bytes;
  bool operator==(const Out&) const = default;
};
using Outputs = std::vector<std::vector<Out>>;

Packet make(const Input& input, Nanos now, std::uint64_t sequence) {
  PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(input.bytes.size()));
  if (!packet) return {};
  std::copy(input.bytes.begin(), input.bytes.end(), packet->data());
  PacketMeta& meta = packet->meta();
  meta.wire_bytes += input.wire_more;
  meta.arrival = now;
  meta.input = input.in;
  meta.identity = sequence;
  roce::parse(*packet);
  if (input.sealed && roce::icrc_held(*packet)) roce::icrc_store(*packet);
  return packet.release();
}

void run_timers(Pipeline& pipeline, Nanos until) {
  for (unsigned i = 0; i < kDrainStepsMax && pipeline.next_deadline() <= until; i++)
    pipeline.step(pipeline.next_deadline(), {});
}

// Whether the pool has given out what the kernel holds. Replicas may have their bytes in a packet that is gone: one
// more.
bool agrees(std::uint64_t held, const CounterSet& stats) {
  std::uint64_t replicated = 0;
  for (const CounterSet::Row& row : stats.rows())
    if (row.name == "replicated") replicated = row.read();
  const std::uint64_t in_use = pool->in_use();
  return in_use >= held && in_use <= held + std::min(held, replicated);
}

Outputs run(const KernelOptions& options, std::span<const Input> inputs, unsigned batch_max) {
  CounterSet stats;
  std::vector<Stage> stages(1);
  stages[0].name = "kernel";
  stages[0].kernel = options.make(stats);
  stages[0].shape = options.shape();
  stages[0].seed = 1;
  for (Port port = 0; port < options.outputs(); port++) stages[0].outputs.push_back({Edge::kOutside, port});
  std::vector<Edge> edges;
  for (Port port = 0; port < options.inputs(); port++) edges.push_back({0, port});

  Outputs outputs(options.outputs());
  Pipeline pipeline(std::move(stages), std::move(edges), *pool, stats);
  pipeline.set_batch_max(batch_max);
  pipeline.set_sink([&](Port port, std::span<Packet> packets, Nanos at) {
    for (Packet packet : packets) {
      outputs.at(port).push_back({at, packet.wire_bytes(), {packet.data(), packet.data() + packet.size()}});
      rte_pktmbuf_free(packet.mbuf());
    }
  });
  Nanos now = 0;
  std::uint64_t sequence = 0;
  for (std::size_t i = 0; i < inputs.size();) {
    now += inputs[i].step;
    run_timers(pipeline, now - 1);
    std::vector<Packet> burst;  // packets of one port that come without a time step between them
    const Port in = inputs[i].in;
    do {
      if (Packet packet = make(inputs[i], now, ++sequence)) burst.push_back(packet);
      i++;
    } while (i < inputs.size() && inputs[i].step == 0 && inputs[i].in == in);
    const Arrivals arrivals{in, burst};
    pipeline.step(now, {&arrivals, 1});
    const Conservation c = pipeline.conservation();
    require(agrees(c.held(), stats), "in + made == out + dropped + held");
    require(c.held() <= c.in + c.made, "no more leaves than came");
  }
  run_timers(pipeline, kNever - 1);
  require(agrees(pipeline.conservation().held(), stats), "in + made == out + dropped + held, at the end");
  return outputs;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kSizes.mebibytes() + kTablesMebibytes);
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const Registry registry;
  const Component& component = *registry.all()[data[0] % registry.all().size()];
  if (std::string_view(component.kind) == kWorkloadKind) return 0;  // it gets no packets
  const Component& host = component.host ? *registry.find(component.host) : component;
  unsigned examples = 0;
  while (component.examples && component.examples[examples].title) examples++;
  const unsigned chosen = data[1] % (examples + 1);
  config::Mistakes mistakes("example");
  const config::Node written =
      chosen ? config::parse_yaml(component.examples[chosen - 1].yaml, mistakes) : config::Node{};
  config::FieldsReader reader(&written, mistakes);
  const std::unique_ptr<Options> filled = host.options(registry);
  filled->fields(reader);
  require(mistakes.none(), "an example is a right configuration");
  const auto& options = static_cast<const KernelOptions&>(*filled);
  const std::vector<Input> inputs = cut({data + 2, size - 2}, options.inputs());
  const Outputs one = run(options, inputs, 1);
  require(pool->in_use() == 0, "all packets are back");
  const Outputs many = run(options, inputs, kBatchMax);
  require(pool->in_use() == 0, "all packets are back");
  require(one == many, "batches of 1 and of 64 give the same answer");
  return 0;
}
