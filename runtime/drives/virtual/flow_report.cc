// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/flow_report.h"

#include <algorithm>
#include <cmath>

#include "runtime/drives/virtual/empty_network.h"

namespace rocebox {
namespace {

// Rows that a report has at most: of transfers the first are shown.
constexpr std::size_t kFlowRowsMax = 20'000;
constexpr Nanos kSamples = 100;  // of goodput over time, where the configuration does not say how wide they are

double rate_of(double amount, Nanos nanos) { return nanos > 0 ? amount * 1e9 / static_cast<double>(nanos) : 0; }

// The value that `percent` of them do not exceed, by nearest rank; 0 of none.
template <class T>
T percentile(const std::vector<T>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

template <class T>
double mean(const std::vector<T>& values) {
  double sum = 0;
  for (const T value : values) sum += static_cast<double>(value);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// A few digits are enough, and equal on every machine.
double rounded(double value) { return std::round(value * 1000) / 1000; }

Json completion_row(std::vector<Nanos>& nanos) {
  std::ranges::sort(nanos);
  return {{"mean_ns", std::llround(mean(nanos))},
          {"p50_ns", percentile(nanos, 50)},
          {"p99_ns", percentile(nanos, 99)},
          {"p999_ns", percentile(nanos, 99.9)},
          {"max_ns", nanos.empty() ? 0 : nanos.back()}};
}

Json slowdown_row(std::vector<double>& slowdowns) {
  std::ranges::sort(slowdowns);
  return {{"mean", rounded(mean(slowdowns))},
          {"p50", rounded(percentile(slowdowns, 50))},
          {"p99", rounded(percentile(slowdowns, 99))},
          {"p999", rounded(percentile(slowdowns, 99.9))},
          {"max", rounded(slowdowns.empty() ? 0 : slowdowns.back())}};
}

class WorkloadReport {
 public:
  WorkloadReport(const SimWorkloads::Row& row, EmptyNetwork& network, Nanos now)
      : row_(row), network_(network), now_(now) {}

  Json json() {
    const std::span<const FlowRecord> flows = row_.workload->flows();
    Json table = Json::array();
    for (const FlowRecord& flow : flows) add(flow, table);
    const bool started = row_.started != kNever, finished = row_.finished != kNever;
    const Nanos end = finished ? row_.finished : now_;
    const Nanos span = started ? end - row_.started : 0;
    Json json = {{"type", row_.config->type->name},
                 {"hosts", row_.config->hosts.size()},
                 {"finished", finished},
                 {"start_ns", started ? row_.started : 0},
                 {"duration_ns", span},
                 {"transfers", flows.size()},
                 {"transfers_done", completions_.size()},
                 {"bytes", bytes_},
                 {"goodput_bits_per_second", std::llround(rate_of(static_cast<double>(bytes_) * 8, span))}};
    json["completion"] = completion_row(completions_);
    json["slowdown"] = slowdown_row(slowdowns_);
    JsonReport details(json["details"]);
    row_.workload->report(details);
    json["flows"] = std::move(table);
    return json;
  }

 private:
  void add(const FlowRecord& flow, Json& table) {
    const bool done = flow.end != kNever;
    double slowdown = 0;
    if (done) {
      completions_.push_back(flow.end - flow.start);
      bytes_ += flow.bytes;
      const double ideal = network_.nanos(row_.hosts[flow.source], row_.hosts[flow.destination], flow.bytes);
      if (ideal > 0) slowdowns_.push_back(slowdown = static_cast<double>(flow.end - flow.start) / ideal);
    }
    if (table.size() == kFlowRowsMax) return;
    table.push_back({{"source", row_.config->hosts[flow.source]},
                     {"destination", row_.config->hosts[flow.destination]},
                     {"bytes", flow.bytes},
                     {"start_ns", flow.start},
                     {"done", done},
                     {"completion_ns", done ? flow.end - flow.start : 0},
                     {"slowdown", rounded(slowdown)}});
  }

  const SimWorkloads::Row& row_;
  EmptyNetwork& network_;
  Nanos now_;
  std::vector<Nanos> completions_;
  std::vector<double> slowdowns_;
  std::uint64_t bytes_ = 0;
};

// Bytes over time, by sample. What is added is spread evenly over its time.
class Goodput {
 public:
  Goodput(Nanos width, std::size_t samples) : width_(width), samples_(samples) {}
  void add(const Workload& workload) {
    const auto* carrier = dynamic_cast<const Carrier*>(&workload);
    if (const BytesOverTime* bytes = carrier ? carrier->over_time() : nullptr) {
      bytes->for_each([this](Nanos from, Nanos to, double step) { spread(from, to, step); });
      return;
    }
    for (const FlowRecord& flow : workload.flows())
      if (flow.end != kNever) spread(flow.start, flow.end, static_cast<double>(flow.bytes));
  }
  double bytes(std::size_t sample) const { return samples_[sample]; }

 private:
  // What ends with the run ends in its last sample.
  void spread(Nanos start, Nanos end, double bytes) {
    if (samples_.empty()) return;
    const auto last = static_cast<Nanos>(samples_.size()) - 1;
    const Nanos from = std::min(start / width_, last), to = std::min(end / width_, last);
    if (end == start) {
      samples_[static_cast<std::size_t>(from)] += bytes;
      return;
    }
    const double rate = bytes / static_cast<double>(end - start);
    for (Nanos i = from; i <= to; i++) {
      const Nanos sample_end = i == last ? end : std::min(end, (i + 1) * width_);
      samples_[static_cast<std::size_t>(i)] += rate * static_cast<double>(sample_end - std::max(start, i * width_));
    }
  }

  Nanos width_;
  std::vector<double> samples_;
};

Json goodput_rows(const SimWorkloads& workloads, Nanos now, Nanos width) {
  if (width == 0) width = std::max<Nanos>(1, (now + kSamples - 1) / kSamples);
  const auto count = static_cast<std::size_t>((now + width - 1) / width);
  Json rows = Json::array();
  std::vector<Goodput> all;
  for (const SimWorkloads::Row& row : workloads.rows()) all.emplace_back(width, count).add(*row.workload);
  for (std::size_t i = 0; i < count; i++) {
    const Nanos at = static_cast<Nanos>(i) * width;
    Json& row = rows.emplace_back(Json{{"at_ns", at}});
    const Nanos wide = std::min(width, now - at);
    for (std::size_t w = 0; w < all.size(); w++)
      row[workloads.rows()[w].config->name + "_bits_per_second"] = std::llround(rate_of(all[w].bytes(i) * 8, wide));
  }
  return rows;
}

}  // namespace

void report_flows(const config::RunConfig& config, const SimWorkloads& workloads, Nanos now, Nanos width,
                  Json& report) {
  Json& all = report["workloads"] = Json::object();
  EmptyNetwork network(config);
  for (const SimWorkloads::Row& row : workloads.rows())
    all[row.config->name] = WorkloadReport(row, network, now).json();
  report["goodput"] = goodput_rows(workloads, now, width);
}

void report_utilisation(const config::RunConfig& config, const Testbed& testbed, Nanos now, Json& report) {
  Json& rows = report["utilisation"] = Json::array();
  for (std::size_t i = 0; i < config.links.size(); i++) {
    const config::LinkConfig& link = config.links[i];
    std::uint64_t packets[2] = {}, bytes[2] = {};
    const auto number = static_cast<unsigned>(config.devices.size() + i);
    testbed.device(number).books().for_each_counter([&](const CounterView& counter) {
      if (counter.port.empty()) return;
      const std::size_t side = counter.port == testbed.device(number).ports()[0] ? 0 : 1;
      if (counter.name == "rx_packets") packets[side] = counter.value;
      if (counter.name == "rx_bytes") bytes[side] = counter.value;
    });
    for (Port side = 0; side < 2; side++) {
      const std::uint64_t rate = EmptyNetwork::rate_of(link, side);
      const double sent = rate_of(static_cast<double>(bytes[side] + kWireOverhead * packets[side]) * 8, now);
      rows.push_back({{"link", link.name},
                      {"from", link.between[side].text()},
                      {"packets", packets[side]},
                      {"bytes", bytes[side]},
                      {"share", rate ? rounded(sent / static_cast<double>(rate)) : 0.0}});
    }
  }
}

}  // namespace rocebox
