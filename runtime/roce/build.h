// SPDX-License-Identifier: BSD-3-Clause
// Builders: a whole RoCEv2 frame from named fields, with right lengths, IPv4 checksum, padding and ICRC.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/parse.h"

namespace rocebox::roce {

/// The layers below BTH.
struct Underlay {
  std::array<std::uint8_t, 6> source_mac{0x02, 0, 0, 0, 0, 1}, destination_mac{0x02, 0, 0, 0, 0, 2};
  /// VLAN identifiers, outermost first; 0 is none. Two make QinQ (0x88a8 outside).
  std::array<std::uint16_t, 2> vlans{};
  std::uint8_t ip_version = 4;
  /// IPv4 as ::ffff:a.b.c.d (see ipv4()).
  Addresses addresses{};
  std::uint8_t tos = 0;  ///< DSCP and ECN: IPv4 ToS or IPv6 traffic class
  std::uint8_t ttl = 64;
  std::uint16_t ip_identification = 0;
  std::uint16_t udp_source_port = 0xC000;
  /// IPv4: options, a multiple of 4 bytes up to 40. IPv6: whole extension headers, each a multiple of 8 bytes, of which
  /// the first is of type `ip_extension_type`; the last one's next header becomes UDP.
  std::span<const std::uint8_t> ip_extension;
  std::uint8_t ip_extension_type = 60;  ///< destination options
};

/// One RoCEv2 packet. Extended headers that the opcode does not have are ignored.
struct PacketSpec {
  Underlay underlay;
  std::uint8_t opcode = IBV_OPCODE_RC_SEND_ONLY;
  bool solicited_event = false, mig_req = false, fecn = false, becn = false, ack_req = false;
  std::uint16_t pkey = 0xFFFF;
  std::uint32_t destination_qp = 0, psn = 0;
  std::uint64_t virtual_address = 0;                      // RETH, AtomicETH
  std::uint32_t rkey = 0, dma_length = 0;                 // RETH; rkey: AtomicETH, IETH
  std::uint64_t swap_add = 0, compare = 0, original = 0;  // AtomicETH, AtomicAckETH
  std::uint8_t syndrome = 0;                              // AETH
  std::uint32_t msn = 0;
  std::uint32_t immediate = 0;            // ImmDt
  std::uint32_t qkey = 0, source_qp = 0;  // DETH
  std::span<const std::uint8_t> payload;  // padded to four bytes by build()
};

/// The frame's length in bytes, without FCS.
std::uint32_t built_bytes(const PacketSpec& spec);

/// Writes the frame into `packet`, which has built_bytes(spec) bytes (Context::allocate), parses it and stores
/// the ICRC.
void build(Packet packet, const PacketSpec& spec);

/// The underlay of the way back: MAC and IP addresses swapped, the rest as in `packet`.
Underlay reversed_underlay(Packet packet);

}  // namespace rocebox::roce
