// SPDX-License-Identifier: BSD-3-Clause
// What programs ask of the connection manager, and the messages that say so.
#include "nic_model/connect/cm.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace rocebox::nic_model {
namespace {

constexpr unsigned kPacketLifetime = 16;  // rdma_cm's for RoCE: 4.096 us * 2^16
constexpr unsigned kTargetAckDelay = 15;  // as Soft-RoCE says of itself
constexpr std::uint16_t kNoLid = 0xFFFF;  // RoCE has none
constexpr std::uint16_t kFirstEphemeralPort = 0xC000, kEphemeralPorts = 0x4000;

std::uint64_t service_id(PortSpace space, std::uint16_t port) {
  return roce::kIpCmService | (space == PortSpace::kTcp ? roce::kIpCmTcp : roce::kIpCmUdp) | port;
}

// EUI-64 of a MAC address.
std::uint64_t ca_guid(const roce::Mac& mac) {
  return std::uint64_t{mac[0] ^ 2u} << 56 | std::uint64_t{mac[1]} << 48 | std::uint64_t{mac[2]} << 40 |
         std::uint64_t{0xFFFE} << 24 | std::uint64_t{mac[3]} << 16 | std::uint64_t{mac[4]} << 8 | mac[5];
}

// IP CM's header and the program's own private data behind it.
struct IpPrivateData {
  std::array<std::uint8_t, sizeof(roce::IpCmHeader) + PrivateDataMax::kResolve> bytes{};
  std::size_t size = sizeof(roce::IpCmHeader);

  IpPrivateData(const Connection& c, const roce::IpAddress& own, std::span<const std::uint8_t> more) {
    roce::IpCmHeader header{};
    const bool is_ipv4 = roce::is_ipv4(c.remote);
    header.ip_version = is_ipv4 ? 0x40 : 0x60;
    header.source_port = c.remote_port;
    const std::size_t first = is_ipv4 ? 12 : 0;
    std::copy(own.begin() + first, own.end(), header.source + first);
    std::copy(c.remote.begin() + first, c.remote.end(), header.destination + first);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::copy(more.begin(), more.end(), bytes.begin() + sizeof header);
    size += more.size();
  }
  std::span<const std::uint8_t> span() const { return {bytes.data(), size}; }
};

bool options_fit(const ConnectionOptions& o) {
  return o.retry_count <= 7 && o.rnr_retry_count <= 7 && o.min_rnr_timer <= 31 && o.ack_timeout <= 31 &&
         std::has_single_bit(o.path_mtu) && o.path_mtu >= 256 && o.path_mtu <= 4096;
}

bool may_connect(const Qp& qp) {
  return qp.is(IBV_QPT_RC) && (qp.attributes.state == IBV_QPS_RESET || qp.attributes.state == IBV_QPS_INIT);
}

}  // namespace

int ConnectionManager::listen(std::uint32_t program, PortSpace space, std::uint16_t port, std::uint32_t backlog) {
  if (port == 0 || backlog == 0 || backlog > kBacklogMax) return EINVAL;
  std::uint32_t number = 0;
  if (find_listener(service_id(space, port), number)) return EADDRINUSE;
  const Listener listener{program, backlog, 0, service_id(space, port), space};
  for (Listener& one : listeners_)
    if (one.service_id == 0 && one.pending == 0) return one = listener, 0;
  if (listeners_.size() >= kListenersMax) return ENOMEM;
  listeners_.push_back(listener);
  return 0;
}

int ConnectionManager::close(Context& context, PortSpace space, std::uint16_t port) {
  std::uint32_t number = 0;
  Listener* listener = find_listener(service_id(space, port), number);
  if (!listener) return ENOENT;
  listener->service_id = 0;
  std::vector<ConnectionId> untold;
  for (const ConnectionEvent& event : events_)
    if (event.type == ConnectionEventType::kConnectRequest && event.space == space && event.port == port)
      untold.push_back(event.id);
  for (const ConnectionId id : untold) destroy(context, id);
  return 0;
}

int ConnectionManager::connect(Context& context, std::uint32_t program, const roce::IpAddress& remote, PortSpace space,
                               std::uint16_t port, Qp* qp, const ConnectionOptions& options, ConnectionId& id) {
  const bool is_tcp = space == PortSpace::kTcp;
  const std::size_t data_max = is_tcp ? PrivateDataMax::kConnect : PrivateDataMax::kResolve;
  if (port == 0 || !options_fit(options) || options.private_data.size() > data_max) return EINVAL;
  if (is_tcp && (!qp || !may_connect(*qp) || is_taken(*qp, nullptr))) return EINVAL;
  if (!core_.config.has_source_for(remote)) return EADDRNOTAVAIL;
  Connection* c = make(context, program, remote);
  if (!c) return ENOMEM;
  id = c->id;
  c->is_active = true;
  c->space = space;
  c->port = port;
  c->remote_port = static_cast<std::uint16_t>(kFirstEphemeralPort + (c->id & (kConnectionsMax - 1)) % kEphemeralPorts);
  c->transaction = c->id;
  if (is_tcp) {
    c->qpn = qp->number();
    qp->connection = id;
    c->receive_psn = static_cast<std::uint32_t>(context.random()) & 0xFFFFFF;
    write_request(*c, options);
  } else {
    write_resolution(*c, options);
  }
  begin(context, *c, is_tcp ? ConnectionState::kReqSent : ConnectionState::kSidrSent, core_.config.cm_retries,
        own_timeout());
  return 0;
}

