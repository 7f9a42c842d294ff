// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/connections.h"

#include "nic_model/host/host.h"

namespace rocebox::nic_model {

int Connections::listen(std::uint32_t program, PortSpace space, std::uint16_t port, std::uint32_t backlog) {
  return manager_.listen(program, space, port, backlog);
}

int Connections::close(PortSpace space, std::uint16_t port) { return manager_.close(*host_.context_, space, port); }

int Connections::connect(std::uint32_t program, const roce::IpAddress& remote, PortSpace space, std::uint16_t port,
                         Qp* qp, const ConnectionOptions& options, ConnectionId& id) {
  return manager_.connect(*host_.context_, program, remote, space, port, qp, options, id);
}

int Connections::accept(ConnectionId id, Qp& qp, const ConnectionOptions& options) {
  return manager_.accept(*host_.context_, id, qp, options);
}

int Connections::reject(ConnectionId id, std::span<const std::uint8_t> private_data) {
  return manager_.reject(*host_.context_, id, private_data);
}

int Connections::disconnect(ConnectionId id) { return manager_.disconnect(*host_.context_, id); }

int Connections::destroy(ConnectionId id) { return manager_.destroy(*host_.context_, id); }

}  // namespace rocebox::nic_model
