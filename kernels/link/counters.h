// SPDX-License-Identifier: BSD-3-Clause
// What one direction of a link counts.
#pragma once
#include <string>

#include "runtime/kernel/counter.h"

namespace rocebox::link {

struct Counters {
  Counters(Stats& stats, const std::string& prefix);

  Counter &packets, &bytes, &delivered;
  Counter &drop_down, &drop_loss, &drop_burst_loss, &drop_event, &drop_queue_full, &drop_held_full;
  Counter &corrupted, &corrupted_icrc_repaired, &duplicated, &copy_failed;
  Counter &reordered, &reorder_refused, &reorder_timeout;
  Counter &trimmed, &ecn_marked, &ecn_not_ect;
  Counter &events_fired, &events_not_applied;
  Peak& queue_bytes_max;
};

}  // namespace rocebox::link
