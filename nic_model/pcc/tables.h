// SPDX-License-Identifier: BSD-3-Clause
// Tables: the algorithms that a PCC program has declared, and the slots of ports that they stand in, each with
// parameters and counters of its own, which the program reads and writes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nic_model/dpa/guarded_memory.h"
#include "runtime/kernel/report.h"

namespace rocebox::nic_model::pcc {

inline constexpr std::uint32_t kPortsMax = 8;  ///< of the generation of DPAs that has the most

/// What stands at a place of memory that the program must not write: near its contexts and arrays.
inline constexpr std::uint32_t kGuard = 0x6A5D3C17;

/// A parameter of port 0, and what it is to be.
struct ParameterValue {
  std::uint32_t slot = 0, id = 0, value = 0;
};

class Tables {
 public:
  Tables();

  // For the program while it is initialised; false: out of range, or it is not the time.
  /// At most so many has the algorithm; it stands in that slot, or none does (16). Once anything was planned, what was
  /// not is refused.
  bool plan(std::uint32_t algorithm, std::uint32_t parameters, std::uint32_t counters);
  bool plan_slot(std::uint32_t port, std::uint32_t slot, std::uint32_t algorithm);
  bool declare(std::uint32_t algorithm, std::string text, std::uint32_t parameters, std::uint32_t counters);
  struct Parameter {
    std::uint32_t at_first = 0, least = 0, most = 0;
    bool writable = false;
    std::string text;
  };
  bool declare_parameter(std::uint32_t algorithm, std::uint32_t id, Parameter what);
  bool declare_counter(std::uint32_t algorithm, std::uint32_t id, std::string text);
  bool assign(std::uint32_t port, std::uint32_t slot, std::uint32_t algorithm, bool enabled);
  /// Nothing can be declared from here on.
  void close() { is_open_ = false; }

  struct Slot {
    std::uint32_t algorithm = 0;
    bool assigned = false, enabled = false;
    std::uint32_t *parameters = nullptr, *counters = nullptr;
    const std::uint32_t *parameters_guard = nullptr, *counters_guard = nullptr;  // behind them
  };
  /// Null: there is none of that number, or nothing stands there.
  const Slot* slot(std::uint32_t port, std::uint32_t number) const;
  std::uint32_t parameters(const Slot& slot) const {
    return static_cast<std::uint32_t>(algorithms_[slot.algorithm].parameters.size());
  }
  std::uint32_t counters(const Slot& slot) const {
    return static_cast<std::uint32_t>(algorithms_[slot.algorithm].counters.size());
  }
  /// Why the parameter of port 0 cannot have that value; empty: it can.
  std::string refuses(std::uint32_t slot, std::uint32_t id, std::uint32_t value) const;
  /// Of port 0, those that can be changed, as the program had them at first.
  std::vector<ParameterValue> values_at_first() const;
  /// Whether the program has written behind an array of the slot.
  static bool is_overrun(const Slot& slot) {
    return *slot.parameters_guard != kGuard || *slot.counters_guard != kGuard;
  }
  /// Port 0's slots.
  void report(Report& report) const;

 private:
  struct Algorithm {
    bool declared = false;
    std::string text;
    std::vector<Parameter> parameters;
    std::vector<std::string> counters;
  };
  struct Plan {
    std::uint32_t parameters = 0, counters = 0;
    bool is_there = false;
  };
  bool is_planned(std::uint32_t algorithm, std::uint32_t parameters, std::uint32_t counters) const;
  std::array<Plan, 8> plans_;
  // By whose slots they are (DOCA_PCC_DEV_TARGET_APP_...): the slots are the same, what was declared of them is not.
  std::array<std::array<std::array<std::uint8_t, 8>, kPortsMax>, 2> planned_slots_;
  bool has_plan_ = false;
  std::array<Algorithm, 8> algorithms_;
  std::array<std::array<Slot, 8>, kPortsMax> slots_;
  dpa::GuardedMemory memory_;
  bool is_open_ = true;
};

}  // namespace rocebox::nic_model::pcc
