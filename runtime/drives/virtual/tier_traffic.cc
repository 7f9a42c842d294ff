// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/tier_traffic.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace rocebox {
namespace {

// Starts of workloads: what a table shows. Further ones belong to the last phase.
constexpr std::size_t kPhasesMax = 1024;
constexpr std::string_view kNames[] = {"rx_packets", "rx_bytes", "tx_packets", "tx_bytes"};

// A generated one is called by its tier, with the numbers of its pod or group and its own: pod0_edge3, leaf1. A tier of
// which some are called otherwise has its number.
void name_tier(std::string& tier, const std::string& device, unsigned number) {
  std::string word = device.substr(device.rfind('_') + 1);
  while (!word.empty() && word.back() >= '0' && word.back() <= '9') word.pop_back();
  tier = word.size() > 1 && (tier.empty() || tier == word) ? word : "tier" + std::to_string(number);
}

// Names of a user's own may say the same of two tiers, which then have their numbers.
void tell_apart(std::vector<std::string*>& names) {
  std::map<std::string, unsigned> times;
  for (const std::string* name : names) times[*name]++;
  for (std::size_t i = 0; i < names.size(); i++)
    if (times[*names[i]] > 1) *names[i] = "tier" + std::to_string(i + 1);
}

}  // namespace

TierTraffic::TierTraffic(const config::RunConfig& config, const Testbed& testbed) {
  for (const auto& [name, placement] : config.placements) {
    if (placement.tier == 0) continue;
    if (tiers_.size() < placement.tier) tiers_.resize(placement.tier);
    Tier& tier = tiers_[placement.tier - 1];
    name_tier(tier.name, name, placement.tier);
    tier.switches++;
    tier.ports += placement.ports.size();
    testbed.device(testbed.number(name)).books().for_each_counter([&](const CounterView& view) {
      if (view.port.empty() || !view.kernel.empty() || !view.number) return;
      const auto* which = std::ranges::find(kNames, view.name);
      if (which != std::end(kNames)) tier.counters[static_cast<std::size_t>(which - kNames)].push_back(view.number);
    });
  }
  std::vector<std::string*> names;
  for (Tier& tier : tiers_) names.push_back(&tier.name);
  tell_apart(names);
}

TierTraffic::Sums TierTraffic::Tier::sums() const {
  Sums sums{};
  for (std::size_t i = 0; i < kNumbers; i++)
    for (const CounterValue* counter : counters[i]) sums[i] += counter->read();
  return sums;
}

std::vector<TierTraffic::Sums> TierTraffic::sums() const {
  std::vector<Sums> all;
  for (const Tier& tier : tiers_) all.push_back(tier.sums());
  return all;
}

void TierTraffic::begin_phase(Nanos now, const SimWorkloads& workloads) {
  if (tiers_.empty() || phases_.size() == kPhasesMax) return;
  Phase phase{now, {}, sums()};
  for (const SimWorkloads::Row& row : workloads.rows())
    if (row.due <= now) phase.workloads += (phase.workloads.empty() ? "" : ", ") + row.config->name;
  phases_.push_back(std::move(phase));
}

void TierTraffic::report(Json& report) const {
  if (tiers_.empty()) return;
  const std::vector<Sums> now = sums();
  Json& all = report["tiers"] = Json::object();
  for (std::size_t i = 0; i < tiers_.size(); i++) {
    Json& row = all[tiers_[i].name] = {{"switches", tiers_[i].switches}, {"ports", tiers_[i].ports}};
    for (std::size_t number = 0; number < kNumbers; number++) row[std::string(kNames[number])] = now[i][number];
  }
  Json& rows = report["traffic"] = Json::array();
  double first = 0;
  for (std::size_t i = 0; i < phases_.size(); i++) {
    const std::vector<Sums>& end = i + 1 < phases_.size() ? phases_[i + 1].before : now;
    Json row = {{"at_ns", phases_[i].at}, {"workloads", phases_[i].workloads}};
    std::uint64_t bytes = 0;
    for (std::size_t tier = 0; tier < tiers_.size(); tier++)
      for (const Number number : {kTxBytes, kRxBytes}) {
        const std::uint64_t more = end[tier][number] - phases_[i].before[tier][number];
        row[tiers_[tier].name + "_" + std::string(kNames[number])] = more;
        bytes += more;
      }
    row["port_bytes"] = bytes;
    if (i == 0) first = static_cast<double>(bytes);
    row["ratio"] = first > 0 ? std::round(static_cast<double>(bytes) / first * 1000) / 1000 : 0.0;
    rows.push_back(std::move(row));
  }
}

}  // namespace rocebox
