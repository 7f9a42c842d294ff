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

// The device port by which packets leave that go this way, when there are only two-sided kernels on it (paths have no
// rings); else empty.
std::string port_at(const config::DeviceConfig& device, Edge edge) {
  while (edge.stage >= 0 && device.kernels[static_cast<std::size_t>(edge.stage)].options->shape() == Shape::kTwoSided)
    edge = device.wiring.outputs[static_cast<std::size_t>(edge.stage)][1u - edge.port];
  return edge.stage == Edge::kOutside ? device.wiring.ports[edge.port] : "";
}

// What kernels make must fit, also where `mtu:` was written.
void check_made(const config::DeviceConfig& device, const std::vector<std::unique_ptr<LivePort>>& ports) {
  for (std::size_t i = 0; i < device.kernels.size(); i++)
    for (const MadeDatagrams& made : device.kernels[i].options->made_datagrams()) {
      const DeviceOptions* whole = device.whole();
      const std::string name = whole ? whole->ports()[made.out] : port_at(device, device.wiring.outputs[i][made.out]);
      for (const auto& port : ports)
        if (port->port() == config::PortName{device.name, name} && port->mtu() != 0 && port->mtu() < made.bytes)
          port->refuse(fmt::format("its MTU is {}, and `{}` makes IP packets of up to {} bytes for it: {}", port->mtu(),
                                   device.kernels[i].name, made.bytes, made.mend));
    }
}

}  // namespace

void check_mtus(const config::RunConfig& config, const std::vector<std::unique_ptr<LivePort>>& ports) {
  for (const config::DeviceConfig& device : config.devices) check_made(device, ports);
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
