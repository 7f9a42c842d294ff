// SPDX-License-Identifier: BSD-3-Clause
// What both controls of Themis use: tables, registers, and the words that a packet carries from ingress to egress.
#pragma once
#include "kernels/themis/control_plane.h"
#include "kernels/themis/nack_packet.h"
#include "kernels/themis/responses.h"
#include "switch_model/next_hops.h"

namespace rocebox::themis {

/// What ingress asks of egress, and an egress control of the mirror that it makes: the first of the program's words.
enum class Task : std::uint8_t {
  kNone,
  kTurned,  ///< an ACK or NACK at its ingress port, to be judged in the pipe of its data; its way out stands beside
  kRecirculate,  ///< a NACK that must pass ingress in the pipe of its requests
  kGenerate,     ///< the mirror is to become a NACK
};

/// The words of a packet: task, flag, class and port; then, of one that goes from ingress to egress, its QP; of a
/// mirror, ePSN, QPN and AETH of the NACK to be made.
inline constexpr unsigned kTaskWords = 4;
struct TaskWord {
  Task task = Task::kNone;
  bool avoid = false;
  std::uint8_t traffic_class = 0;  ///< kTurned: its own
  Port exit = 0;

  static TaskWord of(const PacketState& p, unsigned word) {
    const std::uint32_t bits = p.metadata[word];
    return {static_cast<Task>(bits & 0xFF), (bits & 0x100) != 0, static_cast<std::uint8_t>(bits >> 9 & 7),
            static_cast<Port>(bits >> 16)};
  }
  void store(PacketState& p, unsigned word) const {
    p.metadata[word] = static_cast<std::uint32_t>(task) | (avoid ? 0x100u : 0u) | std::uint32_t{traffic_class} << 9 |
                       std::uint32_t{exit} << 16;
  }
};

/// The QP of a packet for the egress control, in the second and third word: the entry of QpTable plus one (0: egress
/// has nothing to do with the packet), and its generation: the packet may wait in a queue for longer than its
/// connection is.
struct QpWords {
  static void store(PacketState& p, unsigned word, std::uint32_t entry, std::uint32_t generation) {
    p.metadata[word + 1] = entry + 1;
    p.metadata[word + 2] = generation;
  }
  static void clear(PacketState& p, unsigned word) { p.metadata[word + 1] = 0; }
  static bool any(const PacketState& p, unsigned word) { return p.metadata[word + 1] != 0; }
  static std::uint32_t entry(const PacketState& p, unsigned word) { return p.metadata[word + 1] - 1; }
  static std::uint32_t generation(const PacketState& p, unsigned word) { return p.metadata[word + 2]; }
};

struct Shared {
  Shared(const Config& config, const switch_model::Build& build)
      : word(build.layout.metadata(kTaskWords)),
        spray(config.spray),
        sprayed(config.sprayed_opcodes()),
        avoidance_mask(themis::avoidance_mask(config.path_avoidance_bit)),
        is_host(host_ports(config, build.info)),
        paths_max(config.paths_max_count()),
        ingress_qps(ours(build), "qps_ingress", {Gress::kIngress, IngressStage::kQp}, table_entries(config), 2),
        hits(build.layout.registers<bool>("qp_hits", {Gress::kIngress, IngressStage::kNack},
                                          static_cast<std::uint64_t>(config.qps), 1)),
        egress_qps(build.layout, "qps_egress", {Gress::kEgress, EgressStage::kQp}, ingress_qps.rows(), QpEntry::kBits,
                   2),
        destination(
            {slots(config, build), paths_max, config.paths_count(), static_cast<std::uint32_t>(config.window),
             static_cast<std::uint32_t>(config.ooo_threshold), config.has("path_check"), config.has("lazy_dropping")},
            build.layout),
        source({slots(config, build), paths_max, config.paths_count(),
                static_cast<std::uint32_t>(config.avoidance_window), config.reroute_timeouts, config.has("rerouting")},
               build.layout) {}

  static Layout& ours(const switch_model::Build& build) {
    build.layout.part(kPartOurs);
    return build.layout;
  }
  static std::uint32_t slots(const Config& config, const switch_model::Build& build) {
    return config.slots_per_pipe(build.info);
  }
  // Both directions of each; rte_hash needs room beside to find a place for each.
  static std::uint32_t table_entries(const Config& config) {
    return static_cast<std::uint32_t>(2 * config.qps + 2 * switch_model::kPipesMax);
  }

  static HostPorts host_ports(const Config& config, const switch_model::SwitchInfo& info) {
    HostPorts is_host{};
    for (const std::string& host : config.hosts) is_host[info.find(host)] = true;
    return is_host;
  }

  const unsigned word;  ///< the first of the program's words of a packet
  const Spray spray;
  const std::array<bool, 256> sprayed;  ///< by opcode
  const std::uint8_t avoidance_mask;    ///< of a Path Avoidance Signal, in BTH's byte 4
  const HostPorts is_host;
  const std::uint32_t paths_max;  ///< sizes the arrays
  QpTable ingress_qps;
  RegisterArray<bool> hits;
  QpIndex egress_qps;
  Destination destination;
  Source source;
};

}  // namespace rocebox::themis
