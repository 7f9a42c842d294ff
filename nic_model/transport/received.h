// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <cstdint>

namespace rocebox::nic_model {

/// The completion of a receive request.
struct Received {
  std::uint8_t cqe_opcode = 0;  ///< MLX5_CQE_RESP_...
  std::uint32_t bytes = 0;
  __be32 immediate = 0;  ///< or the rkey that was invalidated
  bool solicited = false;
  std::uint32_t source_qp = 0;
  bool has_grh = false;
};

}  // namespace rocebox::nic_model
