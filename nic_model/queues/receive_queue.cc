// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/queues/receive_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kNoKey = 0x100;  // MLX5_INVALID_LKEY: the list of segments ends here

}  // namespace

ReceiveQueue::ReceiveQueue(Kind kind, std::uint32_t number, std::uint32_t requests, std::uint32_t sges)
    : kind_(kind),
      number_(number),
      requests_max_(std::max(requests, 1u)),
      sges_max_(std::max(sges, 1u)),
      first_(kind == Kind::kShared ? sizeof(mlx5_wqe_srq_next_seg) : 0) {
  // A shared one always has a WQE to spare, which the last link leads to.
  mask_ = std::bit_ceil(requests_max_ + (kind == Kind::kShared ? 1 : 0)) - 1;
  stride_ = std::bit_ceil(first_ + sges_max_ * static_cast<std::uint32_t>(sizeof(mlx5_wqe_data_seg)));
  ring_.resize((std::size_t{mask_} + 1) * stride_);
  identifiers_.resize(std::size_t{mask_} + 1);
  clear();
}

ReceiveQueue::ReceiveQueue(const QueueMemory& memory)
    : kind_(Kind::kOwn),
      number_(0),
      requests_max_(memory.receive_requests),
      sges_max_(memory.receive_sges),
      mask_(memory.receive_requests - 1),
      first_(0),
      stride_(memory.receive_sges * static_cast<std::uint32_t>(sizeof(mlx5_wqe_data_seg))),
      source_(memory.receive_ring) {
  ring_.resize((std::size_t{mask_} + 1) * stride_);
  record_ = memory.doorbell;
}

void ReceiveQueue::clear() {
  producer_ = retired_ = 0;
  doorbell_ = 0;
  consumer_ = host_next_ = nic_next_ = 0;
  host_tail_ = static_cast<std::uint16_t>(mask_);
  if (kind_ == Kind::kShared)
    for (std::uint32_t i = 0; i <= mask_; i++)
      next_of(static_cast<std::uint16_t>(i))->next_wqe_index = htobe16(static_cast<std::uint16_t>((i + 1) & mask_));
}

int ReceiveQueue::post(const ibv_recv_wr& request) {
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > sges_max_) return EINVAL;
  if (producer_ - retired_ >= requests_max_) return ENOMEM;
  const auto index = kind_ == Kind::kShared ? host_next_ : static_cast<std::uint16_t>(producer_);
  mlx5_wqe_data_seg* data = segments(index);
  for (int i = 0; i < request.num_sge; i++)
    data[i] = {htobe32(request.sg_list[i].length), htobe32(request.sg_list[i].lkey), htobe64(request.sg_list[i].addr)};
  if (static_cast<std::uint32_t>(request.num_sge) < sges_max_) data[request.num_sge] = {0, htobe32(kNoKey), 0};
  identifiers_[index & mask_] = request.wr_id;
  if (kind_ == Kind::kShared) host_next_ = be16toh(next_of(index)->next_wqe_index);
  producer_++;
  return 0;
}

std::uint64_t ReceiveQueue::retire(std::uint16_t wqe_counter) {
  retired_++;
  if (kind_ == Kind::kShared) {
    next_of(host_tail_)->next_wqe_index = htobe16(wqe_counter);
    host_tail_ = wqe_counter;
  }
  return identifiers_[wqe_counter & mask_];
}

bool ReceiveQueue::fetch(ReceiveWork& work) {
  if (!has_posted()) return false;
  work.wqe_counter = kind_ == Kind::kShared ? nic_next_ : consumer_;
  if (kind_ == Kind::kShared) nic_next_ = be16toh(next_of(nic_next_)->next_wqe_index);
  if (source_) {
    const std::size_t place = std::size_t{consumer_ & mask_} * stride_;
    std::memcpy(ring_.data() + place, source_ + place, stride_);
  }
  consumer_++;
  work.taken = true;
  work.bytes = 0;
  each_piece(work, 0, UINT64_MAX, [&](std::uint32_t, std::uint64_t, std::uint32_t some) { work.bytes += some; });
  return true;
}

template <class Each>
void ReceiveQueue::each_piece(const ReceiveWork& work, std::uint64_t offset, std::uint64_t bytes, Each each) const {
  const mlx5_wqe_data_seg* data = segments(work.wqe_counter);
  for (std::uint32_t i = 0; i < sges_max_ && bytes && be32toh(data[i].lkey) != kNoKey; i++) {
    const std::uint32_t length = be32toh(data[i].byte_count);
    if (offset >= length) {
      offset -= length;
      continue;
    }
    const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, length - offset));
    each(be32toh(data[i].lkey), be64toh(data[i].addr) + offset, some);
    bytes -= some;
    offset = 0;
  }
}

bool ReceiveQueue::check(const ReceiveWork& work, const Memory& memory, const Accessor& by, std::uint64_t bytes) const {
  bool good = true;
  each_piece(work, 0, bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
    good = good && memory.check(key, by, address, some, IBV_ACCESS_LOCAL_WRITE) == MemoryError::kNone;
  });
  return good;
}

void ReceiveQueue::scatter(const ReceiveWork& work, Memory& memory, std::uint64_t offset, std::uint32_t bytes,
                           const std::uint8_t* from) const {
  each_piece(work, offset, bytes, [&](std::uint32_t key, std::uint64_t address, std::uint32_t some) {
    memory.write(key, address, some, from);
    if (from) from += some;
  });
}

bool ReceiveQueue::take_limit_event() {
  if (limit_ == 0 || posted() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace rocebox::nic_model
