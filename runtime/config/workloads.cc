// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "runtime/config/device.h"

namespace rocebox::config {
namespace {

// One that is written wrong could tell of thousands of names.
constexpr std::size_t kMistakesOfRangeMax = 3;

Place place_in(const Node& row, std::string_view key) {
  const Node* node = row.find(key);
  return node ? node->place : row.place;
}

// Where one of a list stands.
Place place_in(const Node& row, std::string_view key, std::size_t item) {
  const Node* node = row.find(key);
  return node && node->kind == Node::Kind::kList && item < node->items.size() ? node->items[item].place
                                                                              : place_in(row, key);
}

// `items`: of the list, of each host. `devices_known`: not where a topology could not be made.
void check_hosts(const WorkloadConfig& workload, const Node& row, const std::vector<std::size_t>& items,
                 const RunConfig& config, bool devices_known, Mistakes& mistakes) {
  std::vector<std::string> known;
  for (const DeviceConfig& device : config.devices) known.push_back(device.name);
  const std::unordered_set<std::string> names(known.begin(), known.end());
  std::unordered_set<std::string> seen;
  std::size_t item = SIZE_MAX, told = 0;
  for (std::size_t i = 0; i < workload.hosts.size(); i++) {
    const std::string& host = workload.hosts[i];
    if (std::exchange(item, items[i]) != items[i]) told = 0;
    if (devices_known && !names.contains(host) && told++ < kMistakesOfRangeMax)
      mistakes.add(place_in(row, "hosts", items[i]),
                   fmt::format("there is no device `{}`{}", host, mistakes.full() ? "" : suggestion(host, known)));
    if (!seen.insert(host).second && told++ < kMistakesOfRangeMax)
      mistakes.add(place_in(row, "hosts", items[i]),
                   fmt::format("workload `{}` names host `{}` twice", workload.name, host));
  }
}

void check_count(const WorkloadConfig& workload, const Node& row, Mistakes& mistakes) {
  const Range<std::int64_t> range = workload.options->hosts();
  const auto count = static_cast<std::int64_t>(workload.hosts.size());
  if (count >= range.low && count <= range.high) return;
  const std::string wanted = range.low == range.high   ? fmt::format("{} hosts", range.low)
                             : range.high == INT64_MAX ? fmt::format("{} hosts at least", range.low)
                                                       : fmt::format("{} to {} hosts", range.low, range.high);
  mistakes.add(
      place_in(row, "hosts"),
      workload.given_hosts || count != 0
          ? fmt::format("workload `{}`, of type `{}`, runs on {}, {} has {}", workload.name, workload.type->name,
                        wanted, workload.given_hosts ? "`hosts:`" : "the topology", count)
          : fmt::format("workload `{}` needs `hosts: [DEVICE, ...]`: there is no topology whose hosts it could "
                        "run on",
                        workload.name));
}

// Whether a workload waits for itself, by way of others.
bool waits_for(const std::vector<WorkloadConfig>& all, const WorkloadConfig& from, const std::string& target,
               std::unordered_set<std::string>& seen) {
  for (const std::string& name : from.after) {
    if (name == target) return true;
    if (!seen.insert(name).second) continue;
    const auto next = std::ranges::find(all, name, &WorkloadConfig::name);
    if (next != all.end() && waits_for(all, *next, target, seen)) return true;
  }
  return false;
}

void check_order(const RunConfig& config, const Node& rows, Mistakes& mistakes) {
  std::vector<std::string> known;
  for (const WorkloadConfig& workload : config.workloads) known.push_back(workload.name);
  for (const WorkloadConfig& workload : config.workloads) {
    const Node& row = *rows.find(workload.name);
    for (std::size_t i = 0; i < workload.after.size(); i++) {
      const auto other = std::ranges::find(config.workloads, workload.after[i], &WorkloadConfig::name);
      if (other != config.workloads.end() && other->background)
        mistakes.add(place_in(row, "after", i),
                     fmt::format("workload `{}` is in the background, and may never finish", workload.after[i]));
      if (std::ranges::find(known, workload.after[i]) == known.end())
        mistakes.add(place_in(row, "after", i), fmt::format("there is no workload `{}`{}", workload.after[i],
                                                            suggestion(workload.after[i], known)));
    }
    std::unordered_set<std::string> seen;
    if (waits_for(config.workloads, workload, workload.name, seen))
      mistakes.add(place_in(row, "after"),
                   fmt::format("workload `{}` would wait for itself, and never start", workload.name));
  }
}

}  // namespace

void add_workloads(const TopFields& top, const Node& root, RunConfig& config, Mistakes& mistakes) {
  const Node* rows = root.find("workloads");
  for (const TopFields::Workload& raw : top.workloads) {
    const Node& row = *rows->find(raw.name);
    check_name(raw.name, row.place, mistakes);
    if (!raw.type) continue;  // a mistake that has been told
    WorkloadConfig workload{raw.name,  row.place, raw.type,  raw.options, raw.values,
                            raw.hosts, false,     raw.start, raw.after,   raw.background};
    workload.given_hosts = !raw.hosts.empty() || !raw.hosts_good;
    if (!workload.given_hosts) workload.hosts = config.topology_hosts;
    // A topology that could not be made has been told of.
    const bool has_topology = root.find("topology");
    const bool devices_known = !has_topology || std::ranges::any_of(config.devices, &DeviceConfig::placed);
    if (workload.given_hosts) check_hosts(workload, row, raw.host_items, config, devices_known, mistakes);
    if (raw.hosts_good && (workload.given_hosts || !workload.hosts.empty() || !has_topology))
      check_count(workload, row, mistakes);
    config.workloads.push_back(std::move(workload));
  }
  if (rows) check_order(config, *rows, mistakes);
  if (!config.workloads.empty() && config.sim.time == 0 &&
      std::ranges::all_of(config.workloads, &WorkloadConfig::background))
    mistakes.add(rows->place, "all workloads are in the background: nothing says when the run ends");
}

}  // namespace rocebox::config
