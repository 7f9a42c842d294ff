// SPDX-License-Identifier: BSD-3-Clause
// Mixed traffic for the tests of the contracts: RoCE of all kinds, good and bad, and everything else a wire carries.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/packet/packet.h"

namespace rocebox::test {

struct TrafficPacket {
  Nanos at;
  Port in;
  std::vector<std::uint8_t> bytes;
  std::uint32_t wire_bytes;
  bool foreign;        ///< no well-formed RoCE: a bump passes it untouched and in order
  bool bad_icrc;       ///< RoCE whose ICRC is wrong
  std::uint64_t mark;  ///< of RoCE data packets: eight bytes of the payload that no other has; 0 otherwise
};

/// Makes of a good RoCE data packet one of a kernel's own protocol: likely fields, right ICRC.
using OwnPacket = void (*)(TrafficPacket& packet, std::mt19937_64& random);
/// Those of all kernels that have one. The kernel's own tests add it, in tests/unit/kernels/NAME_traffic.cc, before
/// main(): what is here needs no kernel.
std::vector<OwnPacket>& own_packets();

/// `count` packets by `ports` inputs in ascending time, several in some instants: RC and UC flows with gaps,
/// repetitions and PSN wrap, acknowledgements, CNPs, UD, IPv6, VLAN, wrong ICRCs, snapped and malformed RoCE,
/// fragments, ARP, TCP and noise. A function of the seed.
std::vector<TrafficPacket> mixed_traffic(std::uint64_t seed, std::size_t count, Port ports);

}  // namespace rocebox::test
