// SPDX-License-Identifier: BSD-3-Clause
// Connections: RDMA CM for a host's programs, in rdma_cm's terms. Each call is for programs' calls and returns 0 or an
// errno; what comes of it comes by HostProgram::on_connection_event. ENOENT: no connection has that identifier.
#pragma once
#include "nic_model/connect/cm.h"

namespace rocebox::nic_model {

class Host;

class Connections {
 public:
  Connections(Host& host, ConnectionManager& manager) : host_(host), manager_(manager) {}

  /// rdma_listen: requests for `port` become events of `program`, at most `backlog` that are not yet connections; more
  /// are rejected. EADDRINUSE: another one listens.
  int listen(std::uint32_t program, PortSpace space, std::uint16_t port, std::uint32_t backlog = kBacklogMax);
  /// Listens no more; requests that were told stay, others are rejected.
  int close(PortSpace space, std::uint16_t port);
  /// rdma_resolve_addr and rdma_connect: asks for a connection of `qp`, which is in RESET or INIT and is moved to RTS
  /// when the other side has accepted. PortSpace::kUdp takes no queue pair: kEstablished tells the other side's.
  /// EINVAL: options, or a queue pair that cannot be connected; ENOMEM: there are kConnectionsMax;
  /// EADDRNOTAVAIL: the NIC has no address of `remote`'s family.
  int connect(std::uint32_t program, const roce::IpAddress& remote, PortSpace space, std::uint16_t port, Qp* qp,
              const ConnectionOptions& options, ConnectionId& id);
  /// rdma_accept: `qp` goes from RESET or INIT to RTS, or is told to who sends datagrams.
  int accept(ConnectionId id, Qp& qp, const ConnectionOptions& options = {});
  /// rdma_reject; the identifier is no more.
  int reject(ConnectionId id, std::span<const std::uint8_t> private_data = {});
  /// rdma_disconnect: the queue pair goes to the error state; kDisconnected follows when the other side has agreed or
  /// does not respond.
  int disconnect(ConnectionId id);
  /// rdma_destroy_id: ends what there is, whatever its state, without any further event, those included that are due.
  int destroy(ConnectionId id);
  /// Those that there are, requests and those that end counted.
  std::size_t count() const { return manager_.connections(); }

 private:
  Host& host_;
  ConnectionManager& manager_;
};

}  // namespace rocebox::nic_model
