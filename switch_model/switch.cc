// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/switch.h"

#include "switch_model/datapath.h"

namespace rocebox {
namespace switch_model {
namespace {

constexpr Example kExamples[] = {{"a learning switch with slow ports, marks and lossless classes",
                                  R"(strict: true
pipes: 2
traffic_manager:
  rate: 1Gbps
  rates: [{ports: [p2], rate: 100Mbps}]
  buffer: 64KiB
  packets: 256
  class_of: dscp
  scheduler: round_robin
  ecn: {min: 4KiB, max: 16KiB, probability: 50%}
  pfc: {classes: [0, 3], xoff: 12KiB, xon: 6KiB}
forward:
  mac_age: 50ms
  mac_entries: 16
)"},
                                 {"static addresses with equal paths, groups, unknown ones dropped",
                                  R"(strict: true
forward:
  learning: false
  unknown: drop
  macs:
    - {mac: 02:00:00:00:00:02, ports: [p1, p2, p3]}
    - {mac: 02:00:00:00:00:01, group: 5}
multicast_groups:
  - {group: 5, ports: [p0, p1, p3]}
)"},
                                 {"packets that the switch makes, among those that come in, through slow ports",
                                  R"(strict: true
pipes: 2
traffic_manager: {rate: 10Gbps}
forward: {macs: [{mac: 02:00:00:00:00:99, ports: [p1]}]}
packet_generator:
  - {port: p0, every: 20us, times: 8, batches: 2, packets: 70, packet_gap: 0, batch_gap: 3us, packet: {destination_mac: 02:00:00:00:00:99}}
  - {port: p3, start: 7us, packets: 60, packet_gap: 2us, packet: {hex: '0200 0000 0001 0200 0000 0009 88b5 00000000'}}
)"},
                                 {nullptr, nullptr}};

}  // namespace
}  // namespace switch_model

KernelType switch_kernel_type() {
  KernelType type = one_way_kernel<switch_model::Datapath>(
      "switch", "a Tofino-style switch: programs over match-action stages, and a traffic manager", 4, 4,
      switch_model::kExamples);
  type.strict_option = "strict";
  return type;
}

}  // namespace rocebox
