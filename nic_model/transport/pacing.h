// SPDX-License-Identifier: BSD-3-Clause
// How a queue pair keeps to its rate: Requester::pace() and Responder::pace().
#pragma once
#include <algorithm>

#include "nic_model/config.h"

namespace rocebox::nic_model {

/// How late a packet may leave for the next one not to be later, in ns: the bucket of the queue pair, and at least what
/// the port needs for the packets of others whose turn it was when its time came, which may be some at once. A queue
/// pair would lose that much of its rate with each packet else, 25% of it at 75 of 100 Gbps.
inline Nanos most_saved(const NicConfig& config, std::uint32_t wire_bytes, double nanos_per_byte) {
  constexpr double kTurns = 4;
  const double bucket = static_cast<double>(config.limiter.qp_burst) * nanos_per_byte;
  const double turns = config.rate ? kTurns * wire_bytes * 8e9 / static_cast<double>(config.rate) : 0;
  return static_cast<Nanos>(std::max(bucket, turns));
}

}  // namespace rocebox::nic_model
