// SPDX-License-Identifier: BSD-3-Clause
// LossRecovery: how a queue pair finds out that packets were lost, and what it sends again.
#pragma once
#include <cstdint>
#include <string_view>

#include "nic_model/limits.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model {

/// How a requester finds out that packets were lost, and what it sends again. All but the first place WRITEs as they
/// come (direct data placement): each packet of a WRITE then has an address of its own.
enum class Recovery : std::uint8_t {
  kGoBackN,  ///< from the PSN that a NAK names; receivers drop what is behind a gap (IB specification, 9.7)
  kRnicSr,   ///< as ConnectX does it (Themis, 2.3): one NAK for each ePSN; that packet and the last sent are sent again
  kSelective,    ///< as IRN does it: each NAK names what has come, too, and what has not is sent again, once
  kTimeoutOnly,  ///< no NAK for what comes out of order
};
inline constexpr std::string_view kRecoveries[] = {"go_back_n", "rnic_sr", "selective", "timeout_only"};

/// As `recovery:` has it.
constexpr std::string_view word_of(Recovery recovery) { return kRecoveries[static_cast<unsigned>(recovery)]; }

/// Of a reliable queue pair. Both ends must have the same `how`. Where that places WRITEs as they come, no end's window
/// should be more than twice the other's: what comes farther ahead than a receiver keeps is dropped and sent again.
struct LossRecovery {
  Recovery how = Recovery::kGoBackN;
  std::uint32_t window = 512;        ///< packets that may be on their way; a receiver takes twice as many ahead
  Nanos retransmission_timeout = 0;  ///< without a response until packets are sent again; 0: as verbs' `timeout` says
  Nanos retransmit_stall = 0;        ///< for which nothing is sent after a packet that was sent again

  bool operator==(const LossRecovery&) const = default;
  /// Whether packets of a WRITE have addresses of their own and are placed as they come.
  bool places_directly() const { return how != Recovery::kGoBackN; }
  bool is_valid() const {
    return how <= Recovery::kTimeoutOnly && window >= 1 && window <= kWindowMax && retransmission_timeout >= 0 &&
           retransmission_timeout <= kRetransmissionTimeoutMax && retransmit_stall >= 0 &&
           retransmit_stall <= kRetransmitStallMax;
  }
};

}  // namespace rocebox::nic_model
