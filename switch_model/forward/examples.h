// SPDX-License-Identifier: BSD-3-Clause
// Options that `rocebox kernels forward` shows and the tests of the contracts run.
#pragma once
#include "runtime/component/component.h"

namespace rocebox::switch_model::forward {

inline constexpr Example kExamples[] = {{"a router in front of three equal paths, flowlets",
                                         R"(strict: true
pipes: 2
forward:
  router_mac: 02:00:00:00:00:02
  routes:
    - {prefix: 10.0.0.0/24, via: [{port: p0, mac: 02:00:00:00:01:00}]}
    - {prefix: 10.0.1.0/24, via: [{port: p1, mac: 02:00:00:00:01:01}, {port: p2, mac: 02:00:00:00:01:02}, {port: p3, mac: 02:00:00:00:01:03}]}
  balance: flowlet
  flowlet_gap: 20us
  flowlet_entries: 16
)"},
                                        {"random packet spray of all that RC carries, bridged",
                                         R"(strict: true
forward:
  macs: [{mac: 02:00:00:00:00:02, ports: [p1, p2, p3]}]
  balance: random
  balance_operations: [write, read, send]
)"},
                                        {"adaptive routing by the least queue, of ports of different rates",
                                         R"(traffic_manager:
  rate: 1Gbps
  rates: [{ports: [p2], rate: 100Mbps}]
  buffer: 64KiB
forward:
  macs: [{mac: 02:00:00:00:00:02, ports: [p1, p2, p3]}]
  balance: least_queue
  balance_operations: [write, read, send]
)"},
                                        {nullptr, nullptr}};

}  // namespace rocebox::switch_model::forward
