// SPDX-License-Identifier: BSD-3-Clause
// What Themis counts.
#pragma once
#include "kernels/themis/decision.h"
#include "runtime/kernel/counter.h"

namespace rocebox::themis {

struct Counters {
  explicit Counters(Stats& stats);

  // Themis-S.
  Counter &sprayed, &not_sprayed_group, &rerouted_nacked, &rerouted_again, &rerouted_avoided, &avoidance_signals,
      &avoidance_refused, &request_wrong_port;
  // Themis-D: NACKs that came. A blocked and a stashed one is dropped, and its counter is the drop's reason.
  Counter &drop_nack_invalid, &drop_nack_undetermined, &nack_valid, &nack_behind_window, &nack_before_state,
      &nack_ahead_of_data, &nack_doubt, &nack_other, &nack_unpaired, &answer_bad_icrc, &answer_wrong_port;
  // Themis-D: what became of the undetermined ones.
  Counter &undetermined_invalid, &undetermined_acknowledged, &undetermined_valid, &undetermined_ooo_degree,
      &undetermined_doubt, &undetermined_aged, &undetermined_released, &stash_lost;
  Counter &data_wrong_port, &drop_turned, &drop_mirror, &turned, &turned_unjudged, &nack_recirculated;
  // The control plane.
  Counter &qps_made, &qps_begun_anew, &windows_jumped, &qps_ended, &qps_aged, &qps_displaced, &qp_full, &pairing_full,
      &pairing_displaced, &pairs_undone, &cm_refused, &paths_changed, &changes_lost;

  /// Of a NACK that came.
  Counter& of(Reason reason);
  /// Of a stash that ended.
  Counter& of_stash(Reason reason);
};

}  // namespace rocebox::themis
