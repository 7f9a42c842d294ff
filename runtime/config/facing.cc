// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/facing.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::config {
namespace {

// A kernel, and one of its ports.
struct Side {
  const DeviceConfig* device = nullptr;
  std::size_t kernel = 0;
  Port port = 0;
  std::string name() const { return device->name + "." + device->kernels[kernel].name; }
};

std::string_view side_name(Port port) { return port == 0 ? "left" : "right"; }

class Follower {
 public:
  explicit Follower(const RunConfig& config) : config_(config) {
    for (const DeviceConfig& device : config.devices) steps_max_ += device.kernels.size() + 1;
  }

  // Where what leaves this side gets to a kernel of the same type, through links and other two-sided kernels.
  std::optional<Side> like(const Side& from) const {
    const Component* type = from.device->kernels[from.kernel].type;
    const DeviceConfig* device = from.device;
    Edge edge = device->wiring.outputs[from.kernel][from.port];
    for (std::size_t steps = 0; steps < steps_max_; steps++) {
      if (edge.stage == Edge::kOutside) {
        const std::optional<PortName> other = across({device->name, device->wiring.ports[edge.port]});
        if (!other) return {};
        device = find(other->device);
        if (device->kind) return {};
        const auto& ports = device->wiring.ports;
        edge = device->wiring.inputs[static_cast<std::size_t>(std::ranges::find(ports, other->port) - ports.begin())];
        continue;
      }
      if (edge.stage < 0) return {};
      const auto kernel = static_cast<std::size_t>(edge.stage);
      if (device->kernels[kernel].type == type) return Side{device, kernel, edge.port};
      if (device->kernels[kernel].options->shape() != Shape::kTwoSided) return {};
      edge = device->wiring.outputs[kernel][1u - edge.port];
    }
    return {};
  }

 private:
  std::optional<PortName> across(const PortName& port) const {
    for (const LinkConfig& link : config_.links)
      for (const int side : {0, 1})
        if (link.between[side] == port) return link.between[1 - side];
    return {};
  }
  const DeviceConfig* find(const std::string& name) const {
    return &*std::ranges::find(config_.devices, name, &DeviceConfig::name);
  }
  const RunConfig& config_;
  std::size_t steps_max_ = 1;
};

// `facing`: the port of this kernel that is for its like.
void check_side(const Follower& follower, const Side& mine, Mistakes& mistakes) {
  const Port facing = mine.port, back = static_cast<Port>(1 - facing);
  if (const auto like = follower.like(mine); like && like->port != facing)
    mistakes.add(like->device->place,
                 fmt::format("`{}` stands the wrong way round: what `{}` sends it comes in at its {} side, and is for "
                             "the {} one; turn the path of device `{}` round, from right to left",
                             like->name(), mine.name(), side_name(like->port), side_name(facing), like->device->name));
  const auto like = follower.like({mine.device, mine.kernel, back});
  if (!like || like->port != back || follower.like(mine) || follower.like({like->device, like->kernel, facing})) return;
  if (mine.name() > like->name()) return;  // once for both
  mistakes.add(mine.device->place,
               fmt::format("`{}` and `{}` face each other with their {} sides, and what they send each other leaves "
                           "on the {}: turn both paths round, from right to left (where gateways of two links stand "
                           "back to back, give each a configuration)",
                           mine.name(), like->name(), side_name(back), side_name(facing)));
}

}  // namespace

void check_facing(const RunConfig& config, Mistakes& mistakes) {
  const Follower follower(config);
  for (const DeviceConfig& device : config.devices) {
    if (device.kind) continue;
    for (std::size_t kernel = 0; kernel < device.kernels.size(); kernel++) {
      if (device.kernels[kernel].options->shape() != Shape::kTwoSided) continue;
      if (const auto port = device.kernels[kernel].options->faces_its_like())
        check_side(follower, {&device, kernel, *port}, mistakes);
    }
  }
}

}  // namespace rocebox::config
