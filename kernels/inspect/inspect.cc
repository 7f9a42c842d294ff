// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/inspect.h"

#include "kernels/inspect/inspector.h"

namespace rocebox {
namespace {

constexpr Example kInspectExamples[] = {
    {"default", "{}"},
    {"limits reached: few flows, a short memory", "{flows: 2, window: 64, retransmit_after: 100us, events: 2}"},
    {"known connections, fixed path MTU, ICRC not checked",
     "{mtu: 1024, check_icrc: false, pairs: [{a: 10.0.0.1, a_qpn: 0x11, b: 10.0.0.2, b_qpn: "
     "0x12}]}"},
    {nullptr, nullptr},
};

}  // namespace

Component inspect_component() {
  return two_sided_kernel<inspect::Inspector>(
      "inspect", "flow statistics of RoCEv2: loss, retransmission, reordering, round trips, goodput", kInspectExamples);
}

}  // namespace rocebox
