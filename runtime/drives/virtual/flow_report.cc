// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/flow_report.h"

#include <algorithm>
#include <cmath>

#include "runtime/drives/virtual/empty_network.h"
#include "runtime/kernel/collectives.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox {
namespace {

// Transfers of a workload that a report shows; of more each n-th, from the first one to the last one.
constexpr std::size_t kFlowRowsMax = 20'000;

double rate_of(double amount, Nanos nanos) { return nanos > 0 ? amount * 1e9 / static_cast<double>(nanos) : 0; }

// The value that so many thousandths of them do not exceed, by nearest rank; 0 of none.
template <class T>
T value_at(const std::vector<T>& sorted, unsigned permille) {
  return sorted.empty() ? 0 : sorted[nearest_rank(sorted.size(), permille) - 1];
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
          {"p50_ns", value_at(nanos, 500)},
          {"p99_ns", value_at(nanos, 990)},
          {"p999_ns", value_at(nanos, 999)},
          {"max_ns", nanos.empty() ? 0 : nanos.back()}};
}

Json slowdown_row(std::vector<double>& slowdowns) {
  std::ranges::sort(slowdowns);
  return {{"mean", rounded(mean(slowdowns))},
          {"p50", rounded(value_at(slowdowns, 500))},
          {"p99", rounded(value_at(slowdowns, 990))},
          {"p999", rounded(value_at(slowdowns, 999))},
          {"max", rounded(slowdowns.empty() ? 0 : slowdowns.back())}};
}

// What of a transfer is with its receiver.
std::uint64_t placed(const SimWorkloads::Row& row, std::size_t number) {
  const FlowRecord& flow = row.workload->flows()[number];
  if (flow.end != kNever) return flow.bytes;
  if (const auto* placer = dynamic_cast<const Placer*>(row.workload.get())) return placer->bytes_placed(number);
  // One that stands for many messages has what they came to so far.
  const auto* carrier = dynamic_cast<const Carrier*>(row.workload.get());
  return carrier && carrier->over_time() ? flow.bytes : 0;
}

Json flow_row(const SimWorkloads::Row& row, std::size_t number, double slowdown) {
  const FlowRecord& flow = row.workload->flows()[number];
  const bool done = flow.end != kNever;
  return {{"source", row.config->hosts[flow.source]},
          {"destination", row.config->hosts[flow.destination]},
          {"bytes", flow.bytes},
          {"bytes_placed", placed(row, number)},
          {"start_ns", flow.start},
          {"done", done},
          {"completion_ns", done ? flow.end - flow.start : 0},
          {"slowdown", rounded(slowdown)}};
}

// Of the workload's collectives, as of its transfers.
Json collectives_of(const SimWorkloads::Row& row, const CollectiveTimes& all, EmptyNetwork& network) {
  std::vector<Nanos> completions;
  std::vector<double> slowdowns;
  const auto alone = [&](unsigned source, unsigned destination, std::uint64_t bytes) {
    return network.nanos(row.hosts[source], row.hosts[destination], bytes);
  };
  for (std::size_t i = 0; i < all.collectives(); i++) {
    const auto [start, end] = all.collective(i);
    if (end == kNever) continue;
    completions.push_back(end - start);
    const double least = all.least_nanos(i, alone);
    if (least > 0) slowdowns.push_back(static_cast<double>(end - start) / least);
  }
  Json json = {{"count", all.collectives()}, {"done", completions.size()}};
  json["completion"] = completion_row(completions);
  json["slowdown"] = slowdown_row(slowdowns);
  return json;
}

// Against the empty network; 0 where that is not known, the transfer not done, or its time no matter of its bytes.
double slowdown_of(const SimWorkloads::Row& row, const FlowRecord& flow, EmptyNetwork& network) {
  if (flow.end == kNever || flow.waits_for_answers) return 0;
  const double ideal = network.nanos(row.hosts[flow.source], row.hosts[flow.destination], flow.bytes);
  return ideal > 0 ? static_cast<double>(flow.end - flow.start) / ideal : 0;
}

class WorkloadReport {
 public:
  WorkloadReport(const SimWorkloads::Row& row, EmptyNetwork& network, Nanos now)
      : row_(row), network_(network), now_(now) {}

