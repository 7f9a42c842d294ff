// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/document.h"

namespace rocebox::switch_model {

void SwitchInfo::read_port(Fields& fields, std::string_view field, std::string& name, std::string_view doc) const {
  fields.text(field, name, doc);
  if (name.empty()) fields.refuse(field, "must name a port of the switch");
  check_port(fields, field, name);
}

void SwitchInfo::read_ports(Fields& fields, std::string_view field, std::vector<std::string>& names,
                            std::string_view doc) const {
  fields.texts(field, names, doc);
  for (auto name = names.begin(); name != names.end(); ++name) {
    check_port(fields, field, *name);
    if (std::find(names.begin(), name, *name) != name) fields.refuse(field, fmt::format("names `{}` twice", *name));
  }
}

void SwitchInfo::check_port(Fields& fields, std::string_view field, const std::string& name) const {
  // Not find(): there may be more ports than a switch can have, which is refused elsewhere.
  if (name.empty() || std::ranges::find(ports, name) != ports.end()) return;
  fields.refuse(field, fmt::format("names no port of the switch: `{}`{}", name, config::suggestion(name, ports)));
}

void ProgramOptions::fields(Fields& f) {
  SwitchInfo info;
  info.ports = {"p0", "p1", "p2", "p3"};
  fields(f, info);
}

std::string alone(const Component& self, const char* needs) {
  return fmt::format("{{programs: [{0}]{1}}}", self.name, needs ? fmt::format(", {}: {}", self.name, needs) : "");
}

}  // namespace rocebox::switch_model
