// SPDX-License-Identifier: BSD-3-Clause
// Parse once at ingress; later code trusts the offsets in the metadata.
#pragma once
#include <emmintrin.h>

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/packet/packet.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::roce {

/// Fills the parse fields of packet.meta(): status, offsets, opcode, payload length. Reads only the bytes held;
/// identity, arrival, input and wire_bytes are left alone. Total on all inputs. Who changes a packet's headers or
/// length parses it again, or makes its status kUnparsed: nobody after him looks whether the metadata is true.
void parse(Packet packet);
void parse(std::span<const Packet> packets);
/// Those whose status is kUnparsed; the others come from a device that has parsed them.
void parse_new(std::span<const Packet> packets);

constexpr PacketClass class_of(ParseStatus status) {
  if (status == ParseStatus::kRoce) return PacketClass::kRoce;
  if (status <= ParseStatus::kRoceV1) return PacketClass::kOther;
  if (status <= ParseStatus::kLaterFragment) return PacketClass::kFragment;
  if (status <= ParseStatus::kShorterThanIpLength) return PacketClass::kTruncated;
  if (status <= ParseStatus::kReservedOpcode) return PacketClass::kUnsupported;
  return PacketClass::kMalformed;
}

/// A counter name (`bad_udp_length`) and a sentence for each status.
std::string_view parse_status_name(ParseStatus status);
std::string_view parse_status_sentence(ParseStatus status);

inline bool is_roce(Packet packet) { return packet.meta().status == ParseStatus::kRoce; }

/// The whole BTH is held and the lengths are known, whatever was snapped behind it.
inline bool has_whole_lengths(Packet packet) {
  return is_roce(packet) || packet.meta().status == ParseStatus::kSnappedExtension;
}

/// A switch cut the packet behind its BTH, as packet trimming does (NDP, UEC): the frame ends before
/// its datagram does; or, when the switch put the lengths right, the datagram has no room for what its opcode carries.
inline bool is_trimmed(Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (meta.bth_offset == 0) return false;
  return meta.status == ParseStatus::kShorterThanIpLength ||
         (meta.status == ParseStatus::kNoRoomForExtension && opcode_info(meta.opcode).has(kHasPayload));
}

// Views for a packet whose bth_offset is not 0: its BTH is held. extension() looks at the bytes held itself.
inline Bth& bth(Packet packet) { return *rte_pktmbuf_mtod_offset(packet.mbuf(), Bth*, packet.meta().bth_offset); }
inline const OpcodeInfo& opcode_info(Packet packet) { return opcode_info(packet.meta().opcode); }
/// Both numbers of the BTH, read at once.
struct QpnPsn {
  std::uint32_t destination_qp, psn;
};
inline QpnPsn qpn_and_psn(Packet packet) {
  static_assert(offsetof(Bth, destination_qp) == 5 && offsetof(Bth, psn) == 9);
  std::uint64_t bytes;
  std::memcpy(&bytes, reinterpret_cast<const std::uint8_t*>(&bth(packet)) + 4, sizeof bytes);
  bytes = __builtin_bswap64(bytes);
  return {static_cast<std::uint32_t>(bytes >> 32) & 0xFFFFFF, static_cast<std::uint32_t>(bytes) & 0xFFFFFF};
}

/// Whether QPN and PSN can be read from the BTH. An opcode that the specification reserves may have any header behind
/// it, such as a kernel's own: of that only the opcode is known.
inline bool has_qpn_and_psn(Packet packet) {
  const OpcodeInfo& info = opcode_info(packet);
  return packet.meta().bth_offset != 0 && (info.has(kIsKnown) || is_unsupported(info.service));
}

/// The extended header T that `flag` (kHasReth...) stands for, or null when the packet's opcode has none.
template <class T>
T* extension(Packet packet, std::uint16_t flag) {
  const OpcodeInfo& info = opcode_info(packet);
  if (!info.has(flag)) return nullptr;
  // Wire order is the order of the flag bits; lengths of those before it.
  constexpr std::uint8_t kBytes[] = {sizeof(Deth),         sizeof(Reth),  sizeof(AtomicEth), sizeof(Aeth),
                                     sizeof(AtomicAckEth), sizeof(ImmDt), sizeof(Ieth)};
  std::uint32_t offset = packet.meta().bth_offset + sizeof(Bth);
  for (unsigned bit = 0; bit < std::size(kBytes) && (1u << bit) < flag; bit++)
    if (info.flags & 1u << bit) offset += kBytes[bit];
  return packet.header<T>(offset);
}
inline Reth* reth(Packet p) { return extension<Reth>(p, kHasReth); }
inline Aeth* aeth(Packet p) { return extension<Aeth>(p, kHasAeth); }
inline Deth* deth(Packet p) { return extension<Deth>(p, kHasDeth); }
inline ImmDt* immdt(Packet p) { return extension<ImmDt>(p, kHasImmDt); }
inline Ieth* ieth(Packet p) { return extension<Ieth>(p, kHasIeth); }
inline AtomicEth* atomic_eth(Packet p) { return extension<AtomicEth>(p, kHasAtomicEth); }
inline AtomicAckEth* atomic_ack_eth(Packet p) { return extension<AtomicAckEth>(p, kHasAtomicAckEth); }

/// What an IP header, with IPv6's extension headers, leads to.
struct IpPayload {
  std::uint32_t offset = 0, end = 0;  ///< of the payload, and of the datagram, in the packet
  std::uint8_t protocol = 0;          ///< of the payload; an extension's where the walk ended before it
  bool first_fragment = false, later_fragment = false;
};
/// For packets whose ip_version is set. The walk ends at what is not held, at more than kIpv6ExtensionsMax extension
/// headers, and in a later fragment, whose bytes are none.
IpPayload ip_payload(Packet packet);

/// Both IP addresses as 16 bytes (IPv4 as ::ffff:a.b.c.d), so that one key fits both families.
struct Addresses {
  std::array<std::uint8_t, 16> source, destination;
  bool operator==(const Addresses&) const = default;
};
/// For packets whose ip_version is set.
inline Addresses addresses(Packet packet) {
  Addresses result;
  const std::uint8_t* header = packet.data() + packet.meta().l3_offset;
  if (packet.meta().ip_version != 4) {
    std::memcpy(&result, header + offsetof(Ipv6, source), sizeof result);
    return result;
  }
  // Whole addresses are stored: who copies the result by vectors would wait for parts that were stored one by one.
  static_assert(std::endian::native == std::endian::little);
  const auto store_mapped = [](std::array<std::uint8_t, 16>& at, const std::uint8_t* from) {
    std::uint32_t ipv4;
    std::memcpy(&ipv4, from, sizeof ipv4);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at.data()),
                     _mm_set_epi32(static_cast<int>(ipv4), static_cast<int>(0xFFFF0000u), 0, 0));
  };
  store_mapped(result.source, header + offsetof(Ipv4, source));
  store_mapped(result.destination, header + offsetof(Ipv4, destination));
  return result;
}

/// The ECN codepoint of an IP packet.
std::uint8_t ecn(Packet packet);

}  // namespace rocebox::roce
