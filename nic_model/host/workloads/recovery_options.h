// SPDX-License-Identifier: BSD-3-Clause
// RecoveryOptions: what of loss recovery a workload's reliable connections have otherwise than its hosts' NICs say, so
// that workloads over the same NICs may differ.
#pragma once
#include <optional>

#include "nic_model/host/host.h"
#include "runtime/component/fields.h"

namespace rocebox::nic_model {

struct RecoveryOptions {
  void fields(Fields& f);
  /// Says of each of the options whether it has an effect, as `choice` says.
  static void has_effect(Fields& f, bool has, std::string_view choice, std::string_view why);
  /// What queue pairs have on a host whose NIC says `nics`.
  LossRecovery over(const LossRecovery& nics) const;
  /// Of a queue pair that has just been made or reset; one that is not reliable has none.
  void apply(Host& host, Qp& qp) const;
  /// Throws ConfigError: that NIC cannot recover so.
  void require_possible(const std::string& host, const NicConfig& nic) const;
  /// Packets that a connection may have on their way; 0: as many as the NIC says.
  std::uint32_t packets_in_flight() const { return static_cast<std::uint32_t>(window); }
  bool operator==(const RecoveryOptions&) const = default;

  // None, or of the window 0: the NIC's.
  std::optional<Recovery> recovery{};
  std::int64_t window = 0;
  std::optional<Nanos> retransmission_timeout{}, retransmit_stall{};
};

}  // namespace rocebox::nic_model
