// SPDX-License-Identifier: BSD-3-Clause
// Stimulus: headers of packets that a kernel would act upon, for who checks it without traffic.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/roce/build.h"

namespace rocebox {

struct Stimulus {
  roce::Underlay underlay;
  std::uint32_t destination_qp = 0;  ///< 0: any
  /// A whole frame, sent alone in place of RoCE packets under `underlay`; empty: none.
  std::vector<std::uint8_t> frame{};
};

}  // namespace rocebox
