// SPDX-License-Identifier: BSD-3-Clause
// The invariant CRC (IB specification, volume 1, 7.8.1; RoCEv2 pseudo header: annex A17.3.3): full and incremental.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/packet/packet.h"

namespace rocebox::roce {

enum class IcrcStatus : std::uint8_t {
  kGood,
  kBad,
  kUnverifiable,  ///< snapped or trimmed: not all covered bytes are held
};

/// Whether the ICRC of a packet with status kRoce (or kReservedOpcode, or kUnknownOpcode) can be computed from the
/// bytes held.
inline bool icrc_held(Packet packet) {
  return packet.meta().bth_offset != 0 && packet.meta().datagram_end <= packet.size();
}
/// The right ICRC, as the number that is stored little-endian in the last four bytes of the datagram. Needs
/// icrc_held(packet).
std::uint32_t icrc_compute(Packet packet);
/// The ICRC that the packet carries. Needs icrc_held(packet).
std::uint32_t icrc_stored(Packet packet);
/// Memory that is about to be worked on from its beginning to its end.
struct Ahead {
  const std::uint8_t* from = nullptr;
  std::uint32_t bytes = 0;
};
/// Has the caches fetch `ahead` meanwhile, as much of it as the ICRC covers: a CRC keeps the processor busy, but not
/// the memory.
IcrcStatus icrc_check(Packet packet, Ahead ahead = {});
/// Writes the right ICRC. For packets that rocebox makes; an edited packet uses edit() below. `ahead` as above.
void icrc_store(Packet packet, Ahead ahead = {});

/// Overwrites bytes of a parsed RoCE packet from its IP header on, and keeps its checks in step: ICRC (unless the
/// bytes are masked in it), IPv4 header checksum, and UDP checksum unless that is zero (unused). The cost does not
/// depend on the payload: CRC is linear, so the stored ICRC changes by the CRC of the difference moved to its
/// place. A wrong ICRC stays wrong: corruption is never laundered.
/// `offset` counts from the start of the frame; [offset, offset + value.size()) must lie in the bytes held, behind
/// the Ethernet header and before the ICRC, and must not change lengths or offsets. At most 16 bytes a call.
void edit(Packet packet, std::uint32_t offset, std::span<const std::uint8_t> value);

/// edit() for a number of `Bytes` bytes in network order.
template <unsigned Bytes>
void edit_number(Packet packet, std::uint32_t offset, std::uint64_t value) {
  std::uint8_t bytes[Bytes];
  for (unsigned i = Bytes; i-- > 0; value >>= 8) bytes[i] = static_cast<std::uint8_t>(value);
  edit(packet, offset, bytes);
}

}  // namespace rocebox::roce
