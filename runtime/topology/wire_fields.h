// SPDX-License-Identifier: BSD-3-Clause
// Rate and delay of the wires of a tier, as shapes have them.
#pragma once
#include <string>

#include "runtime/component/fields.h"
#include "runtime/kernel/rate_queue.h"
#include "runtime/topology/graph.h"

namespace rocebox::topology {

/// Shows `TIER_rate` and `TIER_delay`.
inline void wire_fields(Fields& f, const std::string& tier, Wire& wire, const std::string& what) {
  f.rate(tier + "_rate", wire.bits_per_second, {kRateMin, kRateMax}, "rate of " + what);
  f.duration(tier + "_delay", wire.delay, {0, kSecond}, "delay of " + what + ", one way");
}

}  // namespace rocebox::topology
