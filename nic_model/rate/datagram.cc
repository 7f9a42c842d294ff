// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/datagram.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/internet_checksum.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint8_t kDatagramHopLimit = 64;

}  // namespace

bool send_datagram(Context& context, Core& core, const DatagramTo& to, std::span<const std::uint8_t> payload) {
  const bool is_ipv4 = roce::is_ipv4(to.address);
  const auto ip_bytes = static_cast<std::uint32_t>(is_ipv4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6));
  const auto udp_bytes = static_cast<std::uint32_t>(sizeof(roce::Udp) + payload.size());
  PacketPtr packet = context.allocate(static_cast<std::uint32_t>(sizeof(roce::Ethernet)) + ip_bytes + udp_bytes);
  if (!packet) return core.count.tx_no_packet.add(), false;
  std::memset(packet->data(), 0, packet->size());
  auto* ethernet = packet->header<roce::Ethernet>(0);
  std::ranges::copy(to.mac, ethernet->destination);
  std::ranges::copy(core.config.mac_address(), ethernet->source);
  ethernet->type = is_ipv4 ? roce::kEtherIpv4 : roce::kEtherIpv6;
  const roce::IpAddress own = core.config.source_for(to.address);
  std::uint8_t addresses[32];  // as the pseudo header has them
  const std::size_t address_bytes = is_ipv4 ? 4 : 16;
  std::copy(own.end() - static_cast<std::ptrdiff_t>(address_bytes), own.end(), addresses);
  std::copy(to.address.end() - static_cast<std::ptrdiff_t>(address_bytes), to.address.end(), addresses + address_bytes);
  std::uint8_t* const l3 = packet->data() + sizeof(roce::Ethernet);
  if (is_ipv4) {
    auto* ip = reinterpret_cast<roce::Ipv4*>(l3);
    ip->version_ihl = 0x45;
    ip->tos = to.traffic_class;
    ip->total_length = static_cast<std::uint16_t>(sizeof *ip + udp_bytes);
    ip->flags_fragment = 0x4000;
    ip->ttl = kDatagramHopLimit;
    ip->protocol = roce::kIpProtocolUdp;
    std::copy_n(addresses, 8, ip->source);
    roce::store_ipv4_checksum(*ip);
  } else {
    auto* ip = reinterpret_cast<roce::Ipv6*>(l3);
    ip->version_class_label = 0x60000000u | std::uint32_t{to.traffic_class} << 20;
    ip->payload_length = static_cast<std::uint16_t>(udp_bytes);
    ip->next_header = roce::kIpProtocolUdp;
    ip->hop_limit = kDatagramHopLimit;
    std::copy_n(addresses, 32, ip->source);
  }
  auto* udp = reinterpret_cast<roce::Udp*>(l3 + ip_bytes);
  udp->source_port = to.source_port;
  udp->destination_port = to.destination_port;
  udp->length = static_cast<std::uint16_t>(udp_bytes);
  std::ranges::copy(payload, reinterpret_cast<std::uint8_t*>(udp + 1));
  const std::uint16_t sum = roce::sum_with_addresses(addresses, 2 * address_bytes, roce::kIpProtocolUdp,
                                                     reinterpret_cast<std::uint8_t*>(udp), udp_bytes);
  udp->checksum = sum == 0xFFFF ? 0xFFFF : static_cast<std::uint16_t>(~sum);
  if (core.transmitter.add_control(context, packet)) return true;
  context.drop(std::move(packet), core.count.drop_control_full);
  return false;
}

const roce::Udp* udp_of(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const bool is_ipv4 = meta.ip_version == 4;
  if (!is_ipv4 && meta.ip_version != 6) return nullptr;
  const auto ip_bytes = static_cast<std::uint32_t>(is_ipv4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6));
  if (packet.size() < meta.l3_offset + ip_bytes + sizeof(roce::Udp)) return nullptr;
  const std::uint8_t* l3 = packet.data() + meta.l3_offset;
  const std::uint8_t protocol = is_ipv4 ? reinterpret_cast<const roce::Ipv4*>(l3)->protocol
                                        : reinterpret_cast<const roce::Ipv6*>(l3)->next_header;
  if (protocol != roce::kIpProtocolUdp || (is_ipv4 && l3[0] != 0x45)) return nullptr;
  return reinterpret_cast<const roce::Udp*>(l3 + ip_bytes);
}

bool is_whole_datagram(Packet packet, const roce::Udp& udp, std::uint32_t payload_bytes) {
  const auto udp_bytes = static_cast<std::uint32_t>(sizeof(roce::Udp)) + payload_bytes;
  const auto* first = reinterpret_cast<const std::uint8_t*>(&udp);
  if (udp.length != udp_bytes || packet.data() + packet.size() < first + udp_bytes) return false;
  const std::uint8_t* l3 = packet.data() + packet.meta().l3_offset;
  const bool is_ipv4 = packet.meta().ip_version == 4;
  const auto* addresses =
      is_ipv4 ? reinterpret_cast<const roce::Ipv4*>(l3)->source : reinterpret_cast<const roce::Ipv6*>(l3)->source;
  return roce::sum_with_addresses(addresses, is_ipv4 ? 8 : 32, roce::kIpProtocolUdp, first, udp_bytes) == 0xFFFF;
}

}  // namespace rocebox::nic_model
