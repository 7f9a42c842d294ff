// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/component/component.h"

namespace rocebox::scr {
namespace {

namespace dpa = nic_model::dpa;

constexpr std::uint32_t kGuard = 0x53C12025;
constexpr std::string_view kApi[] = {"scr_"};

}  // namespace

Policy::Policy(const std::string& path, std::string_view program, const PolicyOptions& options,
               const std::vector<ParameterValue>& parameters)
    : options_(options),
      program_(path, program, kApi),
      calls_(program_, [](void* policy) { static_cast<Policy*>(policy)->call(); }, this,
             {options.watchdog, options.budget}),
      init_(program_.function<decltype(init_)>("scr_init")),
      handle_(program_.function<decltype(handle_)>("scr_handle")),
      actions_(std::make_unique_for_overwrite<scr_action[]>(actions_max(options.flows))) {
  if (!init_ || !handle_)
    throw ConfigError(fmt::format("`{}` has no {}, which a policy has", path, init_ ? "scr_handle" : "scr_init"));
  read_tables(path);
  take(values_of(parameters));
  node_.line_rate = options.line_rate;
  node_.flows = options.flows;
  node_.actions = actions_.get();
  node_.action_most = actions_max(options.flows);
  node_.guard = kGuard;
  if (!run(Call::kInit) || !is_whole()) throw ConfigError(fmt::format("`{}`: {}", path, error_));
  events_ = node_.events & (2 * SCR_NIC_STATE - 1);
}

void Policy::check(const std::string& path, std::string_view program) { dpa::Program::check(path, program, kApi); }

void Policy::read_tables(const std::string& path) {
  if (const auto* rows = static_cast<const scr_parameter*>(program_.find("scr_parameters")))
    for (; rows->name; rows++) {
      if (parameters_.size() == SCR_PARAMETERS_MAX)
        throw ConfigError(fmt::format("`{}` has more than {} parameters", path, SCR_PARAMETERS_MAX));
      parameters_.push_back(*rows);
    }
  if (const auto* names = static_cast<const char* const*>(program_.find("scr_counters")))
    for (; *names && counters_.size() < SCR_COUNTERS_MAX; names++) counters_.push_back(*names);
}

Policy::Values Policy::values_of(const std::vector<ParameterValue>& given) const {
  Values all;
  for (const scr_parameter& row : parameters_) all.push_back(row.at_first);
  for (const auto& [name, value] : given) {
    const auto one = std::ranges::find(parameters_, std::string_view(name), &scr_parameter::name);
    if (one == parameters_.end()) {
      std::vector<std::string_view> names;
      for (const scr_parameter& row : parameters_) names.emplace_back(row.name);
      throw ConfigError(fmt::format("`{}`: the program has no parameter `{}`, but: {}", program_.name(), name,
                                    fmt::join(names, ", ")));
    }
    if (value < one->least || value > one->most)
      throw ConfigError(fmt::format("`{}`: parameter `{}` is from {} to {}, and not {}", program_.name(), name,
                                    one->least, one->most, value));
    all[static_cast<std::size_t>(one - parameters_.begin())] = value;
  }
  return all;
}

void Policy::call() {
  if (call_ == Call::kHandle) [[likely]]
    return handle_(&node_, &event_);
  init_(&node_);
}

bool Policy::run(Call call) {
  call_ = call;
  if (calls_.run()) [[likely]]
    return true;
  error_ = calls_.why();
  node_.action_count = 0;
  return false;
}

bool Policy::is_whole() {
  if (node_.guard == kGuard && node_.actions == actions_.get() && node_.action_most == actions_max(options_.flows) &&
      node_.action_count <= node_.action_most && node_.flows == options_.flows) [[likely]]
    return true;
  error_ = fmt::format("it wrote where only the NIC does, in an event of kind {}", unsigned{event_.kind});
  node_.action_count = 0;
  return false;
}

void Policy::report(Report& report) const {
  report.text("policy", program_.name());
  if (stopped()) report.text("policy_error", error_);
  report.table("policy_parameters", parameters_.size(), [&](Report& r, std::size_t i) {
    r.text("name", parameters_[i].name);
    r.text("meaning", parameters_[i].text);
    r.count("value", node_.parameters[i]);
  });
  report.object("policy_counters", [&](Report& r) {
    for (std::size_t i = 0; i < counters_.size(); i++)
      r.count(counters_[i], static_cast<std::int64_t>(node_.counters[i]));
  });
}

}  // namespace rocebox::scr
