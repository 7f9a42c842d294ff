// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dpa/station.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/dpa/limits.h"
#include "runtime/component/component.h"

namespace rocebox::dpa_observer {

Station::Station(nic_model::dpa::Process& process, const StationOptions& o)
    : buffer_bytes_(o.buffer_bytes), stride_((o.buffer_bytes + 63) / 64 * 64) {
  nic_model::dpa::Thread* thread = process.create_thread(o.handler);
  if (!thread) throw ConfigError(fmt::format("`{}` has no function `{}`", process.name(), o.handler));
  const auto log_entries = static_cast<std::uint32_t>(std::countr_zero(o.cq_entries));
  const nic_model::dpa::CqAddresses cq = process.create_cq(log_entries, thread);
  const std::uint64_t sends = process.alloc(std::size_t{kSendBlocks} * MLX5_SEND_WQE_BB);
  const std::uint64_t receives = process.alloc(std::size_t{kReceives} * sizeof(mlx5_wqe_data_seg));
  const std::uint64_t doorbell = process.alloc(2 * sizeof(__be32));
  const std::uint64_t buffers = process.alloc(std::max<std::size_t>(std::size_t{kReceives} * stride_, 1));
  const std::uint64_t shared = process.alloc(sizeof(::endpoint));
  if (!cq.cq || !sends || !receives || !doorbell || !buffers || !shared)
    throw ConfigError(fmt::format("`{}`: the queues do not fit into the heap of the DPA", process.name()));
  cq_ = cq.cq;
  buffers_ = reinterpret_cast<std::uint8_t*>(buffers);
  shared_ = reinterpret_cast<::endpoint*>(shared);
  ::endpoint& e = *shared_;
  e.cq_ring = cq.ring, e.cq_doorbell = cq.doorbell, e.cq_number = cq.number, e.log_cq_entries = cq.log_entries;
  e.send_ring = sends, e.receive_ring = receives, e.qp_doorbell = doorbell;
  e.log_send_blocks = static_cast<std::uint32_t>(std::countr_zero(kSendBlocks));
  e.log_receives = static_cast<std::uint32_t>(std::countr_zero(kReceives));
  e.buffers = buffers, e.buffer_bytes = buffer_bytes_, e.key = process.heap_key();
  e.host_address = o.host_address, e.host_bytes = o.host_bytes, e.window = o.window, e.window_key = o.host_key;
  e.count = o.count;
  auto* ring = reinterpret_cast<mlx5_wqe_data_seg*>(receives);
  for (std::uint32_t i = 0; i < kReceives; i++)
    ring[i] = {htobe32(buffer_bytes_), htobe32(e.key), htobe64(buffers + std::uint64_t{i} * stride_)};
  *reinterpret_cast<__be32*>(doorbell) = htobe32(kReceives);
  process.run(*thread, address());
}

void Station::place(std::uint16_t receive, std::uint32_t offset, std::span<const std::uint8_t> bytes) const {
  if (offset >= buffer_bytes_) return;
  std::memcpy(buffers_ + std::size_t{receive % kReceives} * stride_ + offset, bytes.data(),
              std::min<std::size_t>(bytes.size(), buffer_bytes_ - offset));
}

}  // namespace rocebox::dpa_observer
