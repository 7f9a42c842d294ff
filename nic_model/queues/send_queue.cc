// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/queues/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>

#include "nic_model/memory/memory.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint8_t kBad = 0xFF;

std::uint8_t opcode_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return MLX5_OPCODE_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return MLX5_OPCODE_RDMA_WRITE_IMM;
    case IBV_WR_SEND:
      return MLX5_OPCODE_SEND;
    case IBV_WR_SEND_WITH_IMM:
      return MLX5_OPCODE_SEND_IMM;
    case IBV_WR_SEND_WITH_INV:
      return MLX5_OPCODE_SEND_INVAL;
    case IBV_WR_RDMA_READ:
      return MLX5_OPCODE_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return MLX5_OPCODE_ATOMIC_CS;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return MLX5_OPCODE_ATOMIC_FA;
    case IBV_WR_LOCAL_INV:
      return MLX5_OPCODE_LOCAL_INVAL;
    default:
      return kBad;
  }
}

bool has_remote_address(std::uint8_t opcode) {
  switch (opcode) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
    case MLX5_OPCODE_RDMA_READ:
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
      return true;
    default:
      return false;
  }
}
// Of those that a NIC's own WQEs have; what a device program writes may have any.
bool is_known(std::uint8_t opcode) {
  switch (opcode) {
    case MLX5_OPCODE_NOP:
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_SEND_INVAL:
    case MLX5_OPCODE_LOCAL_INVAL:
    case MLX5_OPCODE_UMR:
      return true;
    default:
      return has_remote_address(opcode);
  }
}
bool is_atomic(std::uint8_t opcode) { return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA; }

}  // namespace

std::uint32_t SendQueue::blocks_each(std::uint32_t sges, std::uint32_t inline_bytes) {
  const std::uint32_t data = std::max(sges, (inline_bytes + 4 + kSegmentBytes - 1) / kSegmentBytes);
  return (kHeadSegments + data + 3) / 4;
}

std::uint32_t SendQueue::ring_blocks(std::uint32_t requests, std::uint32_t sges, std::uint32_t inline_bytes) {
  return std::bit_ceil(std::max(requests * blocks_each(sges, inline_bytes), kBindSegments / 4));
}

SendQueue::SendQueue(std::uint32_t qpn, std::uint32_t requests, std::uint32_t sges, std::uint32_t inline_bytes,
                     bool is_datagram)
    : qpn_(qpn),
      requests_max_(requests),
      sges_max_(sges),
      inline_max_(inline_bytes),
      blocks_max_(blocks_each(sges, inline_bytes)),
      is_datagram_(is_datagram) {
  const std::uint32_t all = ring_blocks(requests, sges, inline_bytes);
  block_mask_ = all - 1;
  segment_mask_ = all * 4 - 1;
  ring_.resize(std::size_t{all} * kBlockBytes);
  posted_.resize(all);
}

SendQueue::SendQueue(std::uint32_t qpn, const QueueMemory& memory, bool is_datagram)
    : qpn_(qpn),
      requests_max_(memory.send_blocks),
      sges_max_(kSgesMax),
      inline_max_(kInlineBytesMax),
      is_datagram_(is_datagram),
      source_(memory.send_ring),
      source_mask_(memory.send_blocks - 1) {
  const std::uint32_t all = std::bit_ceil(memory.send_blocks + kBlocksMax);
  block_mask_ = all - 1;
  segment_mask_ = all * 4 - 1;
  ring_.resize(std::size_t{all} * kBlockBytes);
}

void SendQueue::take_from_source() {
  const auto block = [&](std::uint32_t i) {
    std::memcpy(ring_.data() + std::size_t{(fetched_ + i) & block_mask_} * kBlockBytes,
                source_ + std::size_t{(fetched_ + i) & source_mask_} * kBlockBytes, kBlockBytes);
  };
  block(0);
  const auto& control = *reinterpret_cast<const mlx5_wqe_ctrl_seg*>(segment(std::uint32_t{fetched_} * 4));
  const std::uint32_t blocks = ((be32toh(control.qpn_ds) & 0x3F) + 3) / 4;
  for (std::uint32_t i = 1; i < blocks; i++) block(i);
}

void SendQueue::clear() {
  producer_ = freed_ = head_ = tail_ = 0;
  doorbell_ = 0;
  fetched_ = 0;
}

bool SendQueue::room_for(const ibv_send_wr& request, std::uint64_t& inline_bytes) const {
  inline_bytes = 0;
  if (request.num_sge < 0) return false;
  if (!(request.send_flags & IBV_SEND_INLINE)) {
    // The highest bit of a segment's length would say that the data follow at once.
    const std::span pieces(request.sg_list, static_cast<std::size_t>(request.num_sge));
    return pieces.size() <= sges_max_ &&
           std::ranges::none_of(pieces, [](const ibv_sge& one) { return one.length & MLX5_INLINE_SEG; });
  }
  for (int i = 0; i < request.num_sge; i++) inline_bytes += request.sg_list[i].length;
  return inline_bytes <= inline_max_;
}

