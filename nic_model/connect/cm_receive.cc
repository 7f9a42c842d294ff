// SPDX-License-Identifier: BSD-3-Clause
// What the connection manager does with messages of others (IB specification, volume 1, 12.9).
#include "nic_model/connect/cm.h"

namespace rocebox::nic_model {
namespace {

constexpr unsigned kOfRequest = 0, kOfReply = 1;  // what an MRA or REJ is for
constexpr unsigned kServiceTimeout = 24;          // an MRA of rdma_cm: 4.096 us * 2^24

std::uint32_t number(const roce::Be32& id) { return static_cast<std::uint32_t>(id); }

template <class T>
const T& message(Packet packet) {
  return *roce::cm_message<T>(packet);
}

// A local ACK timeout of a path where the other side takes its time to answer, as ib_cm's cm_ack_timeout.
std::uint8_t ack_timeout(unsigned delay, unsigned path) {
  const unsigned code = path >= delay ? path + (delay + 1 >= path) : delay + (path + 1 >= delay);
  return static_cast<std::uint8_t>(std::min(code, 31u));
}

}  // namespace

Counter& ConnectionManager::receive(Context& context, Packet packet) {
  switch (static_cast<roce::CmAttribute>(roce::cm_attribute(*roce::mad(packet)))) {
    case roce::CmAttribute::kReq:
      return on_request(context, packet);
    case roce::CmAttribute::kMra:
      return on_receipt(context, packet);
    case roce::CmAttribute::kRej:
      return on_reject(context, packet);
    case roce::CmAttribute::kRep:
      return on_reply(context, packet);
    case roce::CmAttribute::kRtu:
      return on_ready(context, packet);
    case roce::CmAttribute::kDreq:
      return on_release(context, packet);
    case roce::CmAttribute::kDrep:
      return on_released(context, packet);
    case roce::CmAttribute::kSidrReq:
      return on_resolution(context, packet);
    case roce::CmAttribute::kSidrRep:
      return on_resolved(context, packet);
    case roce::CmAttribute::kLap:  // RoCE has no alternate paths
    case roce::CmAttribute::kApr:
      break;
  }
  return drop_unknown_;
}

// The connection that a message with both sides' identifiers is of.
template <class T>
Connection* ConnectionManager::addressed(Packet packet, const T& m) {
  Connection* c = find(number(m.remote_communication_id));
  if (!c || c->space != PortSpace::kTcp || c->remote != roce::addresses(packet).source) return nullptr;
  return !c->is_answered() || c->remote_id == number(m.local_communication_id) ? c : nullptr;
}

// Answers a REQ or a REP.
Counter& ConnectionManager::refuse(Context& context, Packet packet, roce::CmReject reason) {
  roce::CmWholeRej whole{};
  if (const auto* rep = roce::cm_message<roce::CmRep>(packet)) {
    whole.reject.local_communication_id = rep->remote_communication_id;
    whole.reject.remote_communication_id = rep->local_communication_id;
    whole.reject.message = kOfReply << 6;
  } else {
    whole.reject.remote_communication_id = message<roce::CmReq>(packet).local_communication_id;
    whole.reject.message = kOfRequest << 6;
  }
  whole.reject.reason = static_cast<std::uint16_t>(reason);
  rejects_sent_.add();
  reply(context, packet, whole);
  return drop_refused_;
}

// A queue pair that is still connected here has been given up over there: that connection is ended, too (12.9.8.3.1).
Counter& ConnectionManager::refuse_stale(Context& context, Packet packet, Connection& old) {
  if (old.state == ConnectionState::kEstablished) release_connection(context, old);
  return refuse(context, packet, roce::CmReject::kStaleConnection);
}

bool ConnectionManager::has_ip_header(std::span<const std::uint8_t> private_data) {
  const auto& ip = *reinterpret_cast<const roce::IpCmHeader*>(private_data.data());
  return private_data.size() >= sizeof ip && ip.version == 0 && (ip.ip_version >> 4 == 4 || ip.ip_version >> 4 == 6);
}

Counter& ConnectionManager::on_request(Context& context, Packet packet) {
  const roce::CmReq& req = message<roce::CmWholeReq>(packet).request;
  const roce::IpAddress remote = roce::addresses(packet).source;
  if (Connection* c = find({remote, number(req.local_communication_id), Number::kRequest}))
    return on_request_again(context, packet, *c);
  std::uint32_t place = 0;
  Listener* listener = find_listener(req.service_id, place);
  if (!listener) return refuse(context, packet, roce::CmReject::kInvalidServiceId);
  if (req.transport_service() != 0) return refuse(context, packet, roce::CmReject::kInvalidTransport);
  if (req.path_mtu() == 0 || req.path_mtu() > core_.config.path_mtu_max())
    return refuse(context, packet, roce::CmReject::kInvalidMtu);
  // As rdma_cm, which compares the service's kind with the message's, too (cma_ib_check_req_qp_type).
  if (listener->space != PortSpace::kTcp || !has_ip_header(roce::cm_private_data<roce::CmWholeReq>(packet)))
    return refuse(context, packet, roce::CmReject::kConsumer);
  if (Connection* old = find({remote, static_cast<std::uint32_t>(req.local_qpn), Number::kQp}))
    return refuse_stale(context, packet, *old);
  if (listener->pending >= listener->backlog) return refuse(context, packet, roce::CmReject::kNoResources);
  return take_request(context, packet, *listener, place);
}

Counter& ConnectionManager::take_request(Context& context, Packet packet, Listener& listener, std::uint32_t place) {
  const auto& whole = message<roce::CmWholeReq>(packet);
  const roce::CmReq& req = whole.request;
  Connection* c = make(context, listener.program, roce::addresses(packet).source);
  if (!c) return refuse(context, packet, roce::CmReject::kNoResources);
  const auto data = roce::cm_private_data<roce::CmWholeReq>(packet);
  listener.pending++;
  c->listener = place;
  c->state = ConnectionState::kReqReceived;
  c->port = static_cast<std::uint16_t>(req.service_id);
  c->remote_port = static_cast<std::uint16_t>(reinterpret_cast<const roce::IpCmHeader*>(data.data())->source_port);
  c->transaction = roce::mad(packet)->transaction_id;
  c->headers = Gsi::headers_back(packet);
  c->path_known = true;
  c->remote_id = number(req.local_communication_id);
  c->remote_qpn = static_cast<std::uint32_t>(req.local_qpn);
  c->send_psn = static_cast<std::uint32_t>(req.starting_psn);
  c->path_mtu = req.path_mtu();
  // What is the other side's initiator is this side's responder.
  c->responder_resources = req.initiator_depth;
  c->initiator_depth = req.responder_resources;
  c->retry_count = req.timeout_retries & 7;
  c->rnr_retry_count = req.mtu_rdc_rnr & 7;
  c->ack_timeout = whole.primary.ack_timeout >> 3;
  c->traffic_class = whole.primary.traffic_class;
  c->retries = req.retries_srq_type >> 4;
  c->interval = cm_span(req.timeout_retries >> 3);
  by_remote_[{c->remote, c->remote_id, Number::kRequest}] = c->id;
  by_remote_[{c->remote, c->remote_qpn, Number::kQp}] = c->id;
  tell(*c, event_of(*c, ConnectionEventType::kConnectRequest), data.subspan(sizeof(roce::IpCmHeader)));
  return core_.count.delivered;
}

Counter& ConnectionManager::on_request_again(Context& context, Packet packet, Connection& c) {
  if (c.state == ConnectionState::kTimewait) return refuse(context, packet, roce::CmReject::kStaleConnection);
  if (c.state == ConnectionState::kRepSent) {
    transmit(context, c);
  } else if (c.state == ConnectionState::kReqReceived) {
    roce::CmMra mra{};  // the program has not decided yet
    mra.local_communication_id = c.id;
    mra.remote_communication_id = c.remote_id;
    mra.message = kOfRequest << 6;
    mra.service_timeout = kServiceTimeout << 3;
    reply(context, packet, mra);
  }
  return duplicates_;
}

Counter& ConnectionManager::on_reply(Context& context, Packet packet) {
  const auto& rep = message<roce::CmRep>(packet);
  Connection* c = addressed(packet, rep);
  if (!c || !c->is_active) return refuse(context, packet, roce::CmReject::kInvalidCommunicationId);
  if (c->state == ConnectionState::kEstablished) return transmit(context, *c), duplicates_;  // the RTU was lost
  if (c->state != ConnectionState::kReqSent) return drop_state_;
  const auto qpn = static_cast<std::uint32_t>(rep.local_qpn);
  if (Connection* old = find({c->remote, qpn, Number::kQp})) return refuse_stale(context, packet, *old);
  c->remote_id = number(rep.local_communication_id);
  c->remote_qpn = qpn;
  c->send_psn = static_cast<std::uint32_t>(rep.starting_psn);
  c->responder_resources = rep.initiator_depth;
  c->initiator_depth = rep.responder_resources;
  c->rnr_retry_count = rep.rnr_srq >> 5;
  c->ack_timeout = ack_timeout(rep.delay_failover_flow >> 3, c->ack_timeout);
  by_remote_[{c->remote, qpn, Number::kQp}] = c->id;
  if (const int error = ready(context, *c)) {
    stop(context, *c);
    end(context, *c, ConnectionEventType::kConnectError, error);
    return refuse(context, packet, roce::CmReject::kConsumer);
  }
  roce::CmRtu rtu{};
  rtu.local_communication_id = c->id;
  rtu.remote_communication_id = c->remote_id;
  write(*c, rtu);
  context.cancel(c->timer);
  c->state = ConnectionState::kEstablished;
  established_.add();
  transmit(context, *c);
  tell(*c, event_of(*c, ConnectionEventType::kEstablished), roce::cm_private_data<roce::CmRep>(packet));
  return core_.count.delivered;
}

Counter& ConnectionManager::on_ready(Context& context, Packet packet) {
  Connection* c = addressed(packet, message<roce::CmRtu>(packet));
  if (!c) return drop_unknown_;
  if (c->state == ConnectionState::kEstablished) return duplicates_;
  if (c->state != ConnectionState::kRepSent) return drop_state_;
  context.cancel(c->timer);
  leave_backlog(*c);
  c->state = ConnectionState::kEstablished;
  established_.add();
  tell(*c, event_of(*c, ConnectionEventType::kEstablished), roce::cm_private_data<roce::CmRtu>(packet));
  return core_.count.delivered;
}

Counter& ConnectionManager::on_receipt(Context& context, Packet packet) {
  const auto& mra = message<roce::CmMra>(packet);
  Connection* c = addressed(packet, mra);
  if (!c) return drop_unknown_;
  const unsigned of = mra.message >> 6;
  if (of == kOfRequest ? c->state != ConnectionState::kReqSent
                       : of != kOfReply || c->state != ConnectionState::kRepSent)
    return drop_state_;
  context.arm(c->timer, context.now() + c->interval + cm_span(mra.service_timeout >> 3));
  return core_.count.delivered;
}

Counter& ConnectionManager::on_reject(Context& context, Packet packet) {
  const roce::CmRej& rej = message<roce::CmWholeRej>(packet).reject;
  // Who gives up before there was an answer knows its own identifier alone.
  const bool gives_up = number(rej.remote_communication_id) == 0;
  const RemoteKey key{roce::addresses(packet).source, number(rej.local_communication_id), Number::kRequest};
  Connection* c = gives_up ? find(key) : addressed(packet, rej);
  if (!c) return drop_unknown_;
  if (!gives_up && rej.message >> 6 == kOfRequest && c->state != ConnectionState::kReqSent) return drop_state_;
  ConnectionEvent event = event_of(*c, ConnectionEventType::kRejected, static_cast<std::uint16_t>(rej.reason));
  switch (c->state) {
    case ConnectionState::kReqSent:
    case ConnectionState::kReqReceived:
    case ConnectionState::kRepSent:
      stop(context, *c);
      tell(*c, event, roce::cm_private_data<roce::CmWholeRej>(packet));
      release(context, *c);
      return core_.count.delivered;
    case ConnectionState::kEstablished:  // packets of it may be under way
      stop(context, *c);
      enter_timewait(context, *c);
      return core_.count.delivered;
    case ConnectionState::kDreqSent:
      enter_timewait(context, *c);
      return core_.count.delivered;
    default:
      return drop_state_;
  }
}

Counter& ConnectionManager::on_release(Context& context, Packet packet) {
  const auto& dreq = message<roce::CmDreq>(packet);
  Connection* c = addressed(packet, dreq);
  const bool is_known = find(number(dreq.remote_communication_id)) != nullptr;
  if (is_known && (!c || c->qpn != dreq.remote_qpn || !c->is_answered())) return drop_unknown_;
  roce::CmDrep drep{};  // to those that have forgotten nothing of what is long forgotten here, too
  drep.local_communication_id = dreq.remote_communication_id;
  drep.remote_communication_id = dreq.local_communication_id;
  if (!is_known) return reply(context, packet, drep), drop_unknown_;
  switch (c->state) {
    case ConnectionState::kRepSent:  // the RTU was lost
    case ConnectionState::kEstablished:
    case ConnectionState::kDreqSent:
      // Who has asked to end it has stopped its queue pair, which may be in use again.
      if (c->state != ConnectionState::kDreqSent) stop(context, *c);
      reply(context, packet, drep);
      enter_timewait(context, *c);
      return core_.count.delivered;
    case ConnectionState::kTimewait:
      return reply(context, packet, drep), duplicates_;
    default:
      return drop_state_;
  }
}

Counter& ConnectionManager::on_released(Context& context, Packet packet) {
  Connection* c = addressed(packet, message<roce::CmDrep>(packet));
  if (!c) return drop_unknown_;
  if (c->state == ConnectionState::kTimewait) return duplicates_;
  if (c->state != ConnectionState::kDreqSent) return drop_state_;
  enter_timewait(context, *c);
  return core_.count.delivered;
}

}  // namespace rocebox::nic_model
