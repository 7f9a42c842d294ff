// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/pipeline_device.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "runtime/roce/parse.h"

namespace rocebox {

std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view device, std::string_view kernel) {
  const std::uint64_t outer = XXH64(device.data(), device.size(), run_seed);
  return XXH64(kernel.data(), kernel.size(), outer);
}

namespace {

void report_counters(Report& report, const CounterSet& counters) {
  for (const CounterSet::Row& row : counters.rows()) {
    const auto value = static_cast<std::int64_t>(row.read());
    if (row.kind() == CounterKind::kPeak)
      report.peak(row.name, value);
    else
      report.count(row.name, value);
  }
}

// What a port counts.
struct PortRow {
  std::string_view name, sentence;
  Counter PortCounters::*counter;
};
constexpr PortRow kPortRows[] = {
    {"rx_packets", "packets that came in by the port", &PortCounters::rx_packets},
    {"rx_bytes", "their bytes on the wire, without FCS", &PortCounters::rx_bytes},
    {"tx_packets", "packets that left by the port", &PortCounters::tx_packets},
    {"tx_bytes", "their bytes on the wire, without FCS", &PortCounters::tx_bytes},
};

// The books of a device.
struct BookRow {
  std::string_view name, sentence;
  CounterKind kind;
  std::uint64_t value;
};
std::array<BookRow, 6> book_rows(const Conservation& c, std::uint64_t delivered) {
  constexpr CounterKind kCount = CounterKind::kCount;
  delivered = std::min(delivered, c.dropped);  // another thread may count meanwhile
  return {
      {{"packets_in", "packets that came in", kCount, c.in},
       {"packets_made", "packets that kernels made", kCount, c.made},
       {"packets_out", "packets that left", kCount, c.out},
       {"packets_delivered", "packets that ended here as they should", kCount, delivered},
       {"packets_dropped", "packets that were dropped, each counted by its reason too", kCount, c.dropped - delivered},
       {"packets_held", "packets that kernels hold now", CounterKind::kLevel, c.held()}}};
}

}  // namespace

PipelineDevice::PipelineDevice(std::string name, std::vector<std::string> ports, std::vector<Edge> inputs,
                               std::vector<KernelPlan> plans, Pool& pool, std::uint64_t run_seed)
    : name_(std::move(name)), ports_(std::move(ports)), port_counters_(ports_.size()) {
  std::vector<Stage> stages;
  for (KernelPlan& plan : plans) {
    Stage stage;
    stage.name = plan.name;
    stage.kernel = plan.make(kernel_stats_.emplace_back());
    stage.shape = plan.shape;
    stage.outputs = std::move(plan.outputs);
    stage.seed = stream_seed(run_seed, name_, plan.name);
    stages.push_back(std::move(stage));
    kernel_types_.push_back(plan.type);
  }
  for (std::size_t i = 1; i < status_counters_.size(); i++) {
    const auto status = static_cast<ParseStatus>(i);
    const std::string counter = "rx_" + std::string(roce::parse_status_name(status));
    status_counters_[i] = &stats_.counter(counter, roce::parse_status_sentence(status));
  }
  for (const Edge& input : inputs) wires_.push_back(input.stage == Edge::kOutside ? input.port : -1);
  pipeline_ = std::make_unique<Pipeline>(std::move(stages), std::move(inputs), pool, stats_);
  const std::vector<Stage>& placed = pipeline_->stages();
  if (pipeline_->is_one_kernel() && wires_.size() == 2 && placed[0].outputs.size() == 2)
    line_ = placed[0].kernel->delay_line();
  pipeline_->count_sent(port_counters_.data());
}

PipelineDevice::~PipelineDevice() = default;

void PipelineDevice::count(Port in, Port out, std::uint64_t packets, std::uint64_t bytes) {
  port_counters_[in].came(packets, bytes);
  port_counters_[out].sent(packets, bytes);
  pipeline_->count_wire(packets);
}

