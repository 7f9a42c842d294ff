// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a switch.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "switch_model/packet_generator/config.h"
#include "switch_model/program.h"
#include "switch_model/resources.h"
#include "switch_model/traffic_manager/config.h"

namespace rocebox::switch_model {

/// Packets sent to `group` leave by each of `ports`, but for the one that they came in by.
struct GroupConfig {
  std::int64_t group = 1;
  std::vector<std::string> ports;
};

struct SwitchConfig {
  /// Programs of `registry` can be chosen; it outlives this.
  explicit SwitchConfig(const Registry& registry);
  void fields(Fields& fields);
  /// Ports, rates and programs as a topology says.
  void place(const Placement& placement);
  /// The program of that name; null when there is none.
  const ProgramOptions* find(std::string_view program) const;

  SwitchInfo info;
  std::vector<std::string> programs = {"forward"};
  std::vector<GroupConfig> groups;
  std::vector<ApplicationConfig> applications;
  TrafficManagerConfig traffic_manager;
  Profile profile;
  bool strict = false;
  std::vector<std::string> accept_unjudged;  ///< `program.resource`
  Nanos recirculation_delay = kMicrosecond;
  OptionValues values;  ///< what came out of all these, while a configuration was read

 private:
  bool runs(std::string_view program) const;
  void check_ports(Fields& fields) const;
  void check_programs(Fields& fields) const;
  void mirror_fields(Fields& fields);
  void group_fields(Fields& fields, GroupConfig& group) const;

  std::vector<const Component*> types_;
  std::vector<std::unique_ptr<ProgramOptions>> options_;  // in the order of types_
};

}  // namespace rocebox::switch_model
