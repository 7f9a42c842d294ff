// SPDX-License-Identifier: BSD-3-Clause
// ReceiveQueue and SharedReceiveQueue: lists of data segments in mlx5's formats that messages are received into.
#pragma once
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "nic_model/limits.h"
#include "nic_model/memory/memory.h"
#include "nic_model/queues/queue_memory.h"

namespace rocebox::nic_model {

/// A receive request that the NIC has taken, until its message is whole.
struct ReceiveWork {
  std::uint16_t wqe_counter = 0;
  std::uint64_t bytes = 0;  ///< room
  bool taken = false;
};

/// Receive requests in order, of one queue pair or shared by many.
class ReceiveQueue {
 public:
  enum class Kind : std::uint8_t { kOwn, kShared };
  ReceiveQueue(Kind kind, std::uint32_t number, std::uint32_t requests, std::uint32_t sges);

  /// One whose ring and doorbell record are a device program's, which posts without calling.
  explicit ReceiveQueue(const QueueMemory& memory);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  Kind kind() const { return kind_; }
  std::uint32_t number() const { return number_; }  ///< of a shared one

  // The host's side.

  /// 0, or ENOMEM: the queue is full; EINVAL: too many pieces.
  int post(const ibv_recv_wr& request);
  void ring_doorbell() { doorbell_ = htobe32(producer_ & 0xFFFF); }
  /// Of a CQE: the request's own identifier; its room is free again.
  std::uint64_t retire(std::uint16_t wqe_counter);

  // The NIC's side.

  bool has_posted() const { return static_cast<std::uint16_t>(be32toh(*record_)) != consumer_; }
  std::uint32_t posted() const { return static_cast<std::uint16_t>(be32toh(*record_) - consumer_); }
  /// Takes the next request. False: there is none.
  bool fetch(ReceiveWork& work);
  /// Whether `by` may write the first `bytes` bytes.
  bool check(const ReceiveWork& work, const Memory& memory, const Accessor& by, std::uint64_t bytes) const;
  /// Writes bytes of the message; `from` null: only their place is known.
  void scatter(const ReceiveWork& work, Memory& memory, std::uint64_t offset, std::uint32_t bytes,
               const std::uint8_t* from) const;
  /// Of a shared one: an event once fewer than `limit` are posted; 0: none.
  void set_limit(std::uint32_t limit) { limit_ = limit; }
  bool take_limit_event();
  void clear();

 private:
  mlx5_wqe_data_seg* segments(std::uint16_t index) {
    return reinterpret_cast<mlx5_wqe_data_seg*>(ring_.data() + std::size_t{index & mask_} * stride_ + first_);
  }
  const mlx5_wqe_data_seg* segments(std::uint16_t index) const {
    return const_cast<ReceiveQueue*>(this)->segments(index);
  }
  mlx5_wqe_srq_next_seg* next_of(std::uint16_t index) {
    return reinterpret_cast<mlx5_wqe_srq_next_seg*>(ring_.data() + std::size_t{index & mask_} * stride_);
  }
  template <class Each>
  void each_piece(const ReceiveWork& work, std::uint64_t offset, std::uint64_t bytes, Each each) const;

  Kind kind_;
  std::uint32_t number_, requests_max_, sges_max_, mask_;
  std::uint32_t first_;   // of the data segments in a WQE: behind a shared one's link
  std::uint32_t stride_;  // bytes
  std::vector<std::uint8_t> ring_;
  std::vector<std::uint64_t> identifiers_;
  std::uint32_t producer_ = 0, retired_ = 0, limit_ = 0;
  const std::uint8_t* source_ = nullptr;  // of a device program's: its ring; `ring_` has copies of what was taken
  __be32 doorbell_ = 0;
  const __be32* record_ = &doorbell_;  // what says how many are posted: `doorbell_`, or a device program's
  std::uint16_t consumer_ = 0;         // requests taken
  std::uint16_t host_tail_ = 0;        // shared: the last WQE of the list, whose link leads nowhere yet
  std::uint16_t host_next_ = 0;        // shared: the WQE that the next request is written to
  std::uint16_t nic_next_ = 0;         // shared: the WQE that is taken next
};

}  // namespace rocebox::nic_model
