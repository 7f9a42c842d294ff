// SPDX-License-Identifier: BSD-3-Clause
// The table of connections, what sends their messages again, and the states of their queue pairs.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "nic_model/connect/cm.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::nic_model {

ConnectionManager::ConnectionManager(Core& core, Neighbors& neighbors, Gsi& gsi, Stats& s, Modify modify)
    : core_(core),
      neighbors_(neighbors),
      gsi_(gsi),
      modify_(std::move(modify)),
      retried_(s.counter("cm_retries", "messages of RDMA CM sent again, since no response came")),
      duplicates_(s.counter("cm_duplicates", "messages of RDMA CM that had come before")),
      drop_unknown_(s.counter("drop_cm_unknown", "a message of RDMA CM for no connection or service that there is")),
      drop_refused_(s.counter("drop_cm_refused", "a REQ, REP or SIDR_REQ of RDMA CM that was refused")),
      drop_state_(s.counter("drop_cm_state", "a message of RDMA CM that the connection's state has no use for")),
      rejects_sent_(s.counter("cm_rejects_sent", "REJs sent")),
      established_(s.counter("cm_connections", "connections of RDMA CM established")) {}

Nanos ConnectionManager::own_timeout() const {
  return cm_span(static_cast<unsigned>(core_.config.cm_response_timeout));
}

Connection* ConnectionManager::find(ConnectionId id) {
  const std::uint32_t slot = id & (kConnectionsMax - 1);
  if (slot >= slots_.size()) return nullptr;
  Connection& c = slots_[slot];
  return c.state != ConnectionState::kFree && c.id == id ? &c : nullptr;
}

Connection* ConnectionManager::find(const RemoteKey& key) {
  const auto found = by_remote_.find(key);
  return found == by_remote_.end() ? nullptr : find(found->second);
}

ConnectionManager::Listener* ConnectionManager::find_listener(std::uint64_t service_id, std::uint32_t& number) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listener& one) { return one.service_id == service_id; });
  number = static_cast<std::uint32_t>(found - listeners_.begin());
  return found == listeners_.end() || service_id == 0 ? nullptr : &*found;
}

// A slot's identifiers are 2^15 - 1 that come in turn, so that late messages of a former connection meet none. Where
// they begin follows from the time: a NIC that was started anew on a live wire does not use those of the one before it.
Connection* ConnectionManager::make(const Context& context, std::uint32_t program, const roce::IpAddress& remote) {
  std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (slot < kConnectionsMax) {
    slots_.emplace_back(slot);
    slots_.back().serial = static_cast<std::uint32_t>(splitmix64::of(static_cast<std::uint64_t>(context.now())) >> 32);
  } else {
    return nullptr;
  }
  Connection& c = slots_[slot];
  const std::uint32_t serial = c.serial % ((1u << (32 - kConnectionBits)) - 1) + 1;
  static_cast<ConnectionFields&>(c) = ConnectionFields();
  c.serial = serial;
  c.id = serial << kConnectionBits | slot;
  c.program = program;
  c.remote = remote;
  return &c;
}

void ConnectionManager::forget(Connection& c, Number kind, std::uint32_t number) {
  const auto found = by_remote_.find({c.remote, number, kind});
  if (found != by_remote_.end() && found->second == c.id) by_remote_.erase(found);
}

void ConnectionManager::leave_backlog(Connection& c) {
  if (c.listener != UINT32_MAX) listeners_[c.listener].pending--;
  c.listener = UINT32_MAX;
}

void ConnectionManager::release(Context& context, Connection& c) {
  context.cancel(c.timer);
  leave_backlog(c);
  forget(c, Number::kRequest, c.remote_id);
  forget(c, Number::kSidr, c.remote_id);
  forget(c, Number::kQp, c.remote_qpn);
  c.state = ConnectionState::kFree;
  free_.push_back(c.id & (kConnectionsMax - 1));
}

// Sends what was written, and sends it again `retries` times at most.
void ConnectionManager::begin(Context& context, Connection& c, ConnectionState state, std::int64_t retries,
                              Nanos interval) {
  c.state = state;
  c.tries = 0;
  c.retries = retries;
  c.interval = interval;
  if (!transmit(context, c)) waiting_.push_back(c.id);
  context.arm(c.timer, context.now() + interval);
}

bool ConnectionManager::transmit(Context& context, Connection& c) {
  if (!c.path_known) {
    const roce::Mac* mac = neighbors_.resolve(context, c.remote);
    if (!mac) return false;
    c.headers = gsi_.headers_to(c.remote, *mac);
    c.path_known = true;
  }
  gsi_.send(context, c.headers, c.mad);
  return true;
}

void ConnectionManager::on_neighbor(Context& context) {
  for (const ConnectionId id : std::exchange(waiting_, {}))
    if (Connection* c = find(id); c && !c->path_known && !transmit(context, *c)) waiting_.push_back(id);
}

