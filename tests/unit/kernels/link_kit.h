// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "kernels/link/link.h"
#include "tests/unit/harness.h"

namespace rocebox {

/// What makes a link of this configuration, as the harness takes it.
inline auto with(const link::Config& config) {
  return [config](Stats& stats) { return link::make(config, stats); };
}

/// The input sequence numbers of what left, in order.
inline std::vector<std::uint64_t> sequences(const test::KernelBox& box) {
  std::vector<std::uint64_t> result;
  for (const test::Out& out : box.out) result.push_back(out.meta.identity);
  return result;
}

}  // namespace rocebox
