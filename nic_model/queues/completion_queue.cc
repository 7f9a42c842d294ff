// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/queues/completion_queue.h"

#include <bit>
#include <cstring>
#include <utility>

#include "runtime/packet/prefetch.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint8_t kUnwritten = MLX5_CQE_INVALID << 4 | MLX5_CQE_OWNER_MASK;
constexpr std::uint32_t kAhead = 4;  // CQEs that are asked for before they are written

constexpr std::pair<ibv_wc_status, std::uint8_t> kSyndromes[] = {
    {IBV_WC_LOC_LEN_ERR, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR},
    {IBV_WC_LOC_QP_OP_ERR, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR},
    {IBV_WC_LOC_PROT_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR},
    {IBV_WC_WR_FLUSH_ERR, MLX5_CQE_SYNDROME_WR_FLUSH_ERR},
    {IBV_WC_MW_BIND_ERR, MLX5_CQE_SYNDROME_MW_BIND_ERR},
    {IBV_WC_BAD_RESP_ERR, MLX5_CQE_SYNDROME_BAD_RESP_ERR},
    {IBV_WC_LOC_ACCESS_ERR, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR},
    {IBV_WC_REM_INV_REQ_ERR, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR},
    {IBV_WC_REM_ACCESS_ERR, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR},
    {IBV_WC_REM_OP_ERR, MLX5_CQE_SYNDROME_REMOTE_OP_ERR},
    {IBV_WC_RETRY_EXC_ERR, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR},
    {IBV_WC_RNR_RETRY_EXC_ERR, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR},
    {IBV_WC_REM_ABORT_ERR, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR},
};

}  // namespace

std::uint8_t syndrome_of(ibv_wc_status status) {
  for (const auto& [one, syndrome] : kSyndromes)
    if (one == status) return syndrome;
  return 0;
}

ibv_wc_status status_of(std::uint8_t syndrome) {
  for (const auto& [status, one] : kSyndromes)
    if (one == syndrome) return status;
  return IBV_WC_GENERAL_ERR;
}

CompletionQueue::CompletionQueue(std::uint32_t number, std::uint32_t entries, std::uint32_t program)
    : number_(number),
      mask_(std::bit_ceil(entries) - 1),
      program_(program),
      cqes_(std::size_t{mask_} + 1),
      ring_(cqes_.data()) {
  ring_[invalid_++].op_own = kUnwritten;
}

CompletionQueue::CompletionQueue(std::uint32_t number, std::uint32_t entries, const CqMemory& memory)
    : number_(number),
      mask_(std::bit_ceil(entries) - 1),
      program_(0),
      ring_(static_cast<mlx5_cqe64*>(memory.ring)),
      consumer_record_(memory.doorbell) {
  for (std::uint32_t i = 0; i <= mask_; i++) ring_[i].op_own = kUnwritten;
}

mlx5_cqe64* CompletionQueue::next() {
  if (unconsumed() > mask_) overrun_ = true;
  if (overrun_) return nullptr;
  if (invalid_ < cqes_.size()) ring_[invalid_++].op_own = kUnwritten;  // what the host looks at after this one
  mlx5_cqe64* cqe = &ring_[producer_ & mask_];
  const std::uint8_t owned = cqe->op_own;
  std::memset(static_cast<void*>(cqe), 0, sizeof *cqe);
  prefetch_line(&ring_[(producer_ + kAhead) & mask_]);
  cqe->op_own = static_cast<std::uint8_t>(MLX5_CQE_INVALID << 4 | (owned & MLX5_CQE_OWNER_MASK));
  return cqe;
}

bool CompletionQueue::publish(mlx5_cqe64* cqe, std::uint8_t opcode, bool solicited) {
  const bool owner = (producer_ & entries()) != 0;
  cqe->op_own = static_cast<std::uint8_t>(opcode << 4 | (solicited ? 2 : 0) | (owner ? MLX5_CQE_OWNER_MASK : 0));
  producer_++;
  if (armed_ == Armed::kNo || (armed_ == Armed::kSolicited && !solicited)) return false;
  waiting_++;
  const bool failed = opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
  if (failed || are_enough()) due_ = true;
  return !due_ && period_ > 0 && waiting_ == 1;
}

bool CompletionQueue::take_event() {
  if (!due_) return false;
  due_ = false;
  waiting_ = 0;
  armed_ = Armed::kNo;
  return true;
}

void CompletionQueue::arm_at(std::uint32_t consumer) {
  armed_ = Armed::kAny;
  if (((producer_ - consumer) & 0xFFFFFF) != 0) due_ = true;
}

void CompletionQueue::arm(bool solicited_only) {
  if (armed_ != Armed::kAny) armed_ = solicited_only ? Armed::kSolicited : Armed::kAny;
  doorbell_[1] = htobe32((consumer_ & 0xFFFFFF) | (solicited_only ? 1u << 24 : 0));
}

}  // namespace rocebox::nic_model