  Json json() {
    const std::span<const FlowRecord> flows = row_.workload->flows();
    const std::size_t shown = std::min(flows.size(), kFlowRowsMax);
    Json table = Json::array();
    for (std::size_t i = 0; i < flows.size(); i++) {
      bytes_ += placed(row_, i);
      const double slowdown = add(flows[i]);
      const std::size_t next = table.size();
      if (next < shown && i == (shown == 1 ? 0 : next * (flows.size() - 1) / (shown - 1)))
        table.push_back(flow_row(row_, i, slowdown));
    }
    const bool started = row_.started != kNever, finished = row_.finished != kNever;
    const Nanos end = finished ? row_.finished : now_;
    const Nanos span = started ? end - row_.started : 0;
    Json own;
    JsonReport details(own, now_ == 0);  // the report before the run
    row_.workload->report(details);
    Json json = {{"type", row_.config->type->name},
                 {"hosts", row_.config->hosts.size()},
                 {"finished", finished},
                 {"failed", !workload_error(own).empty()},
                 {"start_ns", started ? row_.started : 0},
                 {"duration_ns", span},
                 {"transfers", flows.size()},
                 {"transfers_done", completions_.size()},
                 {"bytes", bytes_},
                 {"goodput_bits_per_second", std::llround(rate_of(static_cast<double>(bytes_) * 8, span))}};
    json["completion"] = completion_row(completions_);
    json["slowdown"] = slowdown_row(slowdowns_);
    if (const auto* all = dynamic_cast<const CollectiveTimes*>(row_.workload.get()))
      json["collectives"] = collectives_of(row_, *all, network_);
    json["details"] = std::move(own);
    json["transfers_omitted"] = flows.size() - table.size();
    json["flows"] = std::move(table);
    return json;
  }

 private:
  double add(const FlowRecord& flow) {
    if (flow.end == kNever) return 0;
    completions_.push_back(flow.end - flow.start);
    const double slowdown = slowdown_of(row_, flow, network_);
    if (slowdown > 0) slowdowns_.push_back(slowdown);
    return slowdown;
  }

  const SimWorkloads::Row& row_;
  EmptyNetwork& network_;
  Nanos now_;
  std::vector<Nanos> completions_;
  std::vector<double> slowdowns_;
  std::uint64_t bytes_ = 0;
};

// Bytes of a workload over time, by sample.
class Goodput {
 public:
  Goodput(Nanos width, std::size_t samples) : width_(width), samples_(samples) {}
  /// Samples of all that was placed up to their ends. What came with the end of the run came in the last one.
  void add(const std::vector<std::uint64_t>& placed, std::uint64_t in_all) {
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < samples_.size(); i++) {
      const std::uint64_t now = i + 1 < samples_.size() ? placed[i] : std::max(before, in_all);
      samples_[i] = static_cast<double>(now - before);
      before = now;
    }
  }
  /// Of one that does not say what it has placed, spread evenly over the time that it took.
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

Json goodput_rows(const SimWorkloads& workloads, Nanos now, const Series& series, const Json& report) {
  const Nanos width = series.width();
  const auto count = static_cast<std::size_t>((now + width - 1) / width);
  Json rows = Json::array();
  std::vector<Goodput> all;
  for (std::size_t i = 0; i < workloads.rows().size(); i++) {
    const SimWorkloads::Row& row = workloads.rows()[i];
    Goodput& one = all.emplace_back(width, count);
    if (const std::vector<std::uint64_t> placed = series.placed(i); count > 0 && placed.size() >= count)
      one.add(placed, report[row.config->name]["bytes"].get<std::uint64_t>());
    else
      one.add(*row.workload);
  }
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

void report_flows(const config::RunConfig& config, const SimWorkloads& workloads, Nanos now, const Series& series,
                  Json& report) {
  Json& all = report["workloads"] = Json::object();
  EmptyNetwork network(config);
  for (const SimWorkloads::Row& row : workloads.rows())
    all[row.config->name] = WorkloadReport(row, network, now).json();
  report["goodput"] = goodput_rows(workloads, now, series, all);
}

void for_each_transfer(const config::RunConfig& config, const SimWorkloads& workloads, const EachRow& each) {
  EmptyNetwork network(config);
  for (const SimWorkloads::Row& row : workloads.rows())
    for (std::size_t i = 0; i < row.workload->flows().size(); i++) {
      Json one = {{"workload", row.config->name}};
      one.update(flow_row(row, i, slowdown_of(row, row.workload->flows()[i], network)));
      each(one);
    }
}

Json utilisation(const config::RunConfig& config, const Testbed& testbed, Nanos now) {
  const LinkRates rates(config);
  Json rows = Json::array();
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
      const std::uint64_t rate = rates.of(i, side);
      const double sent = rate_of(static_cast<double>(bytes[side] + kWireOverhead * packets[side]) * 8, now);
      Json& row = rows.emplace_back(Json{{"link", link.name},
                                         {"from", link.between[side].text()},
                                         {"packets", packets[side]},
                                         {"bytes", bytes[side]}});
      if (rate) row["share"] = rounded(sent / static_cast<double>(rate));
    }
  }
  return rows;
}

}  // namespace rocebox
