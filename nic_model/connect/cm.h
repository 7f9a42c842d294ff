// SPDX-License-Identifier: BSD-3-Clause
// ConnectionManager: RDMA CM (IB specification, volume 1, chapter 12; annex A11 for IP addresses and ports, A17 for
// RoCE), as Linux's ib_cm, rdma_cm and librdmacm together do it: it also moves the queue pairs. README.md has what it
// leaves out.
#pragma once
#include <deque>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nic_model/connect/connection.h"
#include "nic_model/connect/gsi.h"
#include "nic_model/connect/neighbors.h"
#include "runtime/kernel/progress.h"

namespace rocebox::nic_model {

class ConnectionManager {
 public:
  /// ibv_modify_qp.
  using Modify = std::function<int(Context&, Qp&, const ibv_qp_attr&, int mask)>;
  ConnectionManager(Core& core, Neighbors& neighbors, Gsi& gsi, Stats& stats, Modify modify);

  // The host's calls, in a call of the NIC; host/connections.h has what they do. 0 or an errno.

  int listen(std::uint32_t program, PortSpace space, std::uint16_t port, std::uint32_t backlog);
  int close(Context& context, PortSpace space, std::uint16_t port);
  int connect(Context& context, std::uint32_t program, const roce::IpAddress& remote, PortSpace space,
              std::uint16_t port, Qp* qp, const ConnectionOptions& options, ConnectionId& id);
  int accept(Context& context, ConnectionId id, Qp& qp, const ConnectionOptions& options);
  int reject(Context& context, ConnectionId id, std::span<const std::uint8_t> private_data);
  int disconnect(Context& context, ConnectionId id);
  int destroy(Context& context, ConnectionId id);

  // The NIC's.

  /// A datagram to QP1.
  Counter& receive(Context& context, Packet packet);
  /// A neighbour's MAC address was found.
  void on_neighbor(Context& context);
  void on_timer(Context& context, std::uint32_t slot);
  bool has_events() const { return !events_.empty(); }
  std::size_t events() const { return events_.size(); }
  /// The next one; there is one.
  ConnectionEvent take_event() {
    const ConnectionEvent event = events_.front();
    events_.pop_front();
    return event;
  }
  std::size_t connections() const { return slots_.size() - free_.size(); }
  /// Tries that go on for connections of `program`, or wait for a neighbour.
  Progress progress(std::uint32_t program) const;

 private:
  struct Listener {
    std::uint32_t program, backlog, pending;
    std::uint64_t service_id;
    PortSpace space;
  };
  // What a remote side's number is of: its messages name a connection by them.
  enum class Number : std::uint32_t { kRequest, kSidr, kQp };
  struct RemoteKey {
    roce::IpAddress address;
    std::uint32_t number;
    Number kind;
    bool operator==(const RemoteKey&) const = default;
  };
  struct RemoteHash {
    std::size_t operator()(const RemoteKey& key) const {
      return std::hash<std::string_view>()({reinterpret_cast<const char*>(&key), sizeof key});
    }
  };
  static_assert(sizeof(RemoteKey) == 24);

  // cm_connection.cc: the table of connections, their messages' common part, their queue pairs.
  Connection* find(ConnectionId id);
  const Connection* find(ConnectionId id) const { return const_cast<ConnectionManager*>(this)->find(id); }
  Connection* find(const RemoteKey& key);
  Listener* find_listener(std::uint64_t service_id, std::uint32_t& number);
  Connection* make(const Context& context, std::uint32_t program, const roce::IpAddress& remote);
  void release(Context& context, Connection& c);
  void leave_backlog(Connection& c);
  void forget(Connection& c, Number kind, std::uint32_t number);
  void begin(Context& context, Connection& c, ConnectionState state, std::int64_t retries, Nanos interval);
  bool transmit(Context& context, Connection& c);
  void enter_timewait(Context& context, Connection& c);
  ConnectionEvent event_of(const Connection& c, ConnectionEventType type, int status = 0) const;
  void tell(const Connection& c, ConnectionEventType type, int status = 0);
  void tell(const Connection& c, ConnectionEvent event, std::span<const std::uint8_t> private_data);
  void end(Context& context, Connection& c, ConnectionEventType type, int status);
  bool is_taken(const Qp& qp, const Connection* by) const;
  int ready(Context& context, Connection& c);
  void stop(Context& context, Connection& c);
  template <class T>
  void write(Connection& c, const T& message, std::span<const std::uint8_t> private_data = {}) {
    c.mad = roce::cm_mad(c.transaction, message, private_data);
  }
  template <class T>
  void reply(Context& context, Packet packet, const T& message, std::span<const std::uint8_t> private_data = {}) {
    gsi_.send(context, Gsi::headers_back(packet),
              roce::cm_mad(roce::mad(packet)->transaction_id, message, private_data));
  }
  Nanos own_timeout() const;

  // cm.cc
  void write_request(Connection& c, const ConnectionOptions& options);
  void write_resolution(Connection& c, const ConnectionOptions& options);
  void write_reply(Connection& c, const ConnectionOptions& options);
  void write_resolved(Connection& c, const ConnectionOptions& options);
  void send_reject(Context& context, Connection& c, roce::CmReject reason, std::span<const std::uint8_t> private_data);
  void release_connection(Context& context, Connection& c);

  // cm_datagrams.cc
  void keep_resolved(Context& context, Connection& c);

  // cm_receive.cc: each returns what the packet's end is counted as.
  Counter& on_request(Context& context, Packet packet);
  Counter& on_request_again(Context& context, Packet packet, Connection& c);
  Counter& take_request(Context& context, Packet packet, Listener& listener, std::uint32_t number);
  Counter& on_reply(Context& context, Packet packet);
  Counter& on_ready(Context& context, Packet packet);
  Counter& on_receipt(Context& context, Packet packet);
  Counter& on_reject(Context& context, Packet packet);
  Counter& on_release(Context& context, Packet packet);
  Counter& on_released(Context& context, Packet packet);
  Counter& on_resolution(Context& context, Packet packet);
  Counter& on_resolved(Context& context, Packet packet);
  Counter& refuse(Context& context, Packet packet, roce::CmReject reason);
  Counter& refuse(Context& context, Packet packet, roce::CmSidrStatus status);
  Counter& refuse_stale(Context& context, Packet packet, Connection& old);
  // Whether a request's private data begin with a header of IP CM.
  static bool has_ip_header(std::span<const std::uint8_t> private_data);
  template <class T>
  Connection* addressed(Packet packet, const T& message);

  Core& core_;
  Neighbors& neighbors_;
  Gsi& gsi_;
  Modify modify_;
  Counter &retried_, &duplicates_, &drop_unknown_, &drop_refused_, &drop_state_, &rejects_sent_, &established_;
  std::deque<Connection> slots_;  // whose timers stay where they are
  std::vector<std::uint32_t> free_;
  std::unordered_map<RemoteKey, ConnectionId, RemoteHash> by_remote_;
  std::vector<Listener> listeners_;
  std::vector<ConnectionId> waiting_;  // for a neighbour
  std::deque<ConnectionId> resolved_;  // in kSidrReplied, or over
  std::deque<ConnectionEvent> events_;
};

}  // namespace rocebox::nic_model
