// SPDX-License-Identifier: BSD-3-Clause
// The repair header (LoWAR, section IV-C, figure 8) on the wire. README.md has it bit by bit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/roce/headers.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

inline constexpr std::uint8_t kVersion = 3;
/// Far apart in bits: the ICRC does not cover the byte that holds it.
inline constexpr std::uint8_t kTypeRepair = 0x5A, kTypeNegotiation = 0xA5;

/// The header as it lies behind UDP.
struct HeaderBytes {
  std::uint8_t opcode;  ///< 0x1F
  roce::Be24 qpn;
  std::uint8_t type;
  std::uint8_t version_flags;  ///< version in the upper half
  roce::Be16 r;
  std::uint8_t c;
  roce::Be24 base_psn;
  std::uint8_t isn;       ///< repair; negotiation: what it is about, NegotiationKind
  std::uint8_t sent;      ///< repair: data packets of the stream before the block; negotiation: 0
  roce::Be16 packets;     ///< repair; negotiation: the serial number of a request
  roce::Be16 last_bytes;  ///< repair; negotiation: data packets of the stream before base_psn
  roce::Be16 hop_sum;
  roce::Be32 set_sum;  ///< repair; negotiation: the token
};
static_assert(sizeof(HeaderBytes) == 24);

/// What lies in front of the coded transport packet: what else it takes to rebuild a packet.
struct CodedPrefix {
  roce::Be16 transport_bytes;  ///< BTH up to and with the ICRC
  roce::Be16 udp_source_port;
  roce::Be32 ip_word;  ///< IPv4: identification, flags, fragment offset; IPv6: traffic class and flow label
  std::uint8_t hop_limit;
  std::uint8_t tos;  ///< IPv4; 0 in IPv6
  roce::Be16 udp_checksum;
};
static_assert(sizeof(CodedPrefix) == 12);

/// What a repair packet has beyond the longest transport packet that it covers.
inline constexpr std::uint32_t kRepairExtraBytes = sizeof(HeaderBytes) + sizeof(CodedPrefix) + roce::kIcrcBytes;

/// (r, c): data packets of a block, and repair packets of one. (0, 0) is uncoded.
struct Coding {
  std::uint16_t r = 0;
  std::uint8_t c = 0;
  constexpr bool off() const { return c == 0; }
  bool operator==(const Coding&) const = default;
};

/// A block of which some packet covers a share: what is common to its repair packets.
struct Block {
  Coding coding;
  std::uint32_t base_psn = 0;
  std::uint16_t packets = 0;     ///< data packets of the block, at most r
  std::uint16_t last_bytes = 0;  ///< transport bytes of the message's last packet, when has_last
  bool has_first = false, has_last = false;
  bool responses = false;  ///< a block of READ responses, whose PSNs are a sequence of their own
  bool anew = false;       ///< it does not continue the block before: what lies between was not coded
  bool operator==(const Block&) const = default;
};

/// A repair packet's header.
struct RepairHeader {
  std::uint32_t qpn = 0;
  Block block;
  std::uint8_t isn = 0;
  std::uint16_t hop_sum = 0;  ///< over what hops may change, see image.h
  std::uint32_t set_sum = 0;  ///< over which packets went in, see image.h
  std::uint8_t sent = 0;      ///< data packets of the stream before the block, modulo 2^8
  bool operator==(const RepairHeader&) const = default;
  /// Whether the packet of this PSN went into it.
  bool covers(std::uint32_t psn) const {
    const auto place = static_cast<std::uint32_t>(roce::psn_distance(psn, block.base_psn));
    return place < block.packets && place % block.coding.c == isn;
  }
};

enum class NegotiationKind : std::uint8_t {
  kAnnounce = 1,  ///< sender to receiver: a sequence begins at base_psn, with (r, c)
  kRequest = 2,   ///< receiver to sender: please code with (r, c)
  kStatus = 3,    ///< sender to receiver: the sequence goes on at base_psn, with (r, c)
};

/// A negotiation packet.
struct NegotiationHeader {
  std::uint32_t qpn = 0;
  NegotiationKind kind = NegotiationKind::kAnnounce;
  Coding coding;
  std::uint32_t base_psn = 0;  ///< request: the PSN that the receiver awaits
  bool responses = false;
  /// Of a request; from the sender, of the last request that it heeded, 0 before the first.
  std::uint16_t serial = 0;
  /// Drawn by the sender for each stream and borne by requests, so that only a receiver that sees the stream's packets
  /// can ask, and no request outlives a restart of the sender. 0: it heeds no requests.
  std::uint32_t token = 0;
  /// Data packets of the stream before base_psn, modulo 2^16; 0 in a request.
  std::uint16_t sent = 0;
  bool operator==(const NegotiationHeader&) const = default;
};

/// Whether a serial number is later than another one; they go round.
constexpr bool is_newer(std::uint16_t serial, std::uint16_t than) {
  return static_cast<std::int16_t>(serial - than) > 0;
}

HeaderBytes encode(const RepairHeader& header);
HeaderBytes encode(const NegotiationHeader& header);

/// Reads a header from `bytes`, which end before the ICRC. Empty when any field is impossible: version, flags, r, c,
/// ISN, packet count, or a length that leaves no room for a coded packet. Only negotiation packets may say (0, 0).
std::optional<RepairHeader> parse_repair(std::span<const std::uint8_t> bytes);
std::optional<NegotiationHeader> parse_negotiation(std::span<const std::uint8_t> bytes);

/// Packets that repair packet `isn` of a block covers.
constexpr unsigned covered(unsigned packets, unsigned c, unsigned isn) {
  return isn < packets ? (packets - isn + c - 1) / c : 0;
}

}  // namespace rocebox::lowar