void ConnectionManager::on_timer(Context& context, std::uint32_t slot) {
  Connection& c = slots_[slot];
  switch (c.state) {
    case ConnectionState::kReqSent:
    case ConnectionState::kRepSent:
    case ConnectionState::kDreqSent:
    case ConnectionState::kSidrSent:
      if (c.tries++ < c.retries) {
        if (transmit(context, c)) retried_.add();
        context.arm(c.timer, context.now() + c.interval);
      } else if (c.state == ConnectionState::kDreqSent) {
        enter_timewait(context, c);
      } else {
        stop(context, c);
        end(context, c, ConnectionEventType::kUnreachable, c.path_known ? ETIMEDOUT : EHOSTUNREACH);
      }
      break;
    case ConnectionState::kTimewait:
      end(context, c, ConnectionEventType::kTimewaitExit, 0);
      break;
    case ConnectionState::kSidrReplied:
      release(context, c);
      break;
    case ConnectionState::kFree:
    case ConnectionState::kReqReceived:
    case ConnectionState::kEstablished:
    case ConnectionState::kSidrReceived:
      break;
  }
}

Progress ConnectionManager::progress(std::uint32_t program) const {
  Progress sum;
  for (const Connection& c : slots_) {
    if (c.state == ConnectionState::kFree || c.program != program) continue;
    sum.add(static_cast<std::uint64_t>(c.tries), c.timer.armed() ? c.timer.at() : 0);
    if (!c.path_known) sum.add(neighbors_.progress());
  }
  return sum;
}

// As long as packets of the connection may still be under way (12.9.8.4), neither its numbers nor its queue pair begin
// another one. With which queue pair the other side begins one is its own matter, as ib_cm has it: one that was started
// anew may have the same.
void ConnectionManager::enter_timewait(Context& context, Connection& c) {
  c.state = ConnectionState::kTimewait;
  leave_backlog(c);
  forget(c, Number::kQp, c.remote_qpn);
  context.arm(c.timer, context.now() + cm_span(c.ack_timeout));
  tell(c, ConnectionEventType::kDisconnected);
}

ConnectionEvent ConnectionManager::event_of(const Connection& c, ConnectionEventType type, int status) const {
  ConnectionEvent event;
  event.type = type;
  event.id = c.id;
  event.program = c.program;
  event.space = c.space;
  event.status = status;
  event.port = c.port;
  event.remote_port = c.remote_port;
  event.remote = c.remote;
  event.responder_resources = c.responder_resources;
  event.initiator_depth = c.initiator_depth;
  event.remote_qpn = c.remote_qpn;
  return event;
}

void ConnectionManager::tell(const Connection& c, ConnectionEventType type, int status) {
  if (c.events) events_.push_back(event_of(c, type, status));
}

void ConnectionManager::tell(const Connection& c, ConnectionEvent event, std::span<const std::uint8_t> private_data) {
  event.private_data_bytes = static_cast<std::uint8_t>(std::min(private_data.size(), event.private_data.size()));
  std::copy_n(private_data.begin(), event.private_data_bytes, event.private_data.begin());
  if (c.events) events_.push_back(event);
}

void ConnectionManager::end(Context& context, Connection& c, ConnectionEventType type, int status) {
  tell(c, type, status);
  release(context, c);
}

bool ConnectionManager::is_taken(const Qp& qp, const Connection* by) const {
  const Connection* c = find(qp.connection);
  return c && c != by;
}

// As librdmacm moves a queue pair when both sides' attributes are known: INIT, RTR, RTS.
int ConnectionManager::ready(Context& context, Connection& c) {
  Qp* qp = core_.find(c.qpn);
  if (!qp || qp->connection != c.id) return EINVAL;  // it has gone, and another one may have its number
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (c.responder_resources) a.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  int error = modify_(context, *qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = static_cast<ibv_mtu>(std::countr_zero(c.path_mtu) - 7);
  a.dest_qp_num = c.remote_qpn;
  a.rq_psn = c.receive_psn;
  a.max_dest_rd_atomic = std::min<std::uint8_t>(c.responder_resources, kRdAtomicMax);
  a.min_rnr_timer = c.min_rnr_timer;
  a.ah_attr.is_global = 1;
  std::copy(c.remote.begin(), c.remote.end(), a.ah_attr.grh.dgid.raw);
  a.ah_attr.grh.traffic_class = c.traffic_class;
  if (!error)
    error = modify_(context, *qp, a,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = c.send_psn;
  a.timeout = c.own_ack_timeout ? c.own_ack_timeout : c.ack_timeout;
  a.retry_cnt = c.retry_count;
  a.rnr_retry = c.rnr_retry_count;
  a.max_rd_atomic = std::min<std::uint8_t>(c.initiator_depth, kRdAtomicMax);
  if (!error)
    error = modify_(
        context, *qp, a,
        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  c.has_moved = !error;
  return error;
}

void ConnectionManager::stop(Context& context, Connection& c) {
  Qp* qp = core_.find(c.qpn);
  if (!c.has_moved || !qp || qp->connection != c.id) return;  // not moved, or another's now
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  modify_(context, *qp, a, IBV_QP_STATE);
}

}  // namespace rocebox::nic_model
