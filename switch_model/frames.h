// SPDX-License-Identifier: BSD-3-Clause
// Frames that are no RoCE packets, header by header; for RoCE see runtime/roce/build.h.
#pragma once
#include <cstdint>

#include "runtime/roce/build.h"

namespace rocebox::switch_model {

/// Writes Ethernet and, where the underlay has one, the outer VLAN tag, with `type` behind; gives how many bytes.
std::uint32_t put_ethernet(std::uint8_t* at, const roce::Underlay& underlay, std::uint16_t type);
/// Writes an IP header without extensions, for a datagram of `bytes` with it; gives how many bytes. What is written to
/// must be zero.
std::uint32_t put_ip(std::uint8_t* at, const roce::Underlay& underlay, std::uint8_t protocol, std::uint32_t bytes);
/// Writes UDP's header in front of the payload that stands there, with the checksum, which IP's header is needed for.
void put_udp(std::uint8_t* at, const std::uint8_t* ip, std::uint8_t ip_version, std::uint16_t source_port,
             std::uint16_t destination_port, std::uint32_t bytes);

}  // namespace rocebox::switch_model
