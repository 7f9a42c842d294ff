// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/rtt.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nic_model/rate/datagram.h"

namespace rocebox::nic_model {
namespace {

constexpr std::array<std::uint8_t, 4> kRttMagic = {'R', 'B', 'R', 'T'};
constexpr std::uint8_t kRttVersion = 1, kRttRequest = 1, kRttResponse = 2;

}  // namespace

struct RttProber::Probe {
  std::uint8_t magic[4];
  std::uint8_t version, kind;
  roce::Be16 zero;
  roce::Be32 destination_qp, source_qp, serial, reserved;
  roce::Be64 request_sent, request_received, response_sent;
  std::uint8_t payload[kRttPayloadBytes];
};

RttProber::RttProber(Core& core, Stats& stats)
    : core_(core),
      requests_sent_(stats.counter("rtt_requests_sent", "probes of the round-trip time sent")),
      responses_sent_(stats.counter("rtt_responses_sent", "probes of others answered")),
      responses_received_(stats.counter("rtt_responses_received", "answers to probes that were waited for")),
      drop_(stats.counter("drop_rtt", "a probe that is damaged, not from its queue pair's peer, or not waited for")) {}

bool RttProber::request(Context& context, Qp& qp, std::uint16_t udp_source_port) {
  // Its answer would be taken for a request.
  if (udp_source_port == kRttUdpPort) return false;
  if (!qp.reaches_a_peer() || !qp.can_receive()) return false;
  Probe probe{};
  std::ranges::copy(kRttMagic, probe.magic);
  probe.version = kRttVersion;
  probe.kind = kRttRequest;
  probe.destination_qp = qp.attributes.destination_qp;
  probe.source_qp = qp.number();
  probe.serial = ++qp.rtt_serial;
  probe.request_sent = static_cast<std::uint64_t>(context.now());
  if (!send(context, qp.attributes.remote, qp.headers.destination_mac(), qp.attributes.traffic_class, udp_source_port,
            kRttUdpPort, probe))
    return false;
  qp.rtt_sent[qp.rtt_serial % kProbesUnderWay] = context.now();
  requests_sent_.add();
  return true;
}

bool RttProber::send(Context& context, const roce::IpAddress& to, const roce::Mac& mac, std::uint8_t traffic_class,
                     std::uint16_t source_port, std::uint16_t destination_port, const Probe& probe) {
  static_assert(sizeof(Probe) == 80);
  return send_datagram(context, core_, {to, mac, traffic_class, source_port, destination_port},
                       {reinterpret_cast<const std::uint8_t*>(&probe), sizeof probe});
}

Counter* RttProber::on_packet(Context& context, Packet packet) {
  const roce::Udp* udp = udp_of(packet);
  if (!udp) return nullptr;
  const bool is_request = udp->destination_port == kRttUdpPort;
  if (!is_request && udp->source_port != kRttUdpPort) return nullptr;
  if (!is_whole_datagram(packet, *udp, sizeof(Probe))) return &drop_;
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
  const auto qpn = static_cast<std::uint32_t>(asked.destination_qp);
  const Qp& qp = *core_.find(qpn);
  RttAnswer answer;
  answer.traffic_class = qp.attributes.traffic_class;
  if (core_.observer) {
    Controls controls(context, core_);
    if (!core_.observer->on_rtt_request(controls, request_of(packet, qpn), answer)) return core_.count.answered;
  }
  std::ranges::copy(answer.payload, probe.payload);
  roce::Mac mac;
  std::copy_n(packet.header<roce::Ethernet>(0)->source, mac.size(), mac.begin());
  if (send(context, qp.attributes.remote, mac, answer.traffic_class, kRttUdpPort, udp_source_port, probe))
    responses_sent_.add();
  return core_.count.answered;
}

// What the observer may see of it.
RttRequest RttProber::request_of(Packet packet, std::uint32_t qpn) {
  const PacketMeta& meta = packet.meta();
  const bool is_ipv4 = meta.ip_version == 4;
  const std::size_t udp_offset = meta.l3_offset + (is_ipv4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6));
  const std::size_t bytes = udp_offset + sizeof(roce::Udp) + sizeof(Probe);
  const std::uint8_t hop_limit =
      is_ipv4 ? packet.header<roce::Ipv4>(meta.l3_offset)->ttl : packet.header<roce::Ipv6>(meta.l3_offset)->hop_limit;
  return {qpn,
          {packet.data(), bytes},
          udp_offset,
          udp_offset + sizeof(roce::Udp) + offsetof(Probe, request_sent),
          hop_limit};
}

Counter& RttProber::on_response(Context& context, Packet packet, const Probe& probe) {
  Qp& qp = *core_.find(static_cast<std::uint32_t>(probe.destination_qp));
  const auto serial = static_cast<std::uint32_t>(probe.serial);
  Nanos& sent = qp.rtt_sent[serial % kProbesUnderWay];
  if (sent == kNever || qp.rtt_serial - serial >= kProbesUnderWay) return drop_;
  RttSample sample;
  sample.request_sent = std::exchange(sent, kNever);
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
