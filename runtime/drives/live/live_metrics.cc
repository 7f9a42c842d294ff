// SPDX-License-Identifier: BSD-3-Clause
// What Live tells as metrics: the numbers of its report, each with its sentence.
#include <string>
#include <string_view>
#include <utility>

#include "runtime/drives/live/live.h"

namespace rocebox {
namespace {

// What the numbers of a port's row in the report mean; its latency is told as a summary.
struct PortNumber {
  std::string_view name, sentence;
  CounterKind kind = CounterKind::kCount;
};
constexpr PortNumber kPortNumbers[] = {
    {"rx_packets", "packets taken from the port"},
    {"tx_packets", "packets that the port took"},
    {"rx_missed", "packets that arrived while the receive queue was full"},
    {"rx_errors", "packets that arrived damaged"},
    {"rx_no_packet", "packets that arrived while the pool was dry"},
    {"rx_other_mac", "packets for another MAC address, and the port is not promiscuous"},
    {"rx_unsent", "packets of the capture that the run did not take"},
    {"pacing_packets", "packets of the capture that came by its schedule"},
    {"pacing_p50_ns", "how late packets of the capture come, against its schedule", CounterKind::kLevel},
    {"pacing_p99_ns", "how late packets of the capture come, against its schedule", CounterKind::kLevel},
    {"pacing_p999_ns", "how late packets of the capture come, against its schedule", CounterKind::kLevel},
    {"pacing_max_ns", "how late packets of the capture come, against its schedule", CounterKind::kPeak},
    {"rx_too_long", "dropped: in more segments than fit into one"},
    {"rx_checksums_finished", "packets whose checksum a host had left to its hardware"},
    {"tx_full", "dropped: the port did not take packets for as long as the buffer lasted"},
    {"tx_too_long", "dropped: a super-packet (TSO) on its way to a port that cannot segment"},
    {"tx_errors", "packets not sent, by the driver's word or since the link was down"},
    {"link_down_events", "times that the link went down, or the interface away"},
};

PortNumber port_number(std::string_view name) {
  for (const PortNumber& known : kPortNumbers)
    if (known.name == name) return known;
  return {name, "a count of the port"};
}

// A device's numbers. The kernel of a link is the link.
void add_device(Metrics& metrics, const Device& device, bool is_link) {
  device.books().for_each_counter([&](const CounterView& counter) {
    Metrics::Labels labels = {{is_link ? "link" : "device", device.name()}};
    std::string prefix = "rocebox_device_";
    if (!counter.kernel.empty()) {
      prefix = "rocebox_kernel_" + std::string(counter.kernel_type) + "_";
      if (!is_link) labels.emplace_back("kernel", counter.kernel);
    } else if (is_link && counter.name != "packets_held") {
      return;  // its kernel counts the same
    } else if (is_link) {
      prefix = "rocebox_link_";
    } else if (!counter.port.empty()) {
      prefix = "rocebox_device_port_";
      labels.emplace_back("port", counter.port);
    }
    metrics.number(counter.kind, prefix + std::string(counter.name), counter.sentence, labels,
                   static_cast<double>(counter.value));
  });
}

}  // namespace

void Live::add_run_metrics(Metrics& metrics, const Json& report) const {
  const Json& run = report["run"];
  auto gauge = [&](const char* name, std::string_view sentence, const char* key, double unit = 1) {
    metrics.gauge(name, sentence, {}, run[key].get<double>() / unit);
  };
  const std::string cores = run["cores"], spread_by = run["spread_by"];
  metrics.info("rocebox_run", "what runs", {{"config", config_.file}, {"cores", cores}, {"spread_by", spread_by}});
  gauge("rocebox_elapsed_seconds", "time since packets began to flow", "elapsed_ns", 1e9);
  gauge("rocebox_pool_in_use_packets", "packets that exist now", "pool_in_use");
  gauge("rocebox_pool_idle_packets", "packets in use by the ports alone, before the first arrived", "pool_idle");
  metrics.counter("rocebox_drop_handover_full", "packets dropped on their way to another shard", {},
                  run["drop_handover_full"].get<double>());
  metrics.counter("rocebox_drop_unbound", "packets that left by device ports that nothing is bound to", {},
                  run["drop_unbound"].get<double>());
  for (const Json& shard : report["shards"]) {
    const std::string number = shard["shard"].dump(), core = shard["core"].dump();
    const Metrics::Labels labels = {{"shard", number}, {"core", core}};
    metrics.counter("rocebox_shard_loops", "looks at the shard's queues", labels, shard["loops"].get<double>());
    metrics.counter("rocebox_shard_busy_seconds", "time in loops that found something to do", labels,
                    shard["busy_ns"].get<double>() / 1e9);
  }
}

void Live::add_port_metrics(Metrics& metrics, const Json& report) const {
  for (std::size_t i = 0; i < ports_.size(); i++) {
    const config::PortName& port = ports_[i]->port();
    const Metrics::Labels labels = {{"device", port.device}, {"port", port.port}};
    const Json& row = report["ports"][i];
    metrics.gauge("rocebox_port_up", "whether the link is up", labels, row["link"] == "up");
    for (const auto& [name, value] : row.items()) {
      if (!value.is_number_integer() || name.starts_with("latency_")) continue;
      const PortNumber number = port_number(name);
      const bool is_time = name.ends_with("_ns");  // OpenMetrics has seconds
      const std::string metric = "rocebox_port_" + (is_time ? name.substr(0, name.size() - 3) + "_seconds" : name);
      metrics.number(number.kind, metric, number.sentence, labels, value.get<double>() / (is_time ? 1e9 : 1));
    }
    metrics.summary("rocebox_port_latency_seconds", "time from arrival at any port until sent by this one, of a sample",
                    labels, port_latency(i));
  }
}

void Live::add_sojourn_metrics(Metrics& metrics) const {
  for_each_sojourn([&](const SojournView& view) {
    Metrics::Labels labels = {{view.link ? "link" : "device", view.name}};
    if (!view.kernel.empty()) labels.emplace_back("kernel", view.kernel);
    if (view.link)
      metrics.summary("rocebox_link_latency_seconds", "time that packets are under way on the link, of a sample",
                      labels, view.times);
    else if (view.kernel.empty())
      metrics.summary("rocebox_device_latency_seconds", "time that packets stay in the device, of a sample", labels,
                      view.times);
    else
      metrics.summary("rocebox_kernel_latency_seconds",
                      "time that packets stay in the kernel, held time included, of a sample", labels, view.times);
  });
}

void Live::add_metrics(Metrics& metrics) const {
  const Json all = report();
  const std::lock_guard lock(observer_);
  add_run_metrics(metrics, all);
  add_port_metrics(metrics, all);
  for (const auto& shard : shards_)
    for (unsigned i = 0; i < shard->testbed().device_count(); i++)
      add_device(metrics, std::as_const(shard->testbed()).device(i), i >= config_.devices.size());
  add_sojourn_metrics(metrics);
}

}  // namespace rocebox
