// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/ingress.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::themis {
namespace {

constexpr unsigned kPortBits = 9;

Layout& ours(Layout& layout) {
  layout.part(kPartOurs);
  return layout;
}

}  // namespace

Ingress::Ingress(const Config& config, const switch_model::Build& build, Shared& shared, ControlPlane& control,
                 Counters& count)
    : shared_(shared),
      control_(control),
      count_(count),
      info_(build.info),
      next_hops_(build.next_hops),
      hops_(ours(build.layout), "next_hop_again", {Gress::kIngress, IngressStage::kNextHop}, build.next_hops.hops,
            kPortBits),
      turned_class_(static_cast<std::uint8_t>(config.turned_class)) {
  build.layout.part(kPartPathMap);
  path_map_ =
      build.layout.registers<std::uint16_t>("path_map", {Gress::kIngress, IngressStage::kPathMap}, shared.paths_max);
  build.layout.part(kPartOurs);
  if (shared_.spray == Spray::kUdpSourcePort && next_hops_.filled)
    ecmp_ = switch_model::forward::flow_hash(build.layout, "ecmp_hash_again", {Gress::kIngress, IngressStage::kHash},
                                             next_hops_);
  if (shared_.spray != Spray::kOff && config.hosts.empty())
    throw ConfigError("program themis: `hosts` names no port: name those that lead to NICs, or write `spray: off`");
  if (shared_.spray != Spray::kOff && !next_hops_.filled)
    throw ConfigError(
        "program themis: it must know the port that program `forward` has chosen, and its equal paths: put `forward` "
        "before it in `programs`, or write `spray: off`");
  set_path_map(config);
  if (shared_.spray == Spray::kEgressPort) {
    build.layout.unused(path_map_, "`spray: egress_port` takes the path by its port");
    if (std::ranges::none_of(next_hops_.groups, [&](const auto& group) { return group.count == config.paths; }))
      build.layout.unused(hops_, "no address or prefix has as many equal paths as `paths`");
  }
  if (ecmp_ && std::ranges::none_of(next_hops_.groups, [](const auto& group) { return group.count > 1; })) {
    build.layout.unused(*ecmp_, "no address or prefix has equal paths");
    build.layout.unused(hops_, "no address or prefix has equal paths");
  }
}

void Ingress::set_path_map(const Config& config) {
  for (unsigned pipe = 0; pipe < info_.pipes; pipe++)
    for (std::uint32_t path = 0; path < config.paths_count(); path++)
      path_map_.operate(pipe, path, [&](std::uint16_t& delta) { delta = config.path_delta(path); });
}

// What the control plane looks at. False: the connection has no slot yet; Themis-D may know of the packet when it
// leaves.
bool Ingress::watched(Pass& pass, PacketState& p, const QpEntry& entry, std::uint32_t number) {
  if (entry.port != switch_model::kNoPort) {
    control_.doubted(pass, p, entry);
    return true;
  }
  control_.first(pass, p, entry);
  if (!entry.outbound && roce::opcode_info(p.packet).has(roce::kIsRequest))
    QpWords::store(p, shared_.word, number, entry.generation);
  return false;
}

// An ACK or NACK of the NIC in this rack whose way out is in another pipe than its data's (figure 8). READ responses go
// their way: those with an AETH must not come behind those without.
void Ingress::turn(PacketState& p, const QpEntry& entry) {
  if (!entry.begun || p.packet.meta().opcode != IBV_OPCODE_RC_ACKNOWLEDGE) return;
  if (p.ingress_port != entry.port || p.egress_port >= info_.port_count() || p.multicast_group) return;
  if (info_.pipe_of(p.egress_port) == entry.pipe) return;
  TaskWord{Task::kTurned, false, p.traffic_class, p.egress_port}.store(p, shared_.word);
  p.traffic_class = turned_class_;
  p.egress_port = p.ingress_port;
  count_.turned.add();
}

}  // namespace rocebox::themis
