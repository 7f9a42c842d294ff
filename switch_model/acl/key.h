// SPDX-License-Identifier: BSD-3-Clause
// Key: what an access list looks at in a packet.
#pragma once
#include <array>
#include <cstdint>

#include "switch_model/packet_state.h"

namespace rocebox::switch_model::acl {

/// What a packet has; where it has not, the key's field is 0.
inline constexpr std::uint8_t kTcp = 6;  // IP protocol
inline constexpr std::uint8_t kIsIp = 1, kHasPorts = 2, kHasBth = 4, kHasQp = 8;

/// One row of the ternary table: 512 bits. Numbers in network order.
struct Key {
  std::uint8_t ingress_port = 0;
  std::uint8_t ip_version = 0;  ///< 4 or 6
  std::uint8_t flags = 0;
  std::uint8_t tos = 0;                     ///< DSCP and ECN
  std::array<std::uint8_t, 2> ethertype{};  ///< behind the VLAN tags
  std::array<std::uint8_t, 2> vlan{};       ///< identifier of the outermost tag
  std::array<std::uint8_t, 6> destination_mac{}, source_mac{};
  std::array<std::uint8_t, 16> source{}, destination{};           ///< IPv4: in the last four bytes
  std::array<std::uint8_t, 2> source_port{}, destination_port{};  ///< TCP, UDP; not of later fragments
  std::uint8_t protocol = 0;
  std::uint8_t opcode = 0;                       ///< BTH
  std::array<std::uint8_t, 3> destination_qp{};  ///< BTH
  std::array<std::uint8_t, 3> spare{};
};
static_assert(sizeof(Key) == 64, "what rte_acl's keys are made of here: 16 words");

/// The key of a packet as it stands in ingress.
void read_key(const PacketState& p, Key& key);

}  // namespace rocebox::switch_model::acl
