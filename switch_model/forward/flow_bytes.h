// SPDX-License-Identifier: BSD-3-Clause
// The bytes that tell flows apart.
#pragma once
#include <cstdint>

#include "runtime/packet/packet.h"
#include "switch_model/hash.h"
#include "switch_model/next_hops.h"

namespace rocebox::switch_model::forward {

/// Both IPv6 addresses, protocol, both ports.
inline constexpr unsigned kFlowBytesMax = 32 + 1 + 4;

/// Writes addresses, protocol and, of TCP and UDP that is not fragmented, ports; of what is not IP both MAC addresses
/// and the type. Gives how many bytes.
unsigned flow_bytes(Packet packet, std::uint8_t* bytes);

/// A unit that hashes flow_bytes() as ECMP does; next_hops has the algorithm and the seed.
HashUnit flow_hash(Layout& layout, std::string_view name, At at, const NextHops& next_hops);

}  // namespace rocebox::switch_model::forward
