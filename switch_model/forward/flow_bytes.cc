// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/flow_bytes.h"

#include <cstring>

#include "runtime/roce/headers.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr std::uint8_t kTcp = 6;
constexpr unsigned kAddressesV4 = 8, kAddressesV6 = 32, kPorts = 4;

}  // namespace

unsigned any_flow_bytes(Packet packet, std::uint8_t* bytes) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* data = packet.data();
  unsigned size = 0;
  const auto add = [&](const std::uint8_t* from, unsigned count) {
    std::memcpy(bytes + size, from, count);
    size += count;
  };
  std::uint32_t l4;
  bool fragment = false;
  if (meta.ip_version == 4) {
    const auto& ip = *reinterpret_cast<const roce::Ipv4*>(data + meta.l3_offset);
    add(ip.source, kAddressesV4);
    add(&ip.protocol, 1);
    l4 = meta.l3_offset + ip.header_bytes();
    fragment = (static_cast<std::uint32_t>(ip.flags_fragment) & 0x3FFF) != 0;
  } else if (meta.ip_version == 6) {
    const auto& ip = *reinterpret_cast<const roce::Ipv6*>(data + meta.l3_offset);
    add(ip.source, kAddressesV6);
    add(&ip.next_header, 1);
    l4 = meta.l3_offset + static_cast<std::uint32_t>(sizeof ip);
  } else {
    add(data, sizeof(roce::Ethernet));
    return size;
  }
  const std::uint8_t protocol = bytes[size - 1];
  if ((protocol == kTcp || protocol == roce::kIpProtocolUdp) && !fragment && packet.size() >= l4 + kPorts)
    add(data + l4, kPorts);
  return size;
}

HashUnit flow_hash(Layout& layout, std::string_view name, At at, const NextHops& next_hops) {
  constexpr unsigned kKeyBits = 8 * (sizeof next_hops.hash_seed + kFlowBytesMax);
  CrcAlgorithm algorithm = crc_algorithms()[next_hops.hash_algorithm];
  if (next_hops.hash_polynomial) algorithm.polynomial = next_hops.hash_polynomial;
  HashUnit unit(layout, name, at, algorithm, kKeyBits);
  std::uint8_t seed[sizeof next_hops.hash_seed];
  std::memcpy(seed, &next_hops.hash_seed, sizeof seed);
  unit.set_constant(seed);
  return unit;
}

}  // namespace rocebox::switch_model::forward
