// SPDX-License-Identifier: BSD-3-Clause
// What unit tests of kernels stand on: one kernel in a pipeline, packets in as bytes, packets out as bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/packet/pool.h"
#include "runtime/roce/build.h"
#include "runtime/roce/parse.h"

namespace rocebox::test {

inline constexpr PoolSizes kPoolSizes{.small = 8192, .large = 512, .giant = 8};

/// One packet that left.
struct Out {
  Nanos at;
  Port port;
  std::vector<std::uint8_t> bytes;
  std::uint32_t wire_bytes;
  PacketMeta meta;
  bool operator==(const Out& o) const {
    return at == o.at && port == o.port && bytes == o.bytes && wire_bytes == o.wire_bytes;
  }
};

/// Whether the metadata says of the packet what parsing it again does, which leaves its metadata right.
bool parsed_right(Packet packet);

/// A frame's bytes.
std::vector<std::uint8_t> frame(const roce::PacketSpec& spec);

/// One kernel alone, two-sided by default; its outputs are the pipeline's outputs.
class KernelBox {
 public:
  /// `make` builds the kernel from stats: [&](Stats& s) { return std::make_unique<K>(config, s); }.
  template <class Make>
  explicit KernelBox(Make make, std::uint64_t seed = 1, Shape shape = Shape::kTwoSided, Port inputs = 2,
                     Port outputs = 2, const PoolSizes& sizes = kPoolSizes)
      : pool(sizes) {
    std::vector<Stage> stages(1);
    stages[0].name = "kernel";
    stages[0].kernel = make(static_cast<Stats&>(stats));
    kernel = stages[0].kernel.get();
    stages[0].shape = shape;
    stages[0].seed = seed;
    for (Port p = 0; p < outputs; p++) stages[0].outputs.push_back({Edge::kOutside, p});
    std::vector<Edge> in;
    for (Port p = 0; p < inputs; p++) in.push_back({0, p});
    start(std::move(stages), std::move(in));
  }
  ~KernelBox();

  /// One packet at `now` by `in`; runs the timers that are due before it.
  void send(Nanos now, Port in, std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes = 0);
  void send(Nanos now, Port in, const roce::PacketSpec& spec) { send(now, in, frame(spec)); }
  /// Many packets of one instant, handed over together.
  void send_burst(Nanos now, Port in, std::span<const std::vector<std::uint8_t>> frames);
  /// Runs all timers up to and including `until`.
  void run_until(Nanos until);
  /// Runs timers until none is armed (at most `limit` of them).
  void drain(unsigned limit = 1'000'000);

  Conservation conservation() const { return pipeline->conservation(); }

  Pool pool;
  CounterSet stats;
  Kernel* kernel = nullptr;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<Out> out;  ///< all that left, in order

 private:
  void start(std::vector<Stage> stages, std::vector<Edge> inputs);
  Packet make(Nanos now, Port in, std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes);
  std::uint64_t sequence_ = 0;
};

}  // namespace rocebox::test
