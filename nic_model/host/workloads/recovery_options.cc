// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/recovery_options.h"

#include <fmt/format.h>

#include <array>

namespace rocebox::nic_model {
namespace {

constexpr std::string_view kRecovery = "recovery", kWindow = "window", kTimeout = "retransmission_timeout",
                           kStall = "retransmit_stall", kAsNic = "nic";
constexpr std::string_view kWords[] = {kAsNic, kRecoveries[0], kRecoveries[1], kRecoveries[2], kRecoveries[3]};
static_assert(std::size(kWords) == std::size(kRecoveries) + 1);

}  // namespace

void RecoveryOptions::fields(Fields& f) {
  int word = recovery ? static_cast<int>(*recovery) + 1 : 0;
  f.choice(kRecovery, word, kWords,
           "of its reliable connections, as a NIC's option has it; nic: as the hosts' NICs say");
  recovery = word == 0 ? std::nullopt : std::optional(static_cast<Recovery>(word - 1));
  f.integer(kWindow, window, {0, kWindowMax}, "packets of a connection that may be on their way; 0: as the NICs say");
  f.duration_or(kTimeout, retransmission_timeout, kAsNic, {0, kRetransmissionTimeoutMax},
                "time without a response after which packets are sent again; 0: as verbs' `timeout` says; nic: as the "
                "NICs say");
  f.duration_or(kStall, retransmit_stall, kAsNic, {0, kRetransmitStallMax},
                "rnic_sr, selective: nothing is sent for so long after a packet that was sent again; nic: as the NICs "
                "say");
  if (recovery)
    f.has_effect(kStall, !retransmit_stall || *recovery == Recovery::kRnicSr || *recovery == Recovery::kSelective,
                 kRecovery, fmt::format("has no effect with `recovery: {}`", word_of(*recovery)));
}

void RecoveryOptions::has_effect(Fields& f, bool has, std::string_view choice, std::string_view why) {
  for (const std::string_view name : {kRecovery, kWindow, kTimeout}) f.has_effect(name, has, choice, why);
  if (!has) f.has_effect(kStall, has, choice, why);  // else fields() has said it
}

LossRecovery RecoveryOptions::over(const LossRecovery& nics) const {
  return {recovery.value_or(nics.how), window ? static_cast<std::uint32_t>(window) : nics.window,
          retransmission_timeout.value_or(nics.retransmission_timeout),
          retransmit_stall.value_or(nics.retransmit_stall)};
}

void RecoveryOptions::apply(Host& host, Qp& qp) const {
  if (qp.is(IBV_QPT_RC)) host.modify_loss_recovery(qp, over(qp.attributes.loss_recovery));
}

void RecoveryOptions::require_possible(const std::string& host, const NicConfig& nic) const {
  if (!nic.credits || !over(nic.loss_recovery()).places_directly()) return;
  throw ConfigError(
      fmt::format("the NIC of `{}` has `credits: true`, which goes with `recovery: go_back_n` only, and the workload "
                  "has `recovery: {}`",
                  host, word_of(*recovery)));
}

}  // namespace rocebox::nic_model
