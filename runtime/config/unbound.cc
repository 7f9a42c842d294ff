// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "runtime/config/config.h"

namespace rocebox::config {

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