// Of one packet, as nearly all are in virtual time, that another device has parsed and numbered.
void PipelineDevice::enter_one(Nanos now, Port in, PacketMeta& meta) {
  meta.arrival = now;
  meta.input = in;
  meta.made = 0;
  status_counters_[static_cast<std::size_t>(meta.status)]->add();
  port_counters_[in].came(1, meta.wire_bytes);
}

void PipelineDevice::enter(Nanos now, const Arrivals& arrival) {
  const bool all_new = !pipeline_->shares_identities();
  if (!all_new && arrival.packets.size() == 1 && !trace_) {
    PacketMeta& meta = arrival.packets[0].meta();
    if (meta.status != ParseStatus::kUnparsed && meta.identity != 0) return enter_one(now, arrival.in, meta);
  }
  if (all_new) {
    roce::parse(arrival.packets);
    count_entering<true>(now, arrival);
  } else {
    roce::parse_new(arrival.packets);
    count_entering<false>(now, arrival);
  }
  if (!trace_) [[likely]]
    return;
  for (Packet packet : arrival.packets) {
    packet.meta().traced = trace_->follows(packet);
    if (trace_->every_port || packet.meta().traced)
      trace_->record({now, {}, TraceVerdict::kArrive, arrival.in, nullptr, trace_info(packet), packet});
  }
}

// What is parsed gets its metadata and is counted; where all are new none is asked whether it is.
template <bool kAllNew>
void PipelineDevice::count_entering(Nanos now, const Arrivals& arrival) {
  std::uint64_t bytes = 0, run = 0;  // packets of one status in a row are counted at once
  std::uint64_t last = pipeline_->identities().last;
  ParseStatus status = ParseStatus::kUnparsed;
  for (Packet packet : arrival.packets) {
    PacketMeta& meta = packet.meta();
    meta.arrival = now;
    meta.input = arrival.in;
    if (kAllNew || meta.identity == 0) meta.identity = ++last;
    meta.made = 0;
    bytes += meta.wire_bytes;
    if (meta.status != status) {
      if (run) status_counters_[static_cast<std::size_t>(status)]->add(run);
      status = meta.status;
      run = 0;
    }
    run++;
  }
  pipeline_->identities().last = last;
  if (run) status_counters_[static_cast<std::size_t>(status)]->add(run);
  port_counters_[arrival.in].came(arrival.packets.size(), bytes);
}

// What step() does for a packet, but for what the next device writes anew and what settle() counts.
void PipelineDevice::comes(Port in, Packet packet, Nanos now) {
  PacketMeta& meta = packet.meta();
  meta.arrival = now;
  if (meta.status == ParseStatus::kUnparsed) roce::parse(packet);
  if (meta.identity == 0) meta.identity = ++pipeline_->identities().last;
  if (meta.status != ParseStatus::kRoce) {
    status_counters_[static_cast<std::size_t>(meta.status)]->add();
    not_roce_[in]++;
  }
  pipeline_->time_line_in(packet);
}

void PipelineDevice::settle(Nanos before) {
  pipeline_->settle(before);
  if (!line_) return;
  const DelayWay::CountedOfBoth counted = line_->settle(before);
  for (Port in = 0; in < 2; in++) {
    const DelayWay::Counted& since = counted[in];
    status_counters_[static_cast<std::size_t>(ParseStatus::kRoce)]->add(since.put - std::exchange(not_roce_[in], 0));
    port_counters_[in].came(since.put, since.put_bytes);
    port_counters_[in ^ 1].sent(since.taken, since.taken_bytes);
    pipeline_->count_line(since.put, since.taken);
  }
}

void PipelineDevice::step(Nanos now, std::span<const Arrivals> arrivals) {
  for (const Arrivals& arrival : arrivals) enter(now, arrival);
  pipeline_->step(now, arrivals);
}

