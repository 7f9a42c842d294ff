// SPDX-License-Identifier: BSD-3-Clause
// UMR WQEs that bind windows of type 2, as mlx5's verbs write them.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "nic_model/queues/send_queue.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
constexpr std::pair<std::uint32_t, std::uint8_t> kWindowFlags[] = {
    {IBV_ACCESS_REMOTE_WRITE, MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE},
    {IBV_ACCESS_REMOTE_READ, MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ},
    {IBV_ACCESS_REMOTE_ATOMIC, MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC}};
// What of a window's context a WQE sets.
constexpr std::uint64_t kUnbindMask = MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE;
constexpr std::uint64_t kBindMask =
    kUnbindMask | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;

}  // namespace

// Control segment, UMR control segment; the window's context; one KLM, and three that are empty: a block of 64 bytes
// each.
int SendQueue::post_bind(const ibv_send_wr& request) {
  const ibv_mw* window = request.bind_mw.mw;
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  if (!window || (window->rkey ^ request.bind_mw.rkey) >> 8 || (info.length && !info.mr) ||
      (info.mw_access_flags & ~kWindowAccess))
    return EINVAL;
  if (!has_room(kBindSegments / 4)) return ENOMEM;
  std::uint32_t at = producer_ * 4;
  std::memset(segment(at), 0, kBlockBytes);
  std::memset(segment(at + 4), 0, kBlockBytes);
  std::memset(segment(at + 8), 0, kBlockBytes);
  auto& umr = *reinterpret_cast<mlx5_wqe_umr_ctrl_seg*>(segment(at + 1));
  umr.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
  umr.mkey_mask = htobe64(info.length ? kBindMask : kUnbindMask);
  auto& context = *reinterpret_cast<mlx5_wqe_mkey_context_seg*>(segment(at + 4));
  context.qpn_mkey = htobe32(qpn_ << 8 | (request.bind_mw.rkey & 0xFF));
  if (info.length) {
    umr.klm_octowords = htobe16(kBlockBytes / kSegmentBytes);
    for (const auto& [right, flag] : kWindowFlags)
      if (info.mw_access_flags & right) context.access_flags |= flag;
    context.start_addr = htobe64(info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info.addr);
    context.len = htobe64(info.length);
    auto& klm = *reinterpret_cast<mlx5_wqe_umr_klm_seg*>(segment(at + 8));
    // Longer ones need no KLM that says so: the context has the length, too.
    klm.byte_count = htobe32(static_cast<std::uint32_t>(std::min<std::uint64_t>(info.length, INT32_MAX)));
    klm.mkey = htobe32(info.mr->lkey);
    klm.address = htobe64(info.addr);
  } else {
    context.free = MLX5_WQE_MKEY_CONTEXT_FREE;
  }
  put_control(request, MLX5_OPCODE_UMR, kBindSegments, htobe32(window->rkey));
  return 0;
}

bool SendQueue::read_bind(const SendWork& work, BindRequest& bind) const {
  if (work.segments != kBindSegments - 1) return false;
  const auto& umr = *reinterpret_cast<const mlx5_wqe_umr_ctrl_seg*>(segment(work.first_segment));
  const auto& context = *reinterpret_cast<const mlx5_wqe_mkey_context_seg*>(segment(work.first_segment + 3));
  const std::uint64_t mask = be64toh(umr.mkey_mask);
  const bool frees = mask == kUnbindMask && context.free == MLX5_WQE_MKEY_CONTEXT_FREE;
  if (!(umr.flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE) || be32toh(context.qpn_mkey) >> 8 != qpn_ ||
      (!frees && (mask != kBindMask || be16toh(umr.klm_octowords) != kBlockBytes / kSegmentBytes)))
    return false;
  bind = BindRequest();
  bind.window = be32toh(work.immediate);
  bind.variant = static_cast<std::uint8_t>(be32toh(context.qpn_mkey));
  if (frees) return true;
  const auto& klm = *reinterpret_cast<const mlx5_wqe_umr_klm_seg*>(segment(work.first_segment + 7));
  bind.region = be32toh(klm.mkey);
  bind.address = be64toh(klm.address);
  bind.bytes = be64toh(context.len);
  for (const auto& [right, flag] : kWindowFlags)
    if (context.access_flags & flag) bind.access |= right;
  if (context.start_addr == 0) bind.access |= IBV_ACCESS_ZERO_BASED;
  return bind.bytes > 0 && (context.start_addr == 0 || context.start_addr == klm.address);
}

}  // namespace rocebox::nic_model
