// SPDX-License-Identifier: BSD-3-Clause
// Policy: a program that handles events (include/rocebox_scr.h), loaded, with a copy of its globals and a stack of its
// own. What goes wrong in it stops it, and is named.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/scr/coalescing.h"
#include "kernels/scr/limits.h"
#include "nic_model/dpa/calls.h"
#include "nic_model/dpa/program.h"
#include "runtime/kernel/report.h"
#include "runtime/packet/packet.h"

namespace rocebox::scr {

/// A parameter that is to be other than the program has it.
using ParameterValue = std::pair<std::string, std::int64_t>;

struct PolicyOptions {
  std::uint32_t flows = 0;
  std::uint64_t line_rate = 0;                       ///< bits per second
  Nanos watchdog = 0;                                ///< CPU time that a call may take
  std::int64_t budget = nic_model::dpa::kBlocksMax;  ///< blocks of code that it may run through
};

class Policy {
 public:
  /// `program` is what stands in the file `path`. Throws ConfigError: it cannot be loaded, goes wrong in scr_init, or
  /// has no such parameters.
  Policy(const std::string& path, std::string_view program, const PolicyOptions& options,
         const std::vector<ParameterValue>& parameters);
  /// Throws ConfigError: that is no such program.
  static void check(const std::string& path, std::string_view program);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  /// Bits of the kinds of events that it wants, as SCR_EVENT() has them.
  std::uint32_t events() const { return events_; }
  /// Of all its parameters, in their order.
  using Values = std::vector<std::int64_t>;
  /// What they are when those of `given` are other than the program has them. Throws ConfigError: there are no such, or
  /// they cannot have that value.
  Values values_of(const std::vector<ParameterValue>& given) const;
  /// The program has these from the next event on.
  void take(const Values& values) { std::ranges::copy(values, node_.parameters); }

  /// False: the program has been stopped, now or before. Else actions() is what it asked for.
  bool handle(const Event& event, Nanos now) {
    if (stopped()) return false;
    node_.now = now;
    node_.action_count = 0;
    event_ = event;
    return run(Call::kHandle) && is_whole();
  }
  std::span<const scr_action> actions() const { return {actions_.get(), node_.action_count}; }
  std::uint64_t actions_lost() const { return node_.actions_lost; }

  bool stopped() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void report(Report& report) const;

 private:
  enum class Call : std::uint8_t { kInit, kHandle };
  bool run(Call call);
  void call();
  bool is_whole();
  void read_tables(const std::string& path);

  const PolicyOptions options_;
  nic_model::dpa::Program program_;
  nic_model::dpa::Calls calls_;
  void (*init_)(scr_node*);
  void (*handle_)(scr_node*, const scr_event*);
  std::vector<scr_parameter> parameters_;
  std::vector<const char*> counters_;
  scr_node node_{};
  alignas(64) scr_event event_{};  // a copy, which the program may spoil
  std::unique_ptr<scr_action[]> actions_;
  std::uint32_t events_ = 0;
  Call call_ = Call::kInit;
  std::string error_;
};

}  // namespace rocebox::scr
