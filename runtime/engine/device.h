// SPDX-License-Identifier: BSD-3-Clause
// Device: one instance with its own state and numbered ports, as a drive sees it.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/pipeline.h"
#include "runtime/kernel/counter_set.h"

namespace rocebox {

/// How much of a device is reported.
enum class Detail : std::uint8_t { kCounters, kAll };

/// One number that a device counts, and what counts it: the port or kernel, or the device itself when both are empty.
struct CounterView {
  std::string_view port, kernel, kernel_type;
  std::string_view name, sentence;
  std::uint64_t value;
  const Counter* counter;  ///< where it is counted, and what drops name as their reason; null: it is computed
};

/// What a drive calls. Two instances share nothing, so hundreds live in one process.
class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<std::string>& ports() const = 0;

  /// One instant: see Pipeline::step. The device fills the packets' metadata (arrival, input, sequence, parse).
  virtual void step(Nanos now, std::span<const Arrivals> arrivals) = 0;
  virtual Nanos next_deadline() const = 0;
  virtual void set_sink(Sink sink) = 0;
  virtual void set_trace(TraceSink* trace) = 0;
  virtual void set_probe(Probe* probe) = 0;
  virtual void set_batch_max(unsigned packets) = 0;
  /// Who takes what leaves by port `out` only reads its bytes: they may be other packets', too.
  virtual void allow_shared(Port out) = 0;
  /// The port by which packets of port `in` leave when nothing looks at them on their way, or -1. Where a wire must
  /// cost no more than a wire, a drive may pass them on by itself and tell it by count_wire(), instead of step().
  virtual int wire_from(Port in) const = 0;
  virtual void count_wire(Port in, Port out, std::uint64_t packets, std::uint64_t bytes) = 0;

  /// Kernel `number`, in the order of report(); for what changes its options.
  virtual Kernel& kernel(unsigned number) = 0;
  virtual Conservation conservation() const = 0;
  /// What the report says of this device: ports, kernels, their counters; and what the kernels themselves have to say
  /// when `detail` is kAll. Counters may be read on any thread while packets flow, kernels not.
  virtual void report(Report& report, Detail detail = Detail::kAll) const = 0;
  /// Every number of report(), with its sentence. On any thread while packets flow.
  virtual void for_each_counter(const std::function<void(const CounterView&)>& each) const = 0;
  /// The name of a counter of this device or of one of its kernels; empty when it is another's.
  virtual std::string_view counter_name(const Counter* counter) const = 0;
};

/// The packets and bytes of one device port, and what parsing said of what came in.
struct PortCounters {
  Counter rx_packets, rx_bytes, tx_packets, tx_bytes;
};

/// A kernel in a bump, before it is made.
struct KernelPlan {
  std::string name, type;
  Shape shape;
  std::vector<Edge> outputs;
  std::function<std::unique_ptr<Kernel>(Stats&)> make;
};

/// A pipeline with ports: what comes in is parsed once and runs through the kernels.
class Bump final : public Device {
 public:
  /// `inputs[p]` is where packets of port p enter. `run_seed` and the names seed each kernel's random stream.
  /// Throws ConfigError when a kernel cannot be made.
  Bump(std::string name, std::vector<std::string> ports, std::vector<Edge> inputs, std::vector<KernelPlan> plans,
       Pool& pool, std::uint64_t run_seed);
  ~Bump() override;

  const std::string& name() const override { return name_; }
  const std::vector<std::string>& ports() const override { return ports_; }
  void step(Nanos now, std::span<const Arrivals> arrivals) override;
  Nanos next_deadline() const override { return pipeline_->next_deadline(); }
  void set_sink(Sink sink) override;
  void set_trace(TraceSink* trace) override;
  void set_probe(Probe* probe) override { pipeline_->set_probe(probe); }
  void set_batch_max(unsigned packets) override { pipeline_->set_batch_max(packets); }
  void allow_shared(Port out) override { pipeline_->allow_shared(out); }
  int wire_from(Port in) const override { return trace_ ? -1 : wires_[in]; }
  void count_wire(Port in, Port out, std::uint64_t packets, std::uint64_t bytes) override;
  Kernel& kernel(unsigned number) override { return *pipeline_->stages()[number].kernel; }
  Conservation conservation() const override { return pipeline_->conservation(); }
  void report(Report& report, Detail detail = Detail::kAll) const override;
  void for_each_counter(const std::function<void(const CounterView&)>& each) const override;
  std::string_view counter_name(const Counter* counter) const override;

 private:
  void enter(Nanos now, const Arrivals& arrival);

  std::string name_;
  std::vector<std::string> ports_;
  CounterSet stats_;
  std::deque<CounterSet> kernel_stats_;
  std::vector<std::string> kernel_types_;
  std::vector<PortCounters> port_counters_;  // sized once: their addresses stay valid
  std::array<Counter*, static_cast<std::size_t>(ParseStatus::kCount)> status_counters_{};
  std::unique_ptr<Pipeline> pipeline_;
  TraceSink* trace_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::vector<int> wires_;  // by input: where it leads when that is an output; else -1
};

/// The seed of a stream of its own for (run seed, device, kernel): adding a device shifts no other's draws.
std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view device, std::string_view kernel);

}  // namespace rocebox
