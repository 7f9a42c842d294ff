// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/program.h"

#include <fmt/format.h>

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
  for (const std::string& name : names) check_port(fields, field, name);
}

void SwitchInfo::check_port(Fields& fields, std::string_view field, const std::string& name) const {
  if (name.empty() || find(name) != kNoPort) return;
  fields.refuse(field, fmt::format("names no port of the switch: `{}`{}", name, config::suggestion(name, ports)));
}

}  // namespace rocebox::switch_model
