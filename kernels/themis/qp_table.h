// SPDX-License-Identifier: BSD-3-Clause
// QpTable: the two directions of each connection, as the match tables of the two controls know them.
#pragma once
#include <array>

#include "kernels/themis/destination.h"
#include "runtime/roce/pairing.h"
#include "switch_model/tables/exact_table.h"

namespace rocebox::themis {

using roce::HalfKey;
using switch_model::kMiss;

/// By port, kNoPort too: whether it leads to a NIC of this rack.
using HostPorts = std::array<bool, 256>;

/// One direction of a connection, in both controls. `outbound`: from the NIC in this rack.
struct QpEntry {
  std::uint32_t connection;  ///< number in the control plane
  Slot slot;                 ///< of Themis-S and Themis-D alike
  Port port;                 ///< of the NIC in this rack
  std::uint8_t pipe;         ///< of that port: where its registers are
  std::uint16_t path_mtu;    ///< bytes; 0: not seen yet
  bool outbound;
  bool begun;   ///< inbound: Themis-D has its first PSN
  bool learnt;  ///< the control plane goes on looking whether the pair is right
};

using QpTable = switch_model::ExactTable<HalfKey, QpEntry>;

/// The key of an RC packet.
inline HalfKey key_of(Packet packet) {
  return {roce::addresses(packet), static_cast<std::uint32_t>(roce::bth(packet).destination_qp)};
}

}  // namespace rocebox::themis
