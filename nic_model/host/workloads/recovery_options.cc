// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/recovery_options.h"

#include <fmt/format.h>

#include <array>

namespace rocebox::nic_model {
namespace {

constexpr std::string_view kRecovery = "recovery", kWindow = "window", kTimeout = "retransmission_timeout";
constexpr std::string_view kWords[] = {"nic", kRecoveries[0], kRecoveries[1], kRecoveries[2], kRecoveries[3]};
static_assert(std::size(kWords) == std::size(kRecoveries) + 1);

}  // namespace

void RecoveryOptions::fields(Fields& f) {
  int word = recovery ? static_cast<int>(*recovery) + 1 : 0;
  f.choice(kRecovery, word, kWords,
           "of its reliable connections, as a NIC's option has it; nic: as the hosts' NICs say");
  recovery = word == 0 ? std::nullopt : std::optional(static_cast<Recovery>(word - 1));
  f.integer(kWindow, window, {0, kWindowMax}, "packets of a connection that may be on their way; 0: as the NICs say");
  Nanos time = retransmission_timeout.value_or(0);
  f.duration(kTimeout, time, {0, kRetransmissionTimeoutMax},
             "time without a response after which packets are sent again; 0: as `timeout` says; left out: as the NICs "
             "say");
  if (f.given(kTimeout))
    retransmission_timeout = time;
  else
    f.exclude(kTimeout, "");  // 0 would mean another thing
}

void RecoveryOptions::has_effect(Fields& f, bool has, std::string_view choice, std::string_view why) {
  for (const std::string_view name : {kRecovery, kWindow, kTimeout}) f.has_effect(name, has, choice, why);
}

LossRecovery RecoveryOptions::over(const LossRecovery& nics) const {
  return {recovery.value_or(nics.how), window ? static_cast<std::uint32_t>(window) : nics.window,
          retransmission_timeout.value_or(nics.retransmission_timeout), nics.retransmit_stall};
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
