// SPDX-License-Identifier: BSD-3-Clause
// Kinds of NACKs as policies have them.
#pragma once
#include "kernels/scr/include/rocebox_scr.h"
#include "nic_model/rate/observer.h"

namespace rocebox::scr {

static_assert(static_cast<int>(nic_model::NackKind::kRnr) == SCR_NACK_RNR &&
              static_cast<int>(nic_model::NackKind::kSequence) == SCR_NACK_SEQUENCE &&
              static_cast<int>(nic_model::NackKind::kFatal) == SCR_NACK_FATAL);
inline std::uint8_t nack_detail(std::uint8_t syndrome) {
  return static_cast<std::uint8_t>(nic_model::nack_kind(syndrome));
}

}  // namespace rocebox::scr
