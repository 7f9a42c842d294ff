// SPDX-License-Identifier: BSD-3-Clause
// Frames that LoWAR makes: repair and negotiation packets, and data packets rebuilt from repair packets.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/lowar/image.h"
#include "kernels/lowar/repair_header.h"
#include "runtime/kernel/kernel.h"
#include "runtime/roce/icrc.h"

namespace rocebox::lowar {

/// The IP datagram's bytes of a packet with `like`'s headers below BTH and `behind_udp` bytes behind UDP.
inline std::uint32_t datagram_bytes(Packet like, std::uint32_t behind_udp) {
  return like.meta().bth_offset - like.meta().l3_offset + behind_udp;
}

/// Bytes behind UDP of a LoWAR packet with such an image.
inline std::uint32_t lowar_packet_bytes(std::size_t image) {
  return static_cast<std::uint32_t>(sizeof(HeaderBytes) + image) + roce::kIcrcBytes;
}

/// A LoWAR packet: the headers below BTH of `like` with the right lengths and checksums (Congestion Experienced becomes
/// ECT(0): it was said of `like`), `header`, `image`, ICRC. Empty where there is no packet to be had. `ahead`: what is
/// worked on next (icrc.h).
PacketPtr make_packet(Context& context, Packet like, const HeaderBytes& header,
                      std::span<const std::uint8_t> image = {}, roce::Ahead ahead = {});

/// The same, without an image, for the way back: addresses of MAC and IP swapped, and a TTL of its own.
PacketPtr make_packet_back(Context& context, Packet like, const HeaderBytes& header);

/// The bytes behind UDP and before the ICRC. Needs roce::icrc_held(packet).
inline std::span<const std::uint8_t> lowar_bytes(Packet packet) {
  return {transport(packet), transport_bytes(packet) - roce::kIcrcBytes};
}

/// Puts the headers below BTH in front of a transport packet of prefix.transport_bytes bytes that lies in `packet` at
/// like.meta().bth_offset: those of `like`, with what the prefix says. What hops change is taken from the prefix when
/// `hops_known`, else from `like`. Parses the packet; its ICRC is the rebuilt one, right or not.
void put_headers(Packet packet, Packet like, const CodedPrefix& prefix, bool hops_known);

}  // namespace rocebox::lowar
