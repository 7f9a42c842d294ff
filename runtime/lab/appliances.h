// SPDX-License-Identifier: BSD-3-Clause
// The appliances of a lab while they run: each is one `rocebox run` of this very program.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "runtime/lab/interrupts.h"
#include "runtime/lab/lab_config.h"
#include "runtime/lab/process.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::lab {

class Appliances {
 public:
  /// `folder`: for their reports and what they print. `plugins`: to load for every appliance.
  Appliances(const LabConfig& lab, std::string folder, std::vector<std::string> plugins);
  ~Appliances();
  Appliances(const Appliances&) = delete;
  Appliances& operator=(const Appliances&) = delete;

  /// Starts them and waits until packets flow in all. Throws ConfigError when one refuses what it is given,
  /// std::runtime_error when it fails otherwise or is not ready in time, with what it said; Interrupted.
  void start(Interrupts& interrupts);
  /// Lets them go on without us.
  void leave() { all_.clear(); }

  /// Readable when one ends.
  std::vector<int> descriptors() const;
  /// Why one has ended though nobody asked it to, with what it said; empty: all run.
  std::string why_ended();
  /// Ends them; what went wrong in it is added to `failures`. The second signal that `interrupts` tells of in its life
  /// kills those that still let out what they hold.
  void stop(std::vector<std::string>& failures, Interrupts& interrupts);
  /// Reports of those that have one, by name.
  Json reports() const;

 private:
  struct Running {
    const ApplianceConfig* config;
    Process process;
    int notify;  // the socket that it says READY=1 to; -1: it has
  };
  bool wait_for_end(Nanos deadline, std::vector<std::string>& failures, Interrupts& interrupts);
  void start_one(const ApplianceConfig& appliance, std::size_t number);
  std::string configuration_file(const ApplianceConfig& appliance) const;
  std::string file(const ApplianceConfig& appliance, const char* kind) const;
  std::string said_by(const ApplianceConfig& appliance) const;

  const LabConfig& lab_;
  std::string folder_;
  std::vector<std::string> plugins_;
  std::deque<Running> all_;
};

/// The name of an appliance's run for `rocebox top`.
std::string instance_name(const std::string& lab, const std::string& appliance);
/// Whether its run has that name; one that is too long goes by another.
bool has_instance_name(const std::string& lab, const std::string& appliance);

/// The greatest `drain:` of a lab's appliances, from its folder; what it is when left out, where that is not known.
Nanos drain_in(const std::string& folder);

/// The reports in a lab's folder, by the names of their appliances: of a lab whose configuration need not be known.
Json reports_in(const std::string& folder);

}  // namespace rocebox::lab
