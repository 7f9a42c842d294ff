// SPDX-License-Identifier: BSD-3-Clause
// The bytes that tell flows apart.
#pragma once
#include <cstdint>

#include "runtime/packet/packet.h"

namespace rocebox::switch_model::forward {

/// Seed, both IPv6 addresses, protocol, both ports.
inline constexpr unsigned kFlowBytesMax = 4 + 32 + 1 + 4;

/// Writes seed, addresses, protocol and, of TCP and UDP that is not fragmented, ports; of what is not IP the seed and
/// both MAC addresses and the type. Gives how many bytes.
unsigned flow_bytes(Packet packet, std::uint32_t seed, std::uint8_t* bytes);

}  // namespace rocebox::switch_model::forward
