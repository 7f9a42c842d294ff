// SPDX-License-Identifier: BSD-3-Clause
// Service ID resolution (IB specification, volume 1, 12.11): which queue pair datagrams for a service go to.
#include "nic_model/connect/cm.h"

namespace rocebox::nic_model {

// As long as its request may come again.
void ConnectionManager::keep_resolved(Context& context, Connection& c) {
  leave_backlog(c);
  c.state = ConnectionState::kSidrReplied;
  context.arm(c.timer, context.now() + own_timeout() * (core_.config.cm_retries + 1));
  resolved_.push_back(c.id);
  if (resolved_.size() <= kResolutionsKept) return;
  if (Connection* oldest = find(resolved_.front())) release(context, *oldest);
  resolved_.pop_front();
}

Counter& ConnectionManager::refuse(Context& context, Packet packet, roce::CmSidrStatus status) {
  const auto& req = *roce::cm_message<roce::CmSidrReq>(packet);
  roce::CmWholeSidrRep whole{};
  whole.reply.request_id = static_cast<std::uint32_t>(req.request_id);
  whole.reply.status = static_cast<std::uint8_t>(status);
  whole.reply.service_id = req.service_id.get();
  reply(context, packet, whole);
  return drop_refused_;
}

Counter& ConnectionManager::on_resolution(Context& context, Packet packet) {
  const auto& req = *roce::cm_message<roce::CmSidrReq>(packet);
  const roce::IpAddress remote = roce::addresses(packet).source;
  const std::uint32_t request = static_cast<std::uint32_t>(req.request_id);
  if (Connection* c = find({remote, request, Number::kSidr})) {
    if (c->state == ConnectionState::kSidrReplied) transmit(context, *c);
    return duplicates_;
  }
  std::uint32_t place = 0;
  Listener* listener = find_listener(req.service_id, place);
  if (!listener) return refuse(context, packet, roce::CmSidrStatus::kUnsupported);
  if (listener->space != PortSpace::kUdp || !has_ip_header(roce::cm_private_data<roce::CmSidrReq>(packet)))
    return refuse(context, packet, roce::CmSidrStatus::kRejected);
  if (listener->pending >= listener->backlog) return refuse(context, packet, roce::CmSidrStatus::kNoQp);
  Connection* c = make(context, listener->program, remote);
  if (!c) return refuse(context, packet, roce::CmSidrStatus::kNoQp);
  const auto data = roce::cm_private_data<roce::CmSidrReq>(packet);
  listener->pending++;
  c->listener = place;
  c->space = PortSpace::kUdp;
  c->state = ConnectionState::kSidrReceived;
  c->port = static_cast<std::uint16_t>(req.service_id);
  c->remote_port = static_cast<std::uint16_t>(reinterpret_cast<const roce::IpCmHeader*>(data.data())->source_port);
  c->transaction = roce::mad(packet)->transaction_id;
  c->headers = Gsi::headers_back(packet);
  c->path_known = true;
  c->remote_id = request;
  by_remote_[{remote, request, Number::kSidr}] = c->id;
  tell(*c, event_of(*c, ConnectionEventType::kConnectRequest), data.subspan(sizeof(roce::IpCmHeader)));
  return core_.count.delivered;
}

Counter& ConnectionManager::on_resolved(Context& context, Packet packet) {
  const auto& rep = roce::cm_message<roce::CmWholeSidrRep>(packet)->reply;
  Connection* c = find(static_cast<std::uint32_t>(rep.request_id));
  if (!c || c->remote != roce::addresses(packet).source || c->space != PortSpace::kUdp) return drop_unknown_;
  if (c->state != ConnectionState::kSidrSent) return drop_state_;
  const bool is_valid = rep.status == static_cast<std::uint8_t>(roce::CmSidrStatus::kValid);
  ConnectionEvent event =
      event_of(*c, is_valid ? ConnectionEventType::kEstablished : ConnectionEventType::kRejected, rep.status);
  event.remote_qpn = static_cast<std::uint32_t>(rep.qpn);
  event.qkey = static_cast<std::uint32_t>(rep.qkey);
  tell(*c, event, roce::cm_private_data<roce::CmWholeSidrRep>(packet));
  if (is_valid) established_.add();
  release(context, *c);
  return core_.count.delivered;
}

}  // namespace rocebox::nic_model
