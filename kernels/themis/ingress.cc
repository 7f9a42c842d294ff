// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/ingress.h"

#include <fmt/format.h>

namespace rocebox::themis {

Ingress::Ingress(const Config& config, const switch_model::Build& build, Shared& shared, ControlPlane& control,
                 Counters& count)
    : shared_(shared), control_(control), count_(count), info_(build.info), next_hops_(build.next_hops) {
  build.layout.part(kPartPathMap);
  path_map_ = build.layout.registers<std::uint16_t>("path_map", {Gress::kIngress, shared.source.next_stage()},
                                                    shared.paths_max);
  if (shared_.spray == Spray::kEgressPort && !next_hops_.filled)
    throw ConfigError(
        "program themis: `spray: egress_port` chooses among the equal paths of program `forward`: put `forward` before "
        "it in `programs`");
  set_path_map(config);
}

void Ingress::set_path_map(const Config& config) {
  for (unsigned pipe = 0; pipe < info_.pipes; pipe++)
    for (std::uint32_t path = 0; path < config.paths_count(); path++)
      path_map_.operate(pipe, path, [&](std::uint16_t& delta) { delta = config.path_delta(path); });
}

// An answer of the NIC in this rack whose way out is in another pipe than its data's (figure 8).
void Ingress::turn(PacketState& p, const QpEntry& entry) {
  if (p.ingress_port != entry.port || p.egress_port >= info_.port_count() || p.multicast_group) return;
  if (info_.pipe_of(p.egress_port) == entry.pipe) return;
  TaskWord{Task::kTurned, false, p.egress_port}.store(p, shared_.word);
  p.egress_port = p.ingress_port;
  count_.turned.add();
}

void Ingress::change_source_port(PacketState& p, std::uint16_t delta) {
  const auto* udp = p.packet.header<roce::Udp>(p.packet.meta().udp_offset);
  roce::edit_number<2>(p.packet, p.packet.meta().udp_offset, udp->source_port ^ delta);
}

}  // namespace rocebox::themis
