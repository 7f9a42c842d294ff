// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/rtt.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::nic_model {
namespace {

constexpr std::array<std::uint8_t, 4> kRttMagic = {'R', 'B', 'R', 'T'};
constexpr std::uint8_t kRttVersion = 1, kRttRequest = 1, kRttResponse = 2;
constexpr std::uint8_t kRttHopLimit = 64;

// One's complement sum of a UDP datagram with its pseudo header (RFC 768; RFC 8200, 8.1), folded.
std::uint16_t udp_sum(const std::uint8_t* addresses, std::size_t address_bytes, const std::uint8_t* udp,
                      std::uint32_t bytes) {
  std::uint32_t sum = roce::kIpProtocolUdp + bytes;
  for (std::size_t i = 0; i < address_bytes; i += 2) sum += roce::load_be16(addresses + i);
  for (std::uint32_t i = 0; i < bytes; i += 2) sum += roce::load_be16(udp + i);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

struct RttProber::Probe {
  std::uint8_t magic[4];
  std::uint8_t version, kind;
  roce::Be16 zero;
  roce::Be32 destination_qp, source_qp, serial, reserved;
  roce::Be64 request_sent, request_received, response_sent;
  std::uint8_t payload[kRttPayloadBytes];
};

RttProber::RttProber(Core& core, Neighbors& neighbors, Stats& stats)
    : core_(core),
      neighbors_(neighbors),
      requests_sent_(stats.counter("rtt_requests_sent", "probes of the round-trip time sent")),
      responses_sent_(stats.counter("rtt_responses_sent", "probes of others answered")),
      responses_received_(stats.counter("rtt_responses_received", "answers to probes that were waited for")),
      drop_(stats.counter("drop_rtt", "a probe that is damaged, not from its queue pair's peer, or not waited for")) {}

bool RttProber::request(Context& context, Qp& qp, std::uint16_t udp_source_port) {
  // Its answer would be taken for a request.
  if (udp_source_port == kRttUdpPort) return false;
  if (!qp.path_known || !qp.can_receive()) return false;
  const roce::Mac* mac = neighbors_.resolve(context, qp.attributes.remote);
  if (!mac) return false;
  Probe probe{};
  std::ranges::copy(kRttMagic, probe.magic);
  probe.version = kRttVersion;
  probe.kind = kRttRequest;
  probe.destination_qp = qp.attributes.destination_qp;
  probe.source_qp = qp.number();
  probe.serial = ++qp.rtt_serial;
  probe.request_sent = static_cast<std::uint64_t>(context.now());
  if (!send(context, qp.attributes.remote, *mac, qp.attributes.traffic_class, udp_source_port, kRttUdpPort, probe))
    return false;
  qp.rtt_sent = context.now();
  requests_sent_.add();
  return true;
}

bool RttProber::send(Context& context, const roce::IpAddress& to, const roce::Mac& mac, std::uint8_t traffic_class,
                     std::uint16_t source_port, std::uint16_t destination_port, const Probe& probe) {
  const bool is_ipv4 = roce::is_ipv4(to);
  const auto ip_bytes = static_cast<std::uint32_t>(is_ipv4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6));
  static_assert(sizeof(Probe) == 80);
  constexpr std::uint32_t kUdpBytes = sizeof(roce::Udp) + sizeof(Probe);
  PacketPtr packet = context.allocate(static_cast<std::uint32_t>(sizeof(roce::Ethernet)) + ip_bytes + kUdpBytes);
  if (!packet) return core_.count.tx_no_packet.add(), false;
  std::memset(packet->data(), 0, packet->size());
  auto* ethernet = packet->header<roce::Ethernet>(0);
  std::copy(mac.begin(), mac.end(), ethernet->destination);
  std::ranges::copy(core_.config.mac_address(), ethernet->source);
  ethernet->type = is_ipv4 ? roce::kEtherIpv4 : roce::kEtherIpv6;
  const roce::IpAddress own = core_.config.source_for(to);
  std::uint8_t addresses[32];  // as the pseudo header has them
  const std::size_t address_bytes = is_ipv4 ? 4 : 16;
  std::copy(own.end() - static_cast<std::ptrdiff_t>(address_bytes), own.end(), addresses);
  std::copy(to.end() - static_cast<std::ptrdiff_t>(address_bytes), to.end(), addresses + address_bytes);
  std::uint8_t* const l3 = packet->data() + sizeof(roce::Ethernet);
  if (is_ipv4) {
    auto* ip = reinterpret_cast<roce::Ipv4*>(l3);
    ip->version_ihl = 0x45;
    ip->tos = traffic_class;
    ip->total_length = sizeof *ip + kUdpBytes;
    ip->flags_fragment = 0x4000;
    ip->ttl = kRttHopLimit;
    ip->protocol = roce::kIpProtocolUdp;
    std::copy_n(addresses, 8, ip->source);
    roce::store_ipv4_checksum(*ip);
  } else {
    auto* ip = reinterpret_cast<roce::Ipv6*>(l3);
    ip->version_class_label = 0x60000000u | std::uint32_t{traffic_class} << 20;
    ip->payload_length = kUdpBytes;
    ip->next_header = roce::kIpProtocolUdp;
    ip->hop_limit = kRttHopLimit;
    std::copy_n(addresses, 32, ip->source);
  }
  auto* udp = reinterpret_cast<roce::Udp*>(l3 + ip_bytes);
  udp->source_port = source_port;
  udp->destination_port = destination_port;
  udp->length = kUdpBytes;
  std::memcpy(udp + 1, &probe, sizeof probe);
  const std::uint16_t sum = udp_sum(addresses, 2 * address_bytes, reinterpret_cast<std::uint8_t*>(udp), kUdpBytes);
  udp->checksum = sum == 0xFFFF ? 0xFFFF : static_cast<std::uint16_t>(~sum);
  if (core_.transmitter.add_control(context, packet)) return true;
  context.drop(std::move(packet), core_.count.drop_control_full);
  return false;
}

Counter* RttProber::on_packet(Context& context, Packet packet) {
  const PacketMeta& meta = packet.meta();
  const bool is_ipv4 = meta.ip_version == 4;
  if (!is_ipv4 && meta.ip_version != 6) return nullptr;
  const auto ip_bytes = static_cast<std::uint32_t>(is_ipv4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6));
  const auto* l3 = packet.data() + meta.l3_offset;
  if (packet.size() < meta.l3_offset + ip_bytes + sizeof(roce::Udp)) return nullptr;
  const std::uint8_t protocol = is_ipv4 ? reinterpret_cast<const roce::Ipv4*>(l3)->protocol
                                        : reinterpret_cast<const roce::Ipv6*>(l3)->next_header;
  if (protocol != roce::kIpProtocolUdp || (is_ipv4 && l3[0] != 0x45)) return nullptr;
  const auto* udp = reinterpret_cast<const roce::Udp*>(l3 + ip_bytes);
  const bool is_request = udp->destination_port == kRttUdpPort;
  if (!is_request && udp->source_port != kRttUdpPort) return nullptr;
  constexpr std::uint32_t kUdpBytes = sizeof(roce::Udp) + sizeof(Probe);
  if (udp->length != kUdpBytes || packet.size() < meta.l3_offset + ip_bytes + kUdpBytes) return &drop_;
  const auto* addresses =
      is_ipv4 ? reinterpret_cast<const roce::Ipv4*>(l3)->source : reinterpret_cast<const roce::Ipv6*>(l3)->source;
  if (udp_sum(addresses, is_ipv4 ? 8 : 32, reinterpret_cast<const std::uint8_t*>(udp), kUdpBytes) != 0xFFFF)
    return &drop_;
  Probe probe;
  std::memcpy(&probe, udp + 1, sizeof probe);
  if (!std::ranges::equal(probe.magic, kRttMagic) || probe.version != kRttVersion || probe.zero != 0 ||
      probe.kind != (is_request ? kRttRequest : kRttResponse))
    return &drop_;
  const Qp* qp = core_.find(static_cast<std::uint32_t>(probe.destination_qp));
  if (!qp || !qp->can_receive() || qp->is(IBV_QPT_UD) || roce::addresses(packet).source != qp->attributes.remote ||
      probe.source_qp != qp->attributes.destination_qp)
    return &drop_;
  return &(is_request ? on_request(context, packet, probe, static_cast<std::uint16_t>(udp->source_port))
                      : on_response(context, packet, probe));
}