int SendQueue::post(const ibv_send_wr& request, const mlx5_wqe_av* address) {
  const std::uint8_t opcode = opcode_of(request.opcode);
  std::uint64_t inline_bytes;
  if (request.opcode == IBV_WR_BIND_MW) return is_datagram_ || address ? EINVAL : post_bind(request);
  if (opcode == kBad || !room_for(request, inline_bytes) || is_datagram_ != (address != nullptr)) return EINVAL;
  if (!has_room(blocks_max_)) return ENOMEM;
  const std::uint32_t first = producer_ * 4;
  std::uint32_t at = first + 1;
  if (address) {
    for (std::uint32_t i = 0; i < kAddressSegments; i++)
      std::memcpy(segment(at + i), reinterpret_cast<const std::uint8_t*>(address) + i * kSegmentBytes, kSegmentBytes);
    at += kAddressSegments;
  }
  if (has_remote_address(opcode)) {
    const bool atomic = is_atomic(opcode);
    auto& remote = *reinterpret_cast<mlx5_wqe_raddr_seg*>(segment(at++));
    remote.raddr = htobe64(atomic ? request.wr.atomic.remote_addr : request.wr.rdma.remote_addr);
    remote.rkey = htobe32(atomic ? request.wr.atomic.rkey : request.wr.rdma.rkey);
    remote.reserved = 0;
    if (atomic) {
      auto& operands = *reinterpret_cast<mlx5_wqe_atomic_seg*>(segment(at++));
      const bool swaps = opcode == MLX5_OPCODE_ATOMIC_CS;
      operands.swap_add = htobe64(swaps ? request.wr.atomic.swap : request.wr.atomic.compare_add);
      operands.compare = htobe64(swaps ? request.wr.atomic.compare_add : 0);
    }
  }
  at = put_data(at, request, inline_bytes);
  const bool invalidates = opcode == MLX5_OPCODE_SEND_INVAL || opcode == MLX5_OPCODE_LOCAL_INVAL;
  put_control(request, opcode, at - first, invalidates ? htobe32(request.invalidate_rkey) : request.imm_data);
  return 0;
}

// Each field is written to where it stands: copied as a whole from where its parts were just written it would have to
// wait for them.
void SendQueue::put_control(const ibv_send_wr& request, std::uint8_t opcode, std::uint32_t segments, __be32 immediate) {
  auto& control = *reinterpret_cast<mlx5_wqe_ctrl_seg*>(segment(producer_ * 4));
  control.opmod_idx_opcode = htobe32((producer_ & 0xFFFF) << 8 | opcode);
  control.qpn_ds = htobe32(qpn_ << 8 | segments);
  control.fm_ce_se = static_cast<std::uint8_t>((request.send_flags & IBV_SEND_SIGNALED ? MLX5_WQE_CTRL_CQ_UPDATE : 0) |
                                               (request.send_flags & IBV_SEND_SOLICITED ? MLX5_WQE_CTRL_SOLICITED : 0) |
                                               (request.send_flags & IBV_SEND_FENCE ? MLX5_WQE_CTRL_FENCE : 0));
  control.imm = immediate;
  control.signature = 0;
  control.dci_stream_channel_id = 0;
  const std::uint32_t end = producer_ + (segments + 3) / 4;
  posted_[producer_ & block_mask_] = {request.wr_id, ++head_, end};
  producer_ = end;
}

std::uint32_t SendQueue::put_data(std::uint32_t at, const ibv_send_wr& request, std::uint64_t inline_bytes) {
  if (request.send_flags & IBV_SEND_INLINE) {
    put_inline(at, request);
    return at + static_cast<std::uint32_t>((inline_bytes + 4 + kSegmentBytes - 1) / kSegmentBytes);
  }
  for (int i = 0; i < request.num_sge; i++) {
    const ibv_sge& sge = request.sg_list[i];
    auto& data = *reinterpret_cast<mlx5_wqe_data_seg*>(segment(at++));
    data.byte_count = htobe32(sge.length);
    data.lkey = htobe32(sge.lkey);
    data.addr = htobe64(sge.addr);
  }
  return at;
}

// The bytes follow the length of four bytes at once, and may go round the ring's end.
void SendQueue::put_inline(std::uint32_t at, const ibv_send_wr& request) {
  std::uint32_t total = 0;
  std::size_t place = (std::size_t{at} & segment_mask_) * kSegmentBytes + 4;
  for (int i = 0; i < request.num_sge; i++) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(request.sg_list[i].addr);
    for (std::uint32_t left = request.sg_list[i].length; left;) {
      if (place == ring_.size()) place = 0;
      const auto some = static_cast<std::uint32_t>(std::min<std::size_t>(left, ring_.size() - place));
      std::memcpy(ring_.data() + place, from, some);
      from += some, place += some, left -= some;
    }
    total += request.sg_list[i].length;
  }
  const mlx5_wqe_inl_data_seg head{htobe32(total | MLX5_INLINE_SEG)};
  std::memcpy(segment(at), &head, sizeof head);
}

