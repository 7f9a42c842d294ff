// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/observer.h"

#include <algorithm>

#include "nic_model/core.h"
#include "nic_model/rate/peer_messages.h"
#include "nic_model/rate/rtt.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {

std::uint64_t Controls::line_rate() const { return core_.config.rate; }

std::uint64_t Controls::bytes_received() const { return core_.count.rx_roce_bytes.read(); }
std::uint64_t Controls::bytes_sent() const { return core_.count.tx_roce_bytes.read(); }

std::uint64_t Controls::wire_bytes_received() const {
  return core_.count.rx_roce_bytes.read() + core_.count.rx_roce_packets.read() * core_.config.overhead;
}
Nanos Controls::pcie_latency() const { return core_.transmitter.pcie_latency(); }

NicUse Controls::nic_use() const {
  const auto ready = std::ranges::count_if(core_.qps, [](const auto& qp) { return qp && qp->is_ready; });
  return {core_.count.tx_roce_bytes.read() + core_.count.tx_roce_packets.read() * core_.config.overhead,
          core_.transmitter.pcie_bytes(), static_cast<std::uint32_t>(ready),
          static_cast<std::uint32_t>(core_.transmitter.staged_bytes())};
}

bool Controls::set_response_rate(std::uint32_t qpn, double bits_per_second) {
  Qp* qp = core_.find(qpn);
  if (!qp) return false;
  const double most = static_cast<double>(core_.config.rate ? core_.config.rate : kRateMax);
  qp->response_rate =
      bits_per_second <= 0 ? 0 : std::clamp(bits_per_second, std::min(static_cast<double>(kRateMin), most), most);
  return true;
}

bool Controls::set_rate(std::uint32_t qpn, double bits_per_second) {
  Qp* qp = core_.find(qpn);
  if (!qp) return false;
  const double before = qp->requester.pace_rate();
  const double most = static_cast<double>(core_.config.rate ? core_.config.rate : kRateMax);
  qp->rate =
      bits_per_second <= 0 ? 0 : std::clamp(bits_per_second, std::min(static_cast<double>(kRateMin), most), most);
  qp->requester.on_rate_changed(context_, before);
  return true;
}

double Controls::rate(std::uint32_t qpn) const {
  const Qp* qp = core_.find(qpn);
  return qp ? qp->rate : 0;
}

std::uint8_t Controls::traffic_class(std::uint32_t qpn) const {
  const Qp* qp = core_.find(qpn);
  return qp ? qp->attributes.traffic_class : 0;
}

bool Controls::set_udp_source_port(std::uint32_t qpn, std::uint16_t port) {
  Qp* qp = core_.find(qpn);
  if (!qp || port == 0) return false;
  qp->attributes.udp_source_port = port;
  return true;
}

bool Controls::request_rtt(std::uint32_t qpn, std::uint16_t udp_source_port) {
  Qp* qp = core_.find(qpn);
  return qp && core_.rtt && core_.rtt->request(context_, *qp, udp_source_port);
}

bool Controls::send_to_peer(std::uint32_t qpn, std::span<const std::uint8_t, kPeerMessageBytes> message) {
  Qp* qp = core_.find(qpn);
  return qp && core_.peer_messages && core_.peer_messages->send(context_, *qp, message);
}

void Controls::wake_at(Nanos at) {
  if (at == kNever)
    context_.cancel(core_.observer_timer);
  else
    context_.arm(core_.observer_timer, at);
}

}  // namespace rocebox::nic_model
