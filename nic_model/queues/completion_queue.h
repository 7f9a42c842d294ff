// SPDX-License-Identifier: BSD-3-Clause
// CompletionQueue: CQEs of 64 bytes in mlx5's format with owner bits, and a doorbell record of two words.
#pragma once
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>

#include "nic_model/limits.h"
#include "nic_model/queues/queue_memory.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::nic_model {

/// A CQE that says that a work request failed: where its words are in the 64 bytes (the driver's mlx5_err_cqe, which
/// mlx5dv.h has not).
struct ErrorCqe {
  std::uint8_t reserved0[32];
  __be32 srqn;
  std::uint8_t reserved1[18];
  std::uint8_t vendor_syndrome, syndrome;
  __be32 opcode_qpn;
  __be16 wqe_counter;
  std::uint8_t signature, op_own;
};
static_assert(sizeof(ErrorCqe) == 64 && sizeof(mlx5_cqe64) == 64);

/// What a CQE of either format says of its work request.
struct CqeWords {
  explicit CqeWords(const mlx5_cqe64& cqe) : opcode(cqe.op_own >> 4) {
    const auto& error = reinterpret_cast<const ErrorCqe&>(cqe);
    const std::uint32_t word = be32toh(failed() ? error.opcode_qpn : cqe.sop_drop_qpn);
    qpn = word & 0xFFFFFF;
    send_opcode = static_cast<std::uint8_t>(word >> 24);
    wqe_counter = be16toh(failed() ? error.wqe_counter : cqe.wqe_counter);
  }
  bool failed() const { return opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR; }
  bool sends() const { return opcode == MLX5_CQE_REQ || opcode == MLX5_CQE_REQ_ERR; }

  std::uint8_t opcode;  ///< MLX5_CQE_*
  std::uint32_t qpn;
  std::uint8_t send_opcode;  ///< MLX5_OPCODE_* of what was sent
  std::uint16_t wqe_counter;
};

/// mlx5's syndrome of a work completion's status, and back.
std::uint8_t syndrome_of(ibv_wc_status status);
ibv_wc_status status_of(std::uint8_t syndrome);

class CompletionQueue {
 public:
  /// `entries` is rounded up to a power of two. `program` is who gets its completion events.
  CompletionQueue(std::uint32_t number, std::uint32_t entries, std::uint32_t program);
  /// One whose ring and doorbell record are a device program's, which polls it without calling.
  CompletionQueue(std::uint32_t number, std::uint32_t entries, const CqMemory& memory);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  std::uint32_t number() const { return number_; }
  std::uint32_t entries() const { return mask_ + 1; }
  std::uint32_t program() const { return program_; }
  /// Whether a device program has it.
  bool is_devices() const { return consumer_record_ != nullptr; }
  /// CQEs written so far.
  std::uint32_t produced() const { return producer_; }
  /// CQEs that the consumer has not said to be done with.
  std::uint32_t unconsumed() const {
    return consumer_record_ ? (producer_ - be32toh(*consumer_record_)) & 0xFFFFFF : producer_ - consumer_;
  }
  const mlx5_cqe64* ring() const { return ring_; }

  /// NIC: the place of the next CQE, all zeros; null when the queue is full, which is an overrun: the queue takes no
  /// more, ever.
  mlx5_cqe64* next();
  /// NIC: `cqe`, which next() gave and which is filled in, is the host's. `solicited`: its event was asked for by the
  /// sender, or it is an error.
  /// True: an event may wait for more completions, but not beyond period() from now: `timer` is to be armed.
  bool publish(mlx5_cqe64* cqe, std::uint8_t opcode, bool solicited);
  bool overrun() const { return overrun_; }
  /// NIC: whether the host is to be told, by an event, and has not been.
  bool take_event();
  /// NIC: `timer`: the host is told of what there is.
  void on_timer() { due_ = due_ || waiting_ > 0; }
  Nanos period() const { return period_; }

  /// Host: the CQE that is next; null when there is none.
  const mlx5_cqe64* peek() const {
    const mlx5_cqe64* cqe = &ring_[consumer_ & mask_];
    const bool theirs =
        (cqe->op_own & MLX5_CQE_OWNER_MASK) != ((consumer_ & entries()) != 0) || cqe->op_own >> 4 == MLX5_CQE_INVALID;
    return theirs ? nullptr : cqe;
  }
  /// Host: done with the CQE that peek() gave.
  void advance() {
    consumer_++;
    doorbell_[0] = htobe32(consumer_ & 0xFFFFFF);
  }
  /// Host: takes out those of queue pair `qpn` that it has not seen, as drivers do where one is reset: its work
  /// requests are no more, and the next queue pair may have its number. Before, `each` is given those, in order.
  template <class Each>
  void remove(std::uint32_t qpn, Each&& each);
  /// Host: an event for the next CQE, or for the next one that is solicited.
  void arm(bool solicited_only);
  /// Host: an event only after `count` completions, or `period` after the first of them; 0: not by that. Those that
  /// wait may be due by now.
  void moderate(std::uint32_t count, Nanos period) {
    count_ = count;
    period_ = period;
    due_ = due_ || (waiting_ > 0 && are_enough());
  }
  bool is_due() const { return due_; }
  /// Whether completions wait for their event.
  bool has_waiting() const { return waiting_ > 0 && !due_; }

  /// Device: an event once there is a CQE behind the first `consumer`: at once, where there is one.
  void arm_at(std::uint32_t consumer);
  Timer timer;  ///< of moderation

 private:
  enum class Armed : std::uint8_t { kNo, kAny, kSolicited };
  bool are_enough() const { return count_ > 0 ? waiting_ >= count_ : period_ == 0; }
  std::uint32_t number_, mask_, program_;
  flows::ZeroedArray<mlx5_cqe64> cqes_;  // empty when the ring is a device program's
  std::uint32_t invalid_ = 0;            // of its CQEs, those marked as the NIC's: as many as are needed, and one more
  mlx5_cqe64* ring_;
  const __be32* consumer_record_ = nullptr;
  __be32 doorbell_[2] = {};  // consumer index, 24 bits; arming
  std::uint32_t producer_ = 0, consumer_ = 0;
  Armed armed_ = Armed::kNo;
  bool due_ = false, overrun_ = false;
  std::uint32_t count_ = 0, waiting_ = 0;  // of moderation; completions that no event has told of
  Nanos period_ = 0;
};

template <class Each>
void CompletionQueue::remove(std::uint32_t qpn, Each&& each) {
  std::uint32_t kept = producer_;  // from here on; what is kept moves up to it, so that the NIC goes on where it was
  for (std::uint32_t i = consumer_; i != producer_; i++)
    if (const CqeWords words(ring_[i & mask_]); words.qpn == qpn) each(words);
  for (std::uint32_t i = producer_; i-- != consumer_;) {
    mlx5_cqe64& from = ring_[i & mask_];
    if (CqeWords(from).qpn == qpn) continue;
    mlx5_cqe64& to = ring_[--kept & mask_];
    const std::uint8_t owner = to.op_own & MLX5_CQE_OWNER_MASK;  // by the place
    if (&to != &from) to = from;
    to.op_own = static_cast<std::uint8_t>((to.op_own & ~MLX5_CQE_OWNER_MASK) | owner);
  }
  while (consumer_ != kept) advance();
}

}  // namespace rocebox::nic_model