void ConnectionManager::write_request(Connection& c, const ConnectionOptions& o) {
  c.responder_resources = o.responder_resources;
  c.initiator_depth = o.initiator_depth;
  c.retry_count = o.retry_count;
  c.min_rnr_timer = o.min_rnr_timer;
  c.own_ack_timeout = o.ack_timeout;
  c.ack_timeout = kPacketLifetime + 1;
  c.path_mtu = std::min(o.path_mtu, core_.config.path_mtu_max());
  c.traffic_class = o.traffic_class;
  const roce::IpAddress own = core_.config.source_for(c.remote);
  const auto timeout = static_cast<unsigned>(core_.config.cm_response_timeout);
  roce::CmWholeReq whole{};
  roce::CmReq& req = whole.request;
  req.local_communication_id = c.id;
  req.service_id = service_id(c.space, c.port);
  req.local_ca_guid = ca_guid(core_.config.mac_address());
  req.local_qpn = c.qpn;
  req.responder_resources = o.responder_resources;
  req.initiator_depth = o.initiator_depth;
  req.timeout_service_flow = static_cast<std::uint8_t>(timeout << 3);
  req.starting_psn = c.receive_psn;
  req.timeout_retries = static_cast<std::uint8_t>(timeout << 3 | o.retry_count);
  req.pkey = 0xFFFF;
  const auto mtu = static_cast<unsigned>(std::countr_zero(c.path_mtu)) - 7;
  req.mtu_rdc_rnr = static_cast<std::uint8_t>(mtu << 4 | o.rnr_retry_count);
  const Qp* qp = core_.find(c.qpn);
  const bool has_srq = qp && qp->init.shared_receive_queue;
  req.retries_srq_type = static_cast<std::uint8_t>(core_.config.cm_retries << 4 | has_srq << 3);
  req.primary_local_lid = req.primary_remote_lid = kNoLid;
  std::copy(own.begin(), own.end(), req.primary_local_gid);
  std::copy(c.remote.begin(), c.remote.end(), req.primary_remote_gid);
  whole.primary.traffic_class = o.traffic_class;
  whole.primary.hop_limit = 64;
  whole.primary.ack_timeout = static_cast<std::uint8_t>((o.ack_timeout ? o.ack_timeout : kPacketLifetime + 1) << 3);
  write(c, whole, IpPrivateData(c, own, o.private_data).span());
}

void ConnectionManager::write_resolution(Connection& c, const ConnectionOptions& o) {
  roce::CmSidrReq req{};
  req.request_id = c.id;
  req.pkey = 0xFFFF;
  req.service_id = service_id(c.space, c.port);
  write(c, req, IpPrivateData(c, core_.config.source_for(c.remote), o.private_data).span());
}

int ConnectionManager::accept(Context& context, ConnectionId id, Qp& qp, const ConnectionOptions& options) {
  Connection* c = find(id);
  if (!c) return ENOENT;
  const bool is_tcp = c->space == PortSpace::kTcp;
  if (c->state != (is_tcp ? ConnectionState::kReqReceived : ConnectionState::kSidrReceived)) return EINVAL;
  const std::size_t data_max = is_tcp ? PrivateDataMax::kAccept : PrivateDataMax::kResolved;
  if (!options_fit(options) || options.private_data.size() > data_max) return EINVAL;
  if (is_tcp ? !may_connect(qp) || is_taken(qp, c) : !qp.is(IBV_QPT_UD)) return EINVAL;
  c->qpn = qp.number();
  if (!is_tcp) {
    write_resolved(*c, options);
    transmit(context, *c);
    keep_resolved(context, *c);
    return 0;
  }
  qp.connection = id;
  c->receive_psn = static_cast<std::uint32_t>(context.random()) & 0xFFFFFF;
  c->responder_resources = std::min(c->responder_resources, options.responder_resources);
  c->initiator_depth = std::min(c->initiator_depth, options.initiator_depth);
  c->min_rnr_timer = options.min_rnr_timer;
  c->own_ack_timeout = options.ack_timeout;
  if (const int error = ready(context, *c)) return error;
  write_reply(*c, options);
  begin(context, *c, ConnectionState::kRepSent, c->retries, c->interval);
  return 0;
}

