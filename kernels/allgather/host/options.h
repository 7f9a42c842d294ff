// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a team of ranks and its collectives.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/allgather/model/immediate.h"
#include "nic_model/host/workloads/recovery_options.h"
#include "runtime/component/fields.h"
#include "runtime/roce/address.h"

namespace rocebox::allgather {

/// Where a rank that is to fail stops: it takes nothing from its queues any more, while its NIC goes on.
enum class StopAt : std::uint8_t { kNever, kStart, kBarrier, kSending, kRecovery, kHandshake };

/// Multicast by datagrams, or by WRITEs of unreliable connections, which no NIC sells.
enum class Transport : std::uint8_t { kUd, kUc };

/// Who handles what comes: the host, or workers on its NIC's DPA.
enum class Receiver : std::uint8_t { kHost, kDpa };

struct TeamOptions {
  void fields(Fields& fields);

  std::int64_t mtu = 4096;
  std::uint64_t chunk = 0;  ///< UC: bytes; 0: one packet
  std::int64_t subgroups = 1, communicators = 1, outstanding = 1;
  std::int64_t batch = 16, receive_workers = 0, ring_depth = 128;
  std::uint64_t staging = 4 << 20;
  std::int64_t collective_bits = 3, generation_bits = 5;
  std::uint64_t link_rate = 0;  ///< of the cutoff; 0: the NIC's
  Nanos alpha = 100 * kMicrosecond, timeout = kSecond, worker_time = 0;
  std::optional<Nanos> cutoff;  ///< in place of N / B + alpha
  std::optional<roce::IpAddress> group;
  std::int64_t qkey = 0x11111111;
  std::int64_t timeout_exponent = 14, retry_cnt = 7;
  nic_model::RecoveryOptions recovery;  ///< of connections: ring, barrier, copies
  Transport transport = Transport::kUd;
  Receiver receiver = Receiver::kHost;
  Nanos poll = kMicrosecond;
  std::int64_t stop_rank = 0;
  StopAt stop_at = StopAt::kNever;
  std::vector<roce::IpAddress> ranks;  ///< of processes with a rank each; empty: all ranks are here
  std::int64_t port = 18519;           ///< of RDMA CM, where they find each other
  Nanos join_timeout = 60 * kSecond;

  ImmediateLayout layout() const {
    return {static_cast<unsigned>(32 - collective_bits - generation_bits), static_cast<unsigned>(collective_bits),
            static_cast<unsigned>(generation_bits)};
  }
  std::uint32_t chunk_bytes() const { return static_cast<std::uint32_t>(chunk ? chunk : mtu); }
  /// A number of all that processes have to agree upon, and of `more` that their applications have.
  std::uint64_t agreement(std::span<const std::uint64_t> more) const;
  /// The address of a communicator's subgroup: `group`, counted on.
  roce::IpAddress group_of(unsigned communicator, unsigned subgroup) const;
};

}  // namespace rocebox::allgather
