// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/config.h"

namespace rocebox::config {

bool resolve_port(const RunConfig& config, std::string_view name, PortName& port, std::string& why) {
  std::vector<std::string> known;
  std::vector<PortName> matches;
  for (const DeviceConfig& device : config.devices) {
    for (const std::string& p : device.wiring.ports) {
      known.push_back(device.name + "." + p);
      if (name == p || name == known.back()) matches.push_back({device.name, p});
    }
  }
  if (matches.size() == 1) {
    port = matches[0];
    return true;
  }
  why = matches.empty() ? fmt::format("there is no port `{}`{}", name, suggestion(name, known))
                        : fmt::format("port `{}` is in several devices; write `{}`", name, matches[0].text());
  return false;
}

std::vector<PortName> unbound_ports(const RunConfig& config) {
  std::vector<PortName> result;
  for (const DeviceConfig& device : config.devices) {
    for (const std::string& port : device.wiring.ports) {
      const PortName name{device.name, port};
      auto binds = [&](const auto& binding) { return binding.port == name; };
      auto joins = [&](const LinkConfig& link) { return link.between[0] == name || link.between[1] == name; };
      if (std::none_of(config.captures.begin(), config.captures.end(), binds) &&
          std::none_of(config.live_ports.begin(), config.live_ports.end(), binds) &&
          std::none_of(config.links.begin(), config.links.end(), joins))
        result.push_back(name);
    }
  }
  return result;
}

}  // namespace rocebox::config