void ConnectionManager::write_reply(Connection& c, const ConnectionOptions& o) {
  roce::CmRep rep{};
  rep.local_communication_id = c.id;
  rep.remote_communication_id = c.remote_id;
  rep.local_qpn = c.qpn;
  rep.starting_psn = c.receive_psn;
  rep.responder_resources = c.responder_resources;
  rep.initiator_depth = c.initiator_depth;
  rep.delay_failover_flow = kTargetAckDelay << 3;
  const Qp* qp = core_.find(c.qpn);
  const bool has_srq = qp && qp->init.shared_receive_queue;
  rep.rnr_srq = static_cast<std::uint8_t>(o.rnr_retry_count << 5 | has_srq << 4);
  rep.local_ca_guid = ca_guid(core_.config.mac_address());
  write(c, rep, o.private_data);
}

void ConnectionManager::write_resolved(Connection& c, const ConnectionOptions& o) {
  roce::CmWholeSidrRep whole{};
  whole.reply.request_id = c.remote_id;
  whole.reply.qpn = c.qpn;
  whole.reply.service_id = service_id(c.space, c.port);
  whole.reply.qkey = o.qkey;
  write(c, whole, o.private_data);
}

int ConnectionManager::reject(Context& context, ConnectionId id, std::span<const std::uint8_t> private_data) {
  Connection* c = find(id);
  if (!c) return ENOENT;
  const bool is_tcp = c->space == PortSpace::kTcp;
  if (c->state != (is_tcp ? ConnectionState::kReqReceived : ConnectionState::kSidrReceived)) return EINVAL;
  if (private_data.size() > (is_tcp ? PrivateDataMax::kReject : PrivateDataMax::kResolved)) return EINVAL;
  if (is_tcp) {
    send_reject(context, *c, roce::CmReject::kConsumer, private_data);
  } else {
    roce::CmWholeSidrRep whole{};
    whole.reply.request_id = c->remote_id;
    whole.reply.status = static_cast<std::uint8_t>(roce::CmSidrStatus::kRejected);
    whole.reply.service_id = service_id(c->space, c->port);
    write(*c, whole, private_data);
    transmit(context, *c);
  }
  release(context, *c);
  return 0;
}

void ConnectionManager::send_reject(Context& context, Connection& c, roce::CmReject reason,
                                    std::span<const std::uint8_t> private_data) {
  roce::CmWholeRej whole{};
  whole.reject.local_communication_id = c.id;
  whole.reject.remote_communication_id = c.remote_id;
  whole.reject.reason = static_cast<std::uint16_t>(reason);
  whole.reject.message = c.state == ConnectionState::kReqReceived ? 0 : 2 << 6;
  if (!c.is_answered()) {  // who it is that gives up: its CA's GUID, since the other side has said no identifier
    const std::uint64_t guid = ca_guid(core_.config.mac_address());
    for (unsigned i = 0; i < 8; i++) whole.information[i] = static_cast<std::uint8_t>(guid >> (56 - 8 * i));
    whole.reject.info_length = 8 << 1;
  }
  write(c, whole, private_data);
  if (transmit(context, c)) rejects_sent_.add();
}

int ConnectionManager::disconnect(Context& context, ConnectionId id) {
  Connection* c = find(id);
  if (!c) return ENOENT;
  if (c->state != ConnectionState::kEstablished) return EINVAL;
  release_connection(context, *c);
  return 0;
}

// Puts the queue pair in the error state, then asks the other side to end, too.
void ConnectionManager::release_connection(Context& context, Connection& c) {
  stop(context, c);
  roce::CmDreq dreq{};
  dreq.local_communication_id = c.id;
  dreq.remote_communication_id = c.remote_id;
  dreq.remote_qpn = c.remote_qpn;
  write(c, dreq);
  begin(context, c, ConnectionState::kDreqSent, c.retries, c.interval);
}

int ConnectionManager::destroy(Context& context, ConnectionId id) {
  const auto untold = std::erase_if(events_, [&](const ConnectionEvent& event) { return event.id == id; });
  Connection* c = find(id);
  if (!c) return untold ? 0 : ENOENT;  // one that has ended names something until its last event is told
  c->events = false;
  switch (c->state) {
    case ConnectionState::kReqSent:
      send_reject(context, *c, roce::CmReject::kTimeout, {});
      release(context, *c);
      break;
    case ConnectionState::kReqReceived:
    case ConnectionState::kSidrReceived:
      return reject(context, id, {});
    case ConnectionState::kRepSent:
      stop(context, *c);
      send_reject(context, *c, roce::CmReject::kConsumer, {});
      enter_timewait(context, *c);
      break;
    case ConnectionState::kEstablished:
      release_connection(context, *c);
      break;
    case ConnectionState::kSidrSent:
      release(context, *c);
      break;
    case ConnectionState::kFree:
    case ConnectionState::kDreqSent:
    case ConnectionState::kTimewait:
    case ConnectionState::kSidrReplied:
      break;
  }
  return 0;
}

}  // namespace rocebox::nic_model
