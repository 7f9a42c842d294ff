// SPDX-License-Identifier: BSD-3-Clause
// Kernels written as lambdas, and a pipeline around them that remembers what left.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/harness.h"

namespace rocebox::test {

/// Arms a timer that nobody else has: scripts want many, each once.
inline void arm_once(Context& context, Nanos at, std::uint64_t tag) {
  static std::deque<Timer> timers;  // those that were armed when a pipeline ended stay unused
  for (Timer& timer : timers)
    if (!timer.armed()) {
      timer.set_tag(tag);
      return context.arm(timer, at);
    }
  context.arm(timers.emplace_back(tag), at);
}

/// A kernel whose calls are lambdas; without one, everything passes.
class ScriptKernel final : public Kernel {
 public:
  using Process = std::function<void(Context&, Port, Batch&)>;
  using OnTimer = std::function<void(Context&, std::uint64_t)>;
  explicit ScriptKernel(Process process, OnTimer timer = {}) : process_(std::move(process)), timer_(std::move(timer)) {}
  void process(Context& context, Port in, Batch& batch) override {
    if (process_) process_(context, in, batch);
  }
  void on_timer(Context& context, Timer& timer) override {
    if (timer_) timer_(context, timer.tag());
  }

 private:
  Process process_;
  OnTimer timer_;
};

/// A stage; `outputs` as in Stage.
inline Stage stage(std::string name, std::vector<Edge> outputs, ScriptKernel::Process process = {},
                   ScriptKernel::OnTimer timer = {}, Shape shape = Shape::kOneWay) {
  Stage result;
  result.name = std::move(name);
  result.kernel = std::make_unique<ScriptKernel>(std::move(process), std::move(timer));
  result.shape = shape;
  result.outputs = std::move(outputs);
  return result;
}
inline constexpr Edge out(Port port) { return {Edge::kOutside, port}; }

/// A pipeline of such stages. Packets are one-byte frames: their number is all that tests look at.
class PipelineBox {
 public:
  struct Left {
    Nanos at;
    Port port;
    unsigned number;
    bool operator==(const Left&) const = default;
  };

  explicit PipelineBox(std::vector<Stage> stages, std::vector<Edge> inputs = {{0, 0}})
      : pool({.small = 2048, .large = 16, .giant = 2}), pipeline(std::move(stages), std::move(inputs), pool, stats) {
    pipeline.set_sink([this](Port port, std::span<Packet> packets, Nanos now) {
      bursts.push_back(static_cast<unsigned>(packets.size()));
      for (Packet packet : packets) {
        left.push_back({now, port, packet.data()[0]});
        rte_pktmbuf_free(packet.mbuf());
      }
    });
  }
  /// The packets in the pool are those that the pipeline says it holds.
  bool conserved() const { return pool.in_use() == pipeline.conservation().held(); }

  Packet packet(unsigned number) {
    PacketPtr packet = pool.allocate(1);
    packet->data()[0] = static_cast<std::uint8_t>(number);
    packet->meta().identity = ++pipeline.identities().last;
    roce::parse(*packet);
    return packet.release();
  }
  void send(Nanos now, const std::vector<unsigned>& numbers, Port in = 0) {
    std::vector<Packet> packets;
    for (unsigned number : numbers) packets.push_back(packet(number));
    const Arrivals arrivals{in, packets};
    pipeline.step(now, {&arrivals, 1});
  }
  void tick(Nanos now) { pipeline.step(now, {}); }
  std::vector<unsigned> numbers() const {
    std::vector<unsigned> result;
    for (const Left& l : left) result.push_back(l.number);
    return result;
  }

  Pool pool;
  CounterSet stats;
  Pipeline pipeline;
  std::vector<Left> left;
  std::vector<unsigned> bursts;
};

inline std::vector<unsigned> range(unsigned first, unsigned count) {
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < count; i++) numbers.push_back(first + i);
  return numbers;
}

}  // namespace rocebox::test
