// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/mtus.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace rocebox {
namespace {

// A name for each device that all devices which links join it to bear too.
std::map<std::string, std::string> islands(const config::RunConfig& config) {
  std::map<std::string, std::string> island;
  for (const config::DeviceConfig& device : config.devices) island[device.name] = device.name;
  for (const config::LinkConfig& link : config.links) {
    const std::string from = island[link.between[0].device], to = island[link.between[1].device];
    for (auto& [device, name] : island)
      if (name == from) name = to;
  }
  return island;
}

}  // namespace

void check_mtus(const config::RunConfig& config, const std::vector<std::unique_ptr<LivePort>>& ports) {
  auto island = islands(config);
  for (const auto& small : ports) {
    if (small->mtu() == 0 || small->settings().mtu != 0) continue;
    for (const auto& large : ports)
      if (large->mtu() > small->mtu() && island[large->port().device] == island[small->port().device])
        small->refuse(
            fmt::format("its MTU is {}, and that of port `{}` ({}) is {}, so longer packets would be lost "
                        "here; set both alike, or write `mtu: {}` here when that is meant",
                        small->mtu(), large->port().text(), large->text(), large->mtu(), small->mtu()));
  }
}

}  // namespace rocebox
