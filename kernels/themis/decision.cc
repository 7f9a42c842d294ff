// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/decision.h"

#include <cstddef>

namespace rocebox::themis {

std::string_view action_name(Action action) {
  constexpr std::string_view kNames[] = {"none", "forward", "block", "stash", "generate", "discard"};
  return kNames[static_cast<std::size_t>(action)];
}

std::string_view reason_name(Reason reason) {
  constexpr std::string_view kNames[] = {"none",          "invalid",      "valid",         "undetermined",
                                         "behind_window", "before_state", "ahead_of_data", "doubt",
                                         "other_nak",     "ooo_degree",   "acknowledged",  "aged"};
  static_assert(sizeof kNames / sizeof *kNames == kReasons);
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace rocebox::themis
