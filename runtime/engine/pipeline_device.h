// SPDX-License-Identifier: BSD-3-Clause
// PipelineDevice: a pipeline with ports. Every kind of device is one: a bump of the kernels in its path, another of
// one kernel that is the whole device.
#pragma once
#include <array>
#include <deque>
#include <memory>

#include "runtime/engine/device.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/kernel/delay_way.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {

/// A kernel of a device, before it is made.
struct KernelPlan {
  std::string name, type;
  Shape shape;
  std::vector<Edge> outputs;
  std::function<std::unique_ptr<Kernel>(Stats&)> make;
};

class PipelineDevice final : public Device, private DeviceBooks, private WirePath, private LinePath {
 public:
  /// `inputs[p]` is where packets of port p enter. `run_seed` and the names seed each kernel's random stream.
  /// Throws ConfigError when a kernel cannot be made.
  PipelineDevice(std::string name, std::vector<std::string> ports, std::vector<Edge> inputs,
                 std::vector<KernelPlan> plans, Pool& pool, std::uint64_t run_seed);
  ~PipelineDevice() override;

  const std::string& name() const override { return name_; }
  const std::vector<std::string>& ports() const override { return ports_; }
  void step(Nanos now, std::span<const Arrivals> arrivals) override;
  Nanos next_deadline() const override { return pipeline_->next_deadline(); }
  void prefetch() const override { pipeline_->prefetch(); }
  void prefetch_arrival(Port in, Packet packet) const override {
    prefetch_line(&port_counters_[in]);
    pipeline_->prefetch_arrival(in, packet);
  }
  void prefetch_turn(bool is_near) const override { pipeline_->prefetch_turn(is_near); }
  std::span<const std::byte> hot() const override { return pipeline_->hot(); }
  void set_sink(Sink sink) override { pipeline_->set_sink(std::move(sink)); }
  void set_batch_max(unsigned packets) override { pipeline_->set_batch_max(packets); }
  void allow_shared(Port out) override { pipeline_->allow_shared(out); }
  void set_identities(PacketIdentities& identities) override { pipeline_->set_identities(identities); }
  void set_trace(TraceSink* trace) override;
  void set_probe(Probe* probe) override;
  Nanos step_one(Nanos now, Port in, Packet packet) override;
  void set_ahead_sink(AheadSink sink) override { pipeline_->set_ahead_sink(sink); }
  void settle(Nanos before) override;
  Kernel& kernel(unsigned number) override { return *pipeline_->stages()[number].kernel; }
  const DeviceBooks& books() const override { return *this; }
  WirePath* wire_path() override { return this; }
  LinePath* line_path() override { return line_ ? this : nullptr; }
  HostSide* host_side() override { return pipeline_->host_side(); }

 private:
  void enter(Nanos now, const Arrivals& arrival);
  template <bool kAllNew>
  void count_entering(Nanos now, const Arrivals& arrival);
  void enter_one(Nanos now, Port in, PacketMeta& meta);

  Conservation conservation() const override { return pipeline_->conservation(); }
  std::uint64_t delivered() const;
  void report(Report& report, Detail detail) const override;
  void for_each_counter(const std::function<void(const CounterView&)>& each) const override;
  void for_each_level(const OnLevel& each) const override;
  std::string_view counter_name(const Counter* counter) const override;

  int out(Port in) const override { return trace_ ? -1 : wires_[in]; }
  void count(Port in, Port out, std::uint64_t packets, std::uint64_t bytes) override;

  DelayWay& way(Port in) override { return line_->way(in); }
  void comes(Port in, Packet packet, Nanos now) override;
  void goes(Packet packet) override { pipeline_->time_line_out(packet); }

  std::string name_;
  std::vector<std::string> ports_;
  CounterSet stats_;
  std::deque<CounterSet> kernel_stats_;
  std::vector<std::string> kernel_types_;
  std::vector<PortCounters> port_counters_;  // sized once: their addresses stay valid
  std::array<Counter*, static_cast<std::size_t>(ParseStatus::kCount)> status_counters_{};
  std::unique_ptr<Pipeline> pipeline_;
  TraceSink* trace_ = nullptr;
  std::vector<int> wires_;     // by input: where it leads when that is an output; else -1
  DelayLine* line_ = nullptr;  // of the only kernel, which has both ports, in their order
  // Of the line's ways, since the last settle(): what was counted by its status as it came.
  std::array<std::uint64_t, 2> not_roce_{};
};

/// The seed of a stream of its own for (run seed, device, kernel): adding a device shifts no other's draws.
std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view device, std::string_view kernel);

}  // namespace rocebox