// To where it came from, on the way back of its path.
Counter& RttProber::on_request(Context& context, Packet packet, const Probe& asked, std::uint16_t udp_source_port) {
  Probe probe = asked;
  probe.kind = kRttResponse;
  probe.destination_qp = asked.source_qp;
  probe.source_qp = asked.destination_qp;
  probe.request_received = probe.response_sent = static_cast<std::uint64_t>(context.now());
  std::memset(probe.payload, 0, sizeof probe.payload);
  const auto qpn = static_cast<std::uint32_t>(asked.destination_qp);
  if (core_.observer) {
    Controls controls(context, core_);
    core_.observer->on_rtt_request(controls, qpn, std::span<std::uint8_t, kRttPayloadBytes>(probe.payload));
  }
  roce::Mac mac;
  std::copy_n(packet.header<roce::Ethernet>(0)->source, mac.size(), mac.begin());
  const Qp& qp = *core_.find(qpn);
  if (send(context, qp.attributes.remote, mac, qp.attributes.traffic_class, kRttUdpPort, udp_source_port, probe))
    responses_sent_.add();
  return core_.count.answered;
}

Counter& RttProber::on_response(Context& context, Packet packet, const Probe& probe) {
  Qp& qp = *core_.find(static_cast<std::uint32_t>(probe.destination_qp));
  if (qp.rtt_sent == kNever || probe.serial != qp.rtt_serial) return drop_;
  RttSample sample;
  sample.request_sent = std::exchange(qp.rtt_sent, kNever);
  sample.request_received = static_cast<Nanos>(probe.request_received.get());
  sample.response_sent = static_cast<Nanos>(probe.response_sent.get());
  sample.response_received = context.now();
  const std::uint32_t ip_bytes = packet.meta().ip_version == 4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6);
  const auto* udp = packet.header<roce::Udp>(packet.meta().l3_offset + ip_bytes);
  sample.udp_source_port = static_cast<std::uint16_t>(udp->destination_port);
  std::ranges::copy(probe.payload, sample.payload.begin());
  responses_received_.add();
  QpEvent event;
  event.kind = QpEventKind::kRtt;
  event.rtt = &sample;
  core_.observe(context, qp, event);
  return core_.count.answered;
}

}  // namespace rocebox::nic_model
