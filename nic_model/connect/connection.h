// SPDX-License-Identifier: BSD-3-Clause
// Connection: what RDMA CM knows of one connection, and how programs see it, in rdma_cm's terms (rdma_cm(7)).
#pragma once
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "nic_model/core.h"
#include "runtime/kernel/timer.h"
#include "runtime/roce/mad.h"

namespace rocebox::nic_model {

/// RDMA_PS_TCP: reliable connections; RDMA_PS_UDP: a queue pair number and a Q_Key for datagrams.
enum class PortSpace : std::uint8_t { kTcp, kUdp };

/// A connection's local communication ID. It names nothing any more after the connection's last event.
using ConnectionId = std::uint32_t;

/// rdma_conn_param, and what rdma_set_option sets.
struct ConnectionOptions {
  std::span<const std::uint8_t> private_data;  ///< at most PrivateDataMax
  /// READs and atomics that the other side may have under way towards this one, and this one towards the other; who
  /// accepts gets at most what the request offers.
  std::uint8_t responder_resources = 1, initiator_depth = 1;
  std::uint8_t retry_count = 7;      ///< of both sides, as the active one says
  std::uint8_t rnr_retry_count = 7;  ///< of the other side
  std::uint8_t min_rnr_timer = 0;    ///< verbs' code: 655 ms
  std::uint8_t ack_timeout = 0;      ///< of the own queue pair, verbs' code; 0: as the exchange says
  std::uint32_t path_mtu = 1024;     ///< as the active side says: this, or less where its NIC's `mtu` wants it
  std::uint8_t traffic_class = 0;    ///< as the active side says
  std::uint32_t qkey = 0x01234567;   ///< of datagrams: RDMA_UDP_QKEY
};

/// Private data that programs may give: what the messages have, less the header of IP CM.
struct PrivateDataMax {
  static constexpr std::size_t kConnect = 56, kAccept = 196, kReject = 148, kResolve = 180, kResolved = 136;
};

enum class ConnectionEventType : std::uint8_t {
  kConnectRequest,  ///< to accept or reject
  kEstablished,     ///< both sides may send
  kConnectError,    ///< the queue pair could not be moved to RTS: `status` is an errno. Last
  kUnreachable,     ///< no response: ETIMEDOUT; no neighbour: EHOSTUNREACH. Last
  kRejected,        ///< `status` is a roce::CmReject, or of datagrams a roce::CmSidrStatus. Last
  kDisconnected,    ///< the queue pair is in the error state
  kTimewaitExit,    ///< after kDisconnected: the queue pair may be used again. Last
};

struct ConnectionEvent {
  ConnectionEventType type = ConnectionEventType::kConnectRequest;
  ConnectionId id = 0;
  std::uint32_t program = 0;  ///< whose it is
  PortSpace space = PortSpace::kTcp;
  int status = 0;
  std::uint16_t port = 0, remote_port = 0;  ///< `port`: of the service
  roce::IpAddress remote{};
  /// Of a request and of the active side's kEstablished: most that the other side can do, in this side's terms.
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  std::uint32_t remote_qpn = 0, qkey = 0;
  std::uint8_t private_data_bytes = 0;
  std::array<std::uint8_t, 224> private_data{};
};

/// A time of the connection manager's messages, whose 5 bits are a power of two of 4.096 us, but at most kCmWaitMax.
constexpr Nanos cm_span(unsigned code) { return std::min<Nanos>(Nanos{4096} << std::min(code, 31u), kCmWaitMax); }

/// Where a connection stands: the states of the IB specification's 12.9.7 that need to be told apart. One that has come
/// to REP received is moved on at once.
enum class ConnectionState : std::uint8_t {
  kFree,
  kReqSent,
  kReqReceived,
  kRepSent,
  kEstablished,
  kDreqSent,
  kTimewait,
  kSidrSent,
  kSidrReceived,
  kSidrReplied,  ///< only to reply again
};

/// A connection without its timer, which stays where it is.
struct ConnectionFields {
  ConnectionState state = ConnectionState::kFree;
  bool is_active = false, path_known = false, events = true;
  bool has_moved = false;  ///< its queue pair has been brought to RTS
  PortSpace space = PortSpace::kTcp;
  ConnectionId id = 0;
  std::uint32_t remote_id = 0, serial = 0, program = 0, listener = UINT32_MAX;
  std::uint16_t port = 0, remote_port = 0;
  roce::IpAddress remote{};
  Headers headers;
  std::uint64_t transaction = 0;
  std::uint32_t qpn = 0, remote_qpn = 0;
  std::uint32_t receive_psn = 0, send_psn = 0;
  std::uint32_t path_mtu = 1024;
  std::uint8_t responder_resources = 0, initiator_depth = 0, retry_count = 0, rnr_retry_count = 0, min_rnr_timer = 0;
  std::uint8_t ack_timeout = 0, own_ack_timeout = 0, traffic_class = 0;
  /// What was sent last: sent again until it is answered, and when what it answers comes again.
  std::array<std::uint8_t, roce::kMadBytes> mad{};
  std::int64_t tries = 0, retries = 0;
  Nanos interval = 0;

  /// The other side has said its identifier, which may be any number, as its queue pair's may.
  bool is_answered() const {
    return !is_active || (state != ConnectionState::kReqSent && state != ConnectionState::kSidrSent);
  }
};

struct Connection : ConnectionFields {
  explicit Connection(std::uint32_t slot) : timer(timer_tag(TimerOf::kConnection, slot)) {}
  Timer timer;
};

}  // namespace rocebox::nic_model
