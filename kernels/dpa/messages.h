// SPDX-License-Identifier: BSD-3-Clause
// Messages: what packets that pass would complete at the receiver's NIC: a message's last packet, once, when all of it
// has come.
#pragma once
#include <cstdint>

#include "kernels/dpa/counters.h"
#include "kernels/dpa/limits.h"
#include "runtime/flows/flow_table.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/parse.h"

namespace rocebox::dpa_observer {

/// A queue pair and one who sends to it.
struct FlowKey {
  roce::Addresses addresses;
  std::uint32_t qpn;
  std::uint32_t service;
};

/// How far its messages have come.
struct Flow {
  std::uint32_t expected;  ///< PSN
  std::uint32_t bytes;     ///< of the message that goes on
  std::uint32_t stray;     ///< packets in a row that were not taken
  std::uint16_t thread;    ///< that gets its CQEs
  std::uint16_t buffer;    ///< receive that the message goes into: its number, as in the CQE
  bool is_synced;          ///< `expected` is known
  bool is_open;            ///< a message goes on
  bool may_skip;           ///< a READ took PSNs, how many is not known
};

class Messages {
 public:
  static constexpr std::uint32_t kNone = flows::FlowTable<FlowKey>::kNone;

  Messages(std::uint32_t flows, std::uint32_t threads, Counters& counters)
      : table_(flows), flows_(table_.capacity()), threads_(threads), counters_(counters) {}

  /// The flow of a packet with BTH; null: there is no room for it.
  Flow* find(Packet packet);
  /// Whether the request is the next of its flow, so that a responder here takes it.
  bool takes(Flow& flow, Packet packet);

 private:
  bool takes_rc(Flow& flow, const roce::OpcodeInfo& info, std::uint32_t psn);
  bool takes_uc(Flow& flow, const roce::OpcodeInfo& info, std::uint32_t psn);

  flows::FlowTable<FlowKey> table_;
  flows::ZeroedArray<Flow> flows_;
  std::uint32_t threads_, next_thread_ = 0;
  Counters& counters_;
};

}  // namespace rocebox::dpa_observer
