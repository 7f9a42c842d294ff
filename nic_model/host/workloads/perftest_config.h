// SPDX-License-Identifier: BSD-3-Clause
// Options of perftest's workloads. The other end may be in another process: remote_perftest.h.
#pragma once
#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "nic_model/host/workloads/recovery_options.h"
#include "nic_model/limits.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/rate_queue.h"
#include "runtime/kernel/workload.h"
#include "runtime/roce/address.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {

enum class Verb : std::uint8_t { kWrite, kRead, kSend, kAtomic };

/// Whether the response of a message is its answer: nobody at the other end has to send one.
constexpr bool is_answered(Verb verb) { return verb == Verb::kRead || verb == Verb::kAtomic; }

struct PerftestConfig {
  std::optional<roce::IpAddress> address;
  std::int64_t port = 18515;
  std::uint64_t size = 65536, size_max = 0;
  std::int64_t iters = 1000, tx_depth = 128, qp = 1, mtu = 4096, cq_mod = 1, inline_size = 0;
  int connection = 0, atomic_type = 1;
  bool bidirectional = false;
  Nanos duration = 0;
  std::uint64_t rate_limit = 0;
  std::int64_t timeout = 14, traffic_class = 0, outs = 16;
  RecoveryOptions recovery;

  void fields(Fields& f, Verb verb, bool latency);
  ibv_wr_opcode opcode(Verb verb) const;
  /// Bytes of the messages of each queue pair.
  std::vector<std::uint64_t> sizes(std::uint64_t seed) const;
  std::uint64_t largest() const { return size_max ? size_max : size; }
  std::uint64_t cq_entries() const { return static_cast<std::uint64_t>(4 * tx_depth * qp + 64); }
};

}  // namespace rocebox::nic_model
