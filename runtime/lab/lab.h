// SPDX-License-Identifier: BSD-3-Clause
// A lab: hosts and appliances on one machine, joined by wires, for as long as it stands.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/lab/appliances.h"
#include "runtime/lab/claim.h"
#include "runtime/lab/interrupts.h"
#include "runtime/lab/lab_config.h"
#include "runtime/lab/machines.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::lab {

class Lab {
 public:
  /// Claims the lab's name. Throws ConfigError when it is in use, or when something is missing here that it takes.
  /// `plugins`: to load for every appliance.
  Lab(const LabConfig& config, const std::vector<std::string>& plugins, Interrupts& interrupts);
  /// Takes down what stands, unless leave() was called.
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  /// Builds everything; packets flow then. Throws ConfigError, std::runtime_error or Interrupted; the destructor clears
  /// away what was built.
  void up();
  /// Runs the traffic, ends the appliances, and takes all down. Returns the report; what went wrong is added to
  /// `failures`. `progress` is told of each command that is about to start.
  Json run(std::vector<std::string>& failures, std::function<void(const TrafficStep&)> progress);
  /// It stands on without us.
  void leave();
  /// How to look at it and into it, for a person.
  std::string how_to_enter() const;

 private:
  void take_down();

  const LabConfig& config_;
  Interrupts& interrupts_;
  std::optional<Claim> claim_;
  std::optional<Machines> machines_;
  std::optional<Appliances> appliances_;
  bool stands_ = false;
};

/// The report of a run that has not begun; `appliances`: theirs, by name.
Json skeleton(const LabConfig& config, Json appliances);

struct TakenDown {
  bool anything = false;  ///< whether there was anything
  unsigned killed = 0;    ///< processes that did not end by themselves
  Json reports;           ///< of the appliances, by name
};
/// Takes down the lab of that name, whatever is left of it and whoever built it; calling it again does nothing. Throws
/// ConfigError when another process has it in hands or when this one is inside, std::runtime_error when something
/// stays behind.
TakenDown take_down(const std::string& lab);

}  // namespace rocebox::lab
