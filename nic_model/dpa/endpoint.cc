// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/endpoint.h"

#include <fmt/format.h>

#include "runtime/component/component.h"

namespace rocebox::nic_model::dpa {

Endpoint::Endpoint(Process& process, const EndpointOptions& o) : process_(process) {
  if (!o.handler.empty() && !(thread_ = process.create_thread(o.handler)))
    throw ConfigError(
        fmt::format("`{}` has no function `{}`, or all threads of the DPA are taken", process.name(), o.handler));
  const CqAddresses cq = process.create_cq(o.log_cq_entries, thread_);
  const std::uint32_t receives = 1u << o.log_receives;
  const std::uint64_t buffers = process.alloc(std::size_t{receives} * o.buffer_bytes);
  const std::uint64_t shared = process.alloc(sizeof(::endpoint));
  QpInit init;
  init.type = o.type;
  init.send_cq = init.receive_cq = cq.cq;
  const QpAddresses qp = cq.cq ? process.create_qp(init, o.log_send_blocks, o.log_receives) : QpAddresses();
  if (buffers) buffers_ = process.map(buffers, std::size_t{receives} * o.buffer_bytes);
  if (!buffers_.key || !shared || !qp.qp)
    throw ConfigError(fmt::format(
        "`{}`: the queues do not fit into the heap of the DPA, or there are too many queue pairs or regions",
        process.name()));
  qp_ = qp.qp;
  shared_ = reinterpret_cast<::endpoint*>(process.at(shared, sizeof(::endpoint)));
  ::endpoint& e = *shared_;
  e.cq_ring = cq.ring, e.cq_doorbell = cq.doorbell, e.cq_number = cq.number, e.log_cq_entries = cq.log_entries;
  e.send_ring = qp.send_ring, e.receive_ring = qp.receive_ring, e.qp_doorbell = qp.doorbell;
  e.qp_number = qp.number, e.log_send_blocks = qp.log_send_blocks, e.log_receives = qp.log_receives;
  e.buffers = buffers, e.buffer_bytes = o.buffer_bytes, e.key = process.heap_key();
  e.host_address = o.host_address, e.host_bytes = o.host_bytes, e.window_key = o.host_key;
  if (o.host_bytes) e.window = process.create_window(o.host_domain);
  auto* ring = reinterpret_cast<mlx5_wqe_data_seg*>(qp.receive_ring);
  for (std::uint32_t i = 0; i < receives; i++)
    ring[i] = {htobe32(o.buffer_bytes), htobe32(e.key), htobe64(buffers + std::uint64_t{i} * o.buffer_bytes)};
  *reinterpret_cast<__be32*>(qp.doorbell) = htobe32(receives);
}

void Endpoint::run() {
  if (thread_) process_.run(*thread_, address());
}

}  // namespace rocebox::nic_model::dpa
