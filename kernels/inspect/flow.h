// SPDX-License-Identifier: BSD-3-Clause
// What is kept of one flow: source and destination address, destination QPN, service.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/inspect/event_log.h"
#include "kernels/inspect/psn_tracker.h"
#include "kernels/inspect/uc_receiver.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/parse.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox::inspect {

/// A flow's name.
struct FlowKey {
  roce::Addresses addresses;
  std::uint32_t qpn_service;  ///< destination QPN, and the service in the upper byte

  static FlowKey of(const roce::Addresses& addresses, std::uint32_t qpn, roce::Service service) {
    return {addresses, qpn | static_cast<std::uint32_t>(service) << 24};
  }
  std::uint32_t qpn() const { return qpn_service & 0xFFFFFF; }
  roce::Service service() const { return static_cast<roce::Service>(qpn_service >> 24); }
};

/// Opcodes of one service by their lower five bits, and one place for CNPs.
inline constexpr unsigned kOpcodeSlots = 33, kCnpSlot = 32;
/// NAK codes of table 46, and one place for reserved ones.
inline constexpr unsigned kNakSlots = 6;

/// Zero bytes when new: the table of flows is memory that is touched when a flow appears.
struct alignas(64) Flow {
  // One cache line that every packet writes.
  std::uint64_t packets = 0, bytes = 0, payload_bytes = 0;
  Nanos first_time = 0, last_time = 0;
  std::uint32_t direction = 0;        ///< number in Pairing; Pairing::kNone: not an RC flow, or no room
  std::uint32_t address_pair = 0;     ///< number of the unordered address pair
  std::uint32_t open_read_bytes = 0;  ///< the READ request with the highest PSN: its length, until its PSNs are known
  std::uint16_t pmtu = 0;             ///< payload bytes of full packets; 0: not known
  bool pmtu_inferred = false;         ///< from the PSN behind a READ request, not from a payload
  bool open_read_unsized = false;     ///< the READ request with the highest PSN: its length is not held
  IdEvidence ids;

  alignas(64) PsnStream requests;
  alignas(64) PsnStream responses;
  std::array<std::uint64_t, kOpcodeSlots> opcodes{};
  std::array<std::uint64_t, 4> ecn{};  ///< by codepoint
  std::uint64_t fecn = 0, becn = 0;
  std::uint64_t acks = 0, rnr_naks = 0, cnps = 0, icrc_failures = 0, icrc_unverified = 0;
  std::array<std::uint64_t, kNakSlots> naks{};
  std::uint64_t trimmed = 0;
  /// Packets whose AETH, RETH or DETH is not held.
  std::uint64_t aeth_unknown = 0, reth_unknown = 0, deth_unknown = 0;
  Nanos rnr_timer_min = 0, rnr_timer_max = 0;  ///< that RNR NAKs asked for
  EventLog log;
  UcReceiver uc;
  Histogram rtt, completion;
};

/// Messages of UC are those that a receiver gets; of RC and UD those whose end was seen.
inline std::uint64_t messages_of(const FlowKey& key, const Flow& flow) {
  return key.service() == roce::Service::kUc ? flow.uc.delivered.count : flow.requests.messages;
}

/// A sending UD QP: it numbers its datagrams to all destinations in one PSN space.
struct SenderKey {
  std::array<std::uint8_t, 16> source;
  std::uint32_t qpn;
};
struct alignas(64) Sender {
  std::uint64_t packets = 0;
  IdEvidence ids;
  PsnStream datagrams;
};

/// Both streams' rings of one flow lie side by side.
inline constexpr unsigned kStreams = 2;

}  // namespace rocebox::inspect