Nanos PipelineDevice::step_one(Nanos now, Port in, Packet packet) {
  if (trace_ || !pipeline_->is_alone()) return Device::step_one(now, in, packet);
  enter_one(now, in, packet.meta());
  pipeline_->step_alone(now, in, packet);
  return pipeline_->next_deadline();
}

void PipelineDevice::set_trace(TraceSink* trace) {
  trace_ = trace;
  pipeline_->set_trace(trace);
  for (Port in = 0; line_ && in < 2; in++) line_->way(in).shut(trace != nullptr);
}

void PipelineDevice::set_probe(Probe* probe) {
  pipeline_->set_probe(probe);
  for (Port in = 0; line_ && in < 2; in++) line_->way(in).watch(probe != nullptr);
}

// Of all packets that were dropped.
std::uint64_t PipelineDevice::delivered() const {
  std::uint64_t sum = 0;
  for (const Stage& stage : pipeline_->stages())
    for (const Counter* counter : stage.kernel->delivered()) sum += counter->read();
  return sum;
}

void PipelineDevice::report(Report& report, Detail detail) const {
  report.object("ports", [&](Report& ports) {
    for (std::size_t i = 0; i < ports_.size(); i++) {
      ports.object(ports_[i], [&](Report& port) {
        for (const PortRow& row : kPortRows)
          port.count(row.name, static_cast<std::int64_t>((port_counters_[i].*row.counter).read()));
      });
    }
  });
  report.object("counters", [&](Report& counters) {
    for (const BookRow& row : book_rows(conservation(), delivered()))
      counters.count(row.name, static_cast<std::int64_t>(row.value));
    report_counters(counters, stats_);
  });
  report.object("kernels", [&](Report& kernels) {
    for (std::size_t i = 0; i < kernel_types_.size(); i++) {
      const Stage& stage = pipeline_->stages()[i];
      kernels.object(stage.name, [&](Report& kernel) {
        kernel.text("type", kernel_types_[i]);
        kernel.count("packets_in", static_cast<std::int64_t>(pipeline_->packets_in(i)));
        kernel.object("counters", [&](Report& counters) { report_counters(counters, kernel_stats_[i]); });
        if (detail == Detail::kAll) stage.kernel->report(kernel);
      });
    }
  });
}

void PipelineDevice::for_each_counter(const std::function<void(const CounterView&)>& each) const {
  for (std::size_t i = 0; i < ports_.size(); i++)
    for (const PortRow& row : kPortRows)
      each({ports_[i],
            {},
            {},
            row.name,
            row.sentence,
            CounterKind::kCount,
            (port_counters_[i].*row.counter).read(),
            &(port_counters_[i].*row.counter),
            &(port_counters_[i].*row.counter)});
  for (const BookRow& row : book_rows(conservation(), delivered()))
    each({{}, {}, {}, row.name, row.sentence, row.kind, row.value, nullptr, nullptr});
  for (const CounterSet::Row& row : stats_.rows())
    each({{}, {}, {}, row.name, row.sentence, row.kind(), row.read(), row.counter(), row.value()});
  for (std::size_t i = 0; i < kernel_types_.size(); i++)
    for (const CounterSet::Row& row : kernel_stats_[i].rows())
      each({{},
            pipeline_->stages()[i].name,
            kernel_types_[i],
            row.name,
            row.sentence,
            row.kind(),
            row.read(),
            row.counter(),
            row.value()});
}

void PipelineDevice::for_each_level(const OnLevel& each) const {
  for (const Stage& stage : pipeline_->stages())
    stage.kernel->for_each_level([&](const std::string& name, const Level& level) { each(stage.name, name, level); });
}

std::string_view PipelineDevice::counter_name(const Counter* counter) const {
  if (std::string_view name = stats_.name_of(counter); !name.empty()) return name;
  for (const CounterSet& set : kernel_stats_)
    if (std::string_view name = set.name_of(counter); !name.empty()) return name;
  return {};
}

}  // namespace rocebox
