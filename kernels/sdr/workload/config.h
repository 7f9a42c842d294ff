// SPDX-License-Identifier: BSD-3-Clause
// Options of the workload `sdr_messages`.
#pragma once
#include "kernels/sdr/reliability/parts.h"
#include "nic_model/host/workloads/recovery_options.h"
#include "runtime/component/fields.h"

namespace rocebox::sdr {

struct MessagesConfig {
  void fields(Fields& fields);
  QueuePairOptions queue_pair() const;
  /// `rate`: of the NIC, where `bandwidth` is not said.
  ReliableOptions reliable(std::uint64_t rate) const;
  /// What does not fit together; empty: nothing.
  std::string mistake() const;

  Reliability reliability = Reliability::kSelectiveRepeat;
  std::int64_t messages = 100, in_flight = 4;
  std::uint64_t min_size = 1, max_size = std::uint64_t{1} << 20;
  std::uint64_t mtu = 4096, chunk = 65536, message_bytes = std::uint64_t{16} << 20;
  std::int64_t message_bits = 10, offset_bits = 18, fragment_bits = 4;
  std::int64_t message_ids = 1024, channels = 4, generations = 4, send_batch = 16, backlog = 128;
  bool unreliable = true;
  CodeKind code = CodeKind::kMds;
  std::int64_t data = 32, parity = 8;
  Nanos rtt = 25 * kMillisecond, poll = 0, global_timeout = 60 * kSecond;
  double alpha = 2, beta = 1;
  FallbackTimeout fallback = FallbackTimeout::kDataAndParity;
  std::uint64_t bandwidth = 0;
  std::int64_t ack_timeout = 14, dpa_senders = 0;
  nic_model::RecoveryOptions recovery;
};

}  // namespace rocebox::sdr
