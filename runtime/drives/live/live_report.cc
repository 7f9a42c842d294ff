// SPDX-License-Identifier: BSD-3-Clause
// What a live run tells of itself: of its ports, devices, links and cores.
#include <fmt/format.h>

#include "runtime/drives/live/live.h"
#include "runtime/process/eal.h"

namespace rocebox {

void Live::report_ports(Json& report) const {
  Json& rows = report["ports"] = Json::array();
  for (std::size_t i = 0; i < ports_.size(); i++) {
    const LivePortCounts counts = ports_[i]->counts();
    std::uint64_t rx = 0, tx = 0, full = 0, too_long = 0, tx_too_long = 0, finished = 0, errors = 0;
    for (const auto& shard : shards_) {
      const ShardPortCounters& counters = shard->counters(i);
      rx += counters.rx_packets.read();
      tx += counters.tx_packets.read();
      errors += counters.tx_errors.read();
      full += counters.tx_full.read();
      too_long += counters.rx_too_long.read();
      tx_too_long += counters.tx_too_long.read();
      finished += counters.rx_checksums_finished.read();
    }
    rows.push_back({{"port", ports_[i]->port().text()},
                    {"is", ports_[i]->text()},
                    {"link", name_of(ports_[i]->link())},
                    {"rx_packets", rx},
                    {"tx_packets", tx},
                    {"rx_missed", counts.rx_missed},
                    {"rx_errors", counts.rx_errors},
                    {"rx_no_packet", counts.rx_no_packet},
                    {"rx_other_mac", counts.rx_other_mac},
                    {"rx_too_long", too_long},
                    {"rx_checksums_finished", finished},
                    {"tx_full", full},
                    {"tx_too_long", tx_too_long},
                    {"tx_errors", errors + counts.tx_errors},
                    {"link_down_events", link_watch_->down_events(i)}});
    add_percentiles(rows.back(), "latency_", port_latency(i));
    ports_[i]->add_to(rows.back());
  }
}

void Live::for_each_sojourn(const std::function<void(const SojournView&)>& each) const {
  auto tell = [&](bool link, const std::string& name, const std::string& kernel, auto histogram_of) {
    SojournView view{link, name, kernel, {}};
    for (const auto& shard : shards_) view.times.add(histogram_of(*shard));
    each(view);
  };
  unsigned i = 0;
  const auto whole = [&i](const Shard& shard) -> const Histogram& { return shard.sojourn(i).device(); };
  for (const config::DeviceConfig& device : config_.devices) {
    tell(false, device.name, "", whole);
    for (std::size_t k = 0; k < device.kernels.size(); k++)
      tell(false, device.name, device.kernels[k].name,
           [=](const Shard& shard) -> const Histogram& { return shard.sojourn(i).kernel(k); });
    i++;
  }
  for (const config::LinkConfig& link : config_.links) {
    tell(true, link.name, "", whole);
    i++;
  }
}

void Live::report_sojourns(Json& report) const {
  for_each_sojourn([&](const SojournView& view) {
    Json& whole = report[view.link ? "links" : "devices"][view.name];
    Json& row = (view.kernel.empty() ? whole : whole["kernels"][view.kernel])["latency"];
    row["samples"] = view.times.count();
    add_percentiles(row, "", view.times);
    row["max_ns"] = view.times.max();
  });
}

void Live::report_shards(Json& report) const {
  Json& rows = report["shards"] = Json::array();
  for (const auto& shard : shards_)
    rows.push_back({{"shard", shard->number()},
                    {"core", cores_[shard->number()]},
                    {"loops", shard->loops()},
                    {"busy_loops", shard->busy_loops()},
                    {"busy_ns", shard->busy_nanos()}});
}

void Live::report_workloads(Json& report) const {
  if (!shards_[0]->workloads()) return;
  for (const SimWorkloads::Row& row : shards_[0]->workloads()->rows()) {
    const bool started = row.started != kNever, finished = row.finished != kNever;
    Json own;
    JsonReport details(own, !started);
    row.workload->report(details);
    report["workloads"][row.config->name] = {
        {"type", row.config->type->name},
        {"hosts", row.config->hosts.size()},
        {"finished", finished},
        {"failed", !workload_error(own).empty()},
        {"duration_ns", started ? (finished ? row.finished : stopped_.load()) - row.started : 0},
        {"transfers", row.workload->flows().size()},
        {"details", std::move(own)}};
  }
}

Json Live::report() const {
  const std::lock_guard lock(observer_);
  Json report;
  report["schema_version"] = kReportSchemaVersion;
  report["command"] = "run";
  report["config"] = config_.file;
  report["seed"] = config_.seed;
  std::uint64_t loops = 0, busy = 0, held = 0, unbound = 0;
  for (const auto& shard : shards_) {
    unbound += shard->unbound();
    loops += shard->loops();
    busy += shard->busy_loops();
    held += shard->testbed().fabric().held();
  }
  report["run"] = {{"started_ns", started_.load()},
                   {"elapsed_ns", 0},
                   {"shards", shards_.size()},
                   {"cores", fmt::format("{}", fmt::join(cores_, ","))},
                   {"spread_by", shards_.size() == 1 ? "nothing"
                                 : rss_              ? "software"
                                                     : "ports"},
                   {"hugepages", eal_has_hugepages()},
                   {"loops", loops},
                   {"busy_loops", busy},
                   {"drop_handover_full", rss_ ? rss_->full() : 0},
                   {"drop_unbound", unbound},
                   {"packets_held", held},
                   {"pool_idle", pool_idle_},
                   {"pool_in_use", pool_.in_use()}};
  report_shards(report);
  report_ports(report);
  if (!running_) captures_.report(report);
  if (!running_) report_workloads(report);  // which are their core's while packets flow
  std::vector<const Testbed*> testbeds;
  for (const auto& shard : shards_) testbeds.push_back(&shard->testbed());
  Testbed::report_sum(testbeds, report, running_ ? Detail::kCounters : Detail::kAll);
  report_sojourns(report);
  // Last, so that nothing that a counter tells of is younger than the report.
  if (started_ != 0) report["run"]["elapsed_ns"] = (running_ ? clock_.now() : stopped_.load()) - started_;
  return report;
}

}  // namespace rocebox
