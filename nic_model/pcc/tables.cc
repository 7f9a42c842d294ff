// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nic_model/pcc/include/doca_pcc_dev_data_structures.h"

namespace rocebox::nic_model::pcc {
namespace {

constexpr std::size_t kParametersMax = DOCA_PCC_DEV_MAX_NUM_PARAMS_PER_ALGO;
constexpr std::size_t kCountersMax = DOCA_PCC_DEV_MAX_NUM_COUNTERS_PER_ALGO;
// Of one slot: both arrays, each with a guard behind it.
constexpr std::size_t kSlotWords = kParametersMax + 1 + kCountersMax + 1;
constexpr std::uint8_t kUnassigned = 0x10;  // DOCA_PCC_DEV_SLOT_UNASSIGNED

// As programs say it: the upper half is whose slot it is, 0 or 1 (DOCA_PCC_DEV_ALGO_SLOT).
std::uint32_t slot_of(std::uint32_t said) { return said >> 16 <= 1 ? said & 0xFFFF : said; }

}  // namespace

Tables::Tables() : memory_(kPortsMax * 8 * kSlotWords * sizeof(std::uint32_t)) {
  static_assert(DOCA_PCC_DEV_MAX_NUM_ALGOS == 8 && DOCA_PCC_DEV_MAX_NUM_USER_SLOTS == 8);
  for (auto& of_target : planned_slots_)
    for (auto& of_port : of_target) of_port.fill(kUnassigned);
}

bool Tables::plan(std::uint32_t algorithm, std::uint32_t parameters, std::uint32_t counters) {
  if (!is_open_ || algorithm >= plans_.size() || parameters > kParametersMax || counters > kCountersMax) return false;
  plans_[algorithm] = {parameters, counters, true};
  return has_plan_ = true;
}

bool Tables::plan_slot(std::uint32_t port, std::uint32_t said, std::uint32_t algorithm) {
  const std::uint32_t number = slot_of(said);
  if (!is_open_ || port >= slots_.size() || number >= slots_[0].size()) return false;
  if (algorithm >= algorithms_.size() && algorithm != kUnassigned) return false;
  planned_slots_[said >> 16][port][number] = static_cast<std::uint8_t>(algorithm);
  return has_plan_ = true;
}

bool Tables::is_planned(std::uint32_t algorithm, std::uint32_t parameters, std::uint32_t counters) const {
  if (!has_plan_) return true;
  const Plan& plan = plans_[algorithm];
  return plan.is_there && parameters <= plan.parameters && counters <= plan.counters;
}

bool Tables::declare(std::uint32_t algorithm, std::string text, std::uint32_t parameters, std::uint32_t counters) {
  if (!is_open_ || algorithm >= algorithms_.size() || parameters > kParametersMax || counters > kCountersMax)
    return false;
  if (algorithms_[algorithm].declared || !is_planned(algorithm, parameters, counters)) return false;
  algorithms_[algorithm] = {true, std::move(text), std::vector<Parameter>(parameters),
                            std::vector<std::string>(counters)};
  return true;
}

bool Tables::declare_parameter(std::uint32_t algorithm, std::uint32_t id, Parameter what) {
  if (!is_open_ || algorithm >= algorithms_.size() || id >= algorithms_[algorithm].parameters.size()) return false;
  if (what.least > what.most || what.at_first < what.least || what.at_first > what.most) return false;
  algorithms_[algorithm].parameters[id] = std::move(what);
  return true;
}

bool Tables::declare_counter(std::uint32_t algorithm, std::uint32_t id, std::string text) {
  if (!is_open_ || algorithm >= algorithms_.size() || id >= algorithms_[algorithm].counters.size()) return false;
  algorithms_[algorithm].counters[id] = std::move(text);
  return true;
}

bool Tables::assign(std::uint32_t port, std::uint32_t said, std::uint32_t algorithm, bool enabled) {
  const std::uint32_t number = slot_of(said);
  if (!is_open_ || port >= slots_.size() || number >= slots_[0].size() || algorithm >= algorithms_.size()) return false;
  const Algorithm& of = algorithms_[algorithm];
  if (!of.declared || (has_plan_ && planned_slots_[said >> 16][port][number] != algorithm)) return false;
  Slot& slot = slots_[port][number];
  auto* words = reinterpret_cast<std::uint32_t*>(memory_.data()) + (port * slots_[0].size() + number) * kSlotWords;
  slot = {algorithm, true, enabled, words, words + of.parameters.size() + 1, nullptr, nullptr};
  slot.parameters_guard = slot.parameters + of.parameters.size();
  slot.counters_guard = slot.counters + of.counters.size();
  for (std::size_t i = 0; i < of.parameters.size(); i++) slot.parameters[i] = of.parameters[i].at_first;
  slot.parameters[of.parameters.size()] = kGuard;
  std::fill_n(slot.counters, of.counters.size(), 0);
  slot.counters[of.counters.size()] = kGuard;
  return true;
}

const Tables::Slot* Tables::slot(std::uint32_t port, std::uint32_t said) const {
  const std::uint32_t number = slot_of(said);
  if (port >= slots_.size() || number >= slots_[0].size() || !slots_[port][number].assigned) return nullptr;
  return &slots_[port][number];
}

std::string Tables::refuses(std::uint32_t number, std::uint32_t id, std::uint32_t value) const {
  const Slot* one = slot(0, number);
  if (!one) return fmt::format("the program has nothing in slot {}", number);
  if (id >= parameters(*one))
    return fmt::format("the algorithm in slot {} has {} parameters, from 0 on, and no {}", number, parameters(*one),
                       id);
  const Parameter& what = algorithms_[one->algorithm].parameters[id];
  if (!what.writable) return fmt::format("parameter {} of slot {} is not to be changed", id, number);
  if (value < what.least || value > what.most)
    return fmt::format("parameter {} of slot {} must be from {} to {}, and not {}", id, number, what.least, what.most,
                       value);
  return "";
}

std::vector<ParameterValue> Tables::values_at_first() const {
  std::vector<ParameterValue> all;
  for (std::uint32_t number = 0; number < slots_[0].size(); number++) {
    const Slot* one = slot(0, number);
    for (std::uint32_t id = 0; one && id < parameters(*one); id++) {
      const Parameter& what = algorithms_[one->algorithm].parameters[id];
      if (what.writable) all.push_back({number, id, what.at_first});
    }
  }
  return all;
}

void Tables::report(Report& report) const {
  struct Row {
    std::uint32_t slot, id, value;
    const std::string* text;
  };
  std::vector<Row> parameter_rows, counter_rows;
  for (std::uint32_t number = 0; number < slots_[0].size(); number++) {
    const Slot* one = slot(0, number);
    if (!one) continue;
    const Algorithm& of = algorithms_[one->algorithm];
    for (std::uint32_t id = 0; id < of.parameters.size(); id++)
      parameter_rows.push_back({number, id, one->parameters[id], &of.parameters[id].text});
    for (std::uint32_t id = 0; id < of.counters.size(); id++)
      counter_rows.push_back({number, id, one->counters[id], &of.counters[id]});
  }
  const auto show = [&](const char* name, const std::vector<Row>& rows) {
    report.table(name, rows.size(), [&](Report& r, std::size_t i) {
      r.count("slot_number", rows[i].slot);
      r.count("id_number", rows[i].id);
      r.text("meaning", *rows[i].text);
      r.count("value", rows[i].value);
    });
  };
  show("pcc_parameters", parameter_rows);
  show("pcc_counters", counter_rows);
}

}  // namespace rocebox::nic_model::pcc
