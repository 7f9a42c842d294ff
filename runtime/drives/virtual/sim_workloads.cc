// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/sim_workloads.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/pipeline_device.h"

namespace rocebox {

SimWorkloads::SimWorkloads(const config::RunConfig& config, Testbed& testbed, Nanos begin)
    : waited_for_(
          static_cast<std::size_t>(std::ranges::count(config.workloads, false, &config::WorkloadConfig::background))),
      unfinished_(waited_for_) {
  for (unsigned i = 0; i < config.devices.size(); i++)
    if (HostSide* host = testbed.device(i).host_side())
      host->set_waker([&fabric = testbed.fabric(), i] { fabric.wake(i); });
  config::Mistakes mistakes = config.further_mistakes();
  for (const config::WorkloadConfig& workload : config.workloads)
    rows_.push_back(make(config, workload, testbed, mistakes));
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  join(begin);
}

SimWorkloads::Row SimWorkloads::make(const config::RunConfig& config, const config::WorkloadConfig& workload,
                                     Testbed& testbed, config::Mistakes& mistakes) {
  Row row{.config = &workload, .workload = nullptr, .hosts = {}, .dependents = {}};
  std::vector<WorkloadHost> hosts;
  const std::size_t before = mistakes.count();
  for (const std::string& name : workload.hosts) {
    const unsigned device = testbed.number(name);
    HostSide* const side = testbed.device(device).host_side();
    if (!side)
      mistakes.add(
          workload.place,
          fmt::format("workload `{}` cannot run on device `{}`, which has no host behind it: "
                      "it is a {}",
                      workload.name, name, config.devices[device].kind ? config.devices[device].kind->name : "bump"));
    row.hosts.push_back(device);
    hosts.push_back({name, side});
  }
  if (mistakes.count() != before) return row;
  const std::uint64_t seed = stream_seed(static_cast<std::uint64_t>(config.seed), "workloads", workload.name);
  try {
    row.workload = workload.options->make(hosts, seed);
  } catch (const ConfigError& error) {
    mistakes.add(workload.place, fmt::format("workload `{}`: {}", workload.name, error.what()));
  }
  return row;
}

void SimWorkloads::join(Nanos begin) {
  for (unsigned i = 0; i < rows_.size(); i++) {
    rows_[i].workload->set_on_finished([this, i](Nanos now) { on_finished(i, now); });
    for (const std::string& name : rows_[i].config->after) {
      const auto other = std::ranges::find_if(rows_, [&](const Row& row) { return row.config->name == name; });
      if (std::ranges::find(other->dependents, i) != other->dependents.end()) continue;  // named twice
      other->dependents.push_back(i);
      rows_[i].waits_for++;
    }
  }
  for (Row& row : rows_)
    if (row.waits_for == 0)
      set_due(row, begin);
    else
      waiting_++;
}

void SimWorkloads::set_due(Row& row, Nanos now) {
  row.due = now + row.config->start;
  next_start_ = std::min(next_start_, row.due);
}

void SimWorkloads::start_due(Nanos now) {
  // One that finishes while it starts makes others due, which come in another call.
  std::vector<unsigned> due;
  for (unsigned i = 0; i < rows_.size(); i++)
    if (rows_[i].due <= now) due.push_back(i);
  for (const unsigned i : due) rows_[i].due = kNever;
  next_start_ = kNever;
  for (const Row& row : rows_) next_start_ = std::min(next_start_, row.due);
  for (const unsigned i : due) {
    rows_[i].started = now;
    rows_[i].workload->start(now);
  }
}

void SimWorkloads::start_no_more() {
  for (Row& row : rows_) row.due = kNever;
  next_start_ = kNever;
}

void SimWorkloads::on_finished(unsigned row, Nanos now) {
  if (rows_[row].finished != kNever) broken("a workload finished twice", rows_[row].config->name, row);
  rows_[row].finished = now;
  if (!rows_[row].config->background) {
    finished_at_ = std::max(finished_at_, now);
    unfinished_--;
  }
  for (const unsigned next : rows_[row].dependents)
    if (--rows_[next].waits_for == 0) {
      set_due(rows_[next], now);
      waiting_--;
    }
}

// Where a run ends as soon as others have finished, those in the background must not be ahead of that.
bool SimWorkloads::hosts_act_alone() const {
  return std::ranges::all_of(rows_, [this](const Row& row) {
    if (is_cut_off(row)) return false;
    return row.started == kNever || row.workload->hosts_act_alone();
  });
}

bool SimWorkloads::any_goes_on() const {
  return std::ranges::any_of(rows_, [](const Row& row) { return row.started != kNever && row.finished == kNever; });
}

// Those in the background do not count: while they advance, what the run waits for may be stuck.
bool SimWorkloads::is_watched(const Row& row) const {
  return row.started != kNever && (!row.config->background || waited_for_ == 0);
}

Carrier::Share SimWorkloads::share_carried() const {
  Carrier::Share sum;
  for (const Row& row : rows_) {
    if (row.config->background) continue;
    const auto* carrier = dynamic_cast<const Carrier*>(row.workload.get());
    const Carrier::Share one = carrier ? carrier->share_carried() : Carrier::Share();
    if (one.of == 0 && row.finished == kNever) return {};
    sum.bytes += row.finished == kNever ? one.bytes : one.of;
    sum.of += one.of;
  }
  return sum;
}

Progress SimWorkloads::progress() const {
  Progress sum;
  for (const Row& row : rows_) {
    if (!is_watched(row)) continue;
    const Progress one = row.workload->progress();
    sum.add(one.steps + 1, row.finished == kNever ? one.waits_until : 0);
  }
  return sum;
}

std::string workload_error(const Json& details) {
  const auto error = details.find("error");
  return error != details.end() && error->is_string() ? error->get<std::string>() : "";
}

std::vector<std::string> failed_workloads(const Json& report, const Expectations& expectations) {
  std::vector<std::string> lines;
  const Json workloads = report.value("workloads", Json::object());
  for (const auto& [name, workload] : workloads.items()) {
    const std::string error = workload_error(workload.value("details", Json::object()));
    if (!error.empty() && !expectations.accept(fmt::format("workloads.{}.failed", name), report))
      lines.push_back(fmt::format("{}: workload `{}` failed: {}", report["config"].get<std::string>(), name, error));
  }
  return lines;
}

}  // namespace rocebox