std::uint64_t SendQueue::retire(std::uint16_t wqe_counter) {
  const Posted& posted = posted_[wqe_counter & block_mask_];
  tail_ = posted.number;
  freed_ = posted.end;
  return posted.identifier;
}

void SendQueue::fetch(SendWork& work) {
  if (source_) take_from_source();
  const std::uint32_t first = std::uint32_t{fetched_} * 4;
  const auto& control = *reinterpret_cast<const mlx5_wqe_ctrl_seg*>(segment(first));
  work = SendWork();
  work.wqe_counter = fetched_;
  work.opcode = static_cast<std::uint8_t>(be32toh(control.opmod_idx_opcode));
  work.flags = control.fm_ce_se;
  work.immediate = control.imm;
  const std::uint32_t segments = be32toh(control.qpn_ds) & 0x3F;
  fetched_ = static_cast<std::uint16_t>(fetched_ + std::max((segments + 3) / 4, 1u));
  if (segments == 0 || be32toh(control.qpn_ds) >> 8 != qpn_ || !is_known(work.opcode) || !read(work, first, segments))
    work.error = IBV_WC_LOC_QP_OP_ERR;
}

// What follows the control segment. False: it is shorter than its opcode needs.
bool SendQueue::read(SendWork& work, std::uint32_t first, std::uint32_t segments) {
  if (work.opcode == MLX5_OPCODE_NOP) return true;
  std::uint32_t at = first + 1;
  const std::uint32_t end = first + segments;
  if (is_datagram_) {
    at += kAddressSegments;
  }
  if (work.opcode == MLX5_OPCODE_UMR) {
    work.first_segment = at;
    work.segments = static_cast<std::uint8_t>(end - at);
    return static_cast<std::int32_t>(end - at) >= 0;
  }
  if (has_remote_address(work.opcode)) {
    const auto& remote = *reinterpret_cast<const mlx5_wqe_raddr_seg*>(segment(at++));
    work.remote_address = be64toh(remote.raddr);
    work.rkey = be32toh(remote.rkey);
  }
  if (is_atomic(work.opcode)) {
    const auto& operands = *reinterpret_cast<const mlx5_wqe_atomic_seg*>(segment(at++));
    work.swap_add = be64toh(operands.swap_add);
    work.compare = be64toh(operands.compare);
  }
  if (static_cast<std::int32_t>(end - at) < 0) return false;
  read_data(work, at, end);
  return true;
}

void SendQueue::read_data(SendWork& work, std::uint32_t at, std::uint32_t end) {
  work.first_segment = at;
  if (at == end) return;
  const auto head = be32toh(reinterpret_cast<const mlx5_wqe_inl_data_seg*>(segment(at))->byte_count);
  if (head & MLX5_INLINE_SEG) {
    work.is_inline = true;
    work.bytes = std::min(head & ~MLX5_INLINE_SEG, inline_max_);
    return;
  }
  std::uint64_t bytes = 0;
  for (; at != end; at++, work.segments++)
    bytes += be32toh(reinterpret_cast<const mlx5_wqe_data_seg*>(segment(at))->byte_count);
  work.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
}

template <class Each>
void SendQueue::each_piece(const SendWork& work, std::uint64_t offset, std::uint64_t bytes, Each each) const {
  for (std::uint32_t i = 0; i < work.segments && bytes; i++) {
    const auto& data = *reinterpret_cast<const mlx5_wqe_data_seg*>(segment(work.first_segment + i));
    const std::uint32_t length = be32toh(data.byte_count);
    if (offset >= length) {
      offset -= length;
      continue;
    }
    const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, length - offset));
    each(be32toh(data.lkey), be64toh(data.addr) + offset, some);
    bytes -= some;
    offset = 0;
  }
}

void SendQueue::prefetch_data(const SendWork& work, const Memory& memory, std::uint64_t offset,
                              std::uint64_t bytes) const {
  if (work.is_inline) return;
  each_piece(work, offset, bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
    memory.prefetch_bytes(key, address, some);
  });
}

void SendQueue::gather(const SendWork& work, const Memory& memory, std::uint64_t offset, std::uint32_t bytes,
                       std::uint8_t* to) const {
  if (!to) return;
  if (!work.is_inline)
    return each_piece(work, offset, bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
      memory.read(key, address, some, to);
      to += some;
    });
  std::size_t place = (std::size_t{work.first_segment} & segment_mask_) * kSegmentBytes + 4 + offset;
  for (std::uint32_t i = 0; i < bytes; i++) to[i] = ring_[(place + i) & (ring_.size() - 1)];
}

void SendQueue::scatter(const SendWork& work, Memory& memory, std::uint64_t offset, std::uint32_t bytes,
                        const std::uint8_t* from) const {
  each_piece(work, offset, bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
    memory.write(key, address, some, from);
    if (from) from += some;
  });
}

bool SendQueue::check(const SendWork& work, const Memory& memory, const Accessor& by, std::uint32_t access) const {
  bool good = true;
  if (!work.is_inline)
    each_piece(work, 0, work.bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
      good = good && memory.check(key, by, address, some, access) == MemoryError::kNone;
    });
  return good;
}

}  // namespace rocebox::nic_model
