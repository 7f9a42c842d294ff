// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/counters.h"

namespace rocebox::themis {

Counters::Counters(Stats& s)
    : sprayed(s.counter("sprayed", "requests whose path was chosen by their PSN")),
      not_sprayed_group(s.counter("not_sprayed_group", "requests whose destination has not `paths` equal paths here")),
      rerouted_nacked(s.counter("rerouted_nacked", "packets that a NACK asked for, sent by another path")),
      rerouted_again(s.counter("rerouted_again", "packets sent again without a NACK, by any path")),
      rerouted_avoided(s.counter("rerouted_avoided", "packets of a path given up, sent by another")),
      avoidance_signals(s.counter("avoidance_signals", "Path Avoidance Signals that came to their sender's switch")),
      avoidance_refused(
          s.counter("avoidance_refused", "Path Avoidance Signals for what was not sent lately; they pass")),
      request_wrong_port(s.counter("request_wrong_port", "requests by another port than their NIC's; not sprayed")),
      drop_nack_invalid(s.counter("drop_nack_invalid", "NACKs whose packet has left for the NIC")),
      drop_nack_undetermined(s.counter("drop_nack_undetermined", "NACKs stashed until it is known what they are")),
      nack_valid(s.counter("nack_valid", "NACKs whose packet is lost: a later one of its path has come")),
      nack_behind_window(s.counter("nack_behind_window", "NACKs of what was acknowledged since; they pass")),
      nack_before_state(
          s.counter("nack_before_state", "NACKs of packets from before their queue pair got its state; they pass")),
      nack_ahead_of_data(s.counter("nack_ahead_of_data", "NACKs beyond the window or all that was sent; they pass")),
      nack_doubt(s.counter("nack_doubt", "NACKs of packets of which the bitmap proves nothing; they pass")),
      nack_other(s.counter("nack_other", "RNR and other NAKs than PSN sequence errors; they pass")),
      nack_unpaired(s.counter("nack_unpaired", "NACKs of queue pairs without state; they pass")),
      answer_bad_icrc(
          s.counter("answer_bad_icrc", "ACKs and NACKs with a wrong or unheld ICRC; they pass and tell nothing")),
      answer_wrong_port(s.counter("answer_wrong_port", "ACKs and NACKs by another port than their NIC's; they pass")),
      undetermined_invalid(s.counter("undetermined_invalid", "stashed NACKs whose packet came")),
      undetermined_acknowledged(s.counter("undetermined_acknowledged", "stashed NACKs that an ACK went beyond")),
      undetermined_valid(s.counter("undetermined_valid", "stashed NACKs sent: a later packet of their path came")),
      undetermined_ooo_degree(s.counter("undetermined_ooo_degree", "stashed NACKs sent as Path Avoidance Signals")),
      undetermined_doubt(s.counter("undetermined_doubt",
                                   "stashed NACKs sent: a request came that is not sprayed, in no order with it")),
      undetermined_aged(s.counter("undetermined_aged", "stashed NACKs sent after `stash_timeout`")),
      undetermined_released(
          s.counter("undetermined_released", "stashed NACKs sent because their queue pair lost its state")),
      stash_lost(s.counter("stash_lost", "stashed NACKs that could not be sent: the sender's timer mends it")),
      data_wrong_port(s.counter("data_wrong_port", "requests that left by another port than their NIC's")),
      drop_turned(s.counter("drop_turned", "first copies of ACKs and NACKs that went on by a mirror")),
      drop_mirror(s.counter("drop_mirror", "mirrors that no NACK could be made of")),
      turned(s.counter("turned", "ACKs and NACKs turned back to the pipe of their data")),
      turned_unjudged(s.counter("turned_unjudged", "ACKs and NACKs turned back that found no state; they pass")),
      nack_recirculated(s.counter("nack_recirculated", "NACKs recirculated to the pipe of their requests")),
      qps_made(s.counter("qps_made", "queue pairs that got state")),
      qps_begun_anew(s.counter("qps_begun_anew", "queue pairs whose PSNs began anew elsewhere")),
      windows_jumped(s.counter("windows_jumped", "ACKs of more than a window at once, as behind a long READ")),
      qps_ended(s.counter("qps_ended", "queue pairs that the connection manager ended")),
      qps_aged(s.counter("qps_aged", "queue pairs forgotten after `qp_timeout`")),
      qps_displaced(s.counter("qps_displaced", "queue pairs that gave their state to one paired by a stronger source")),
      qp_full(s.counter("qp_full", "queue pairs that stay on plain ECMP: no state is free")),
      pairing_full(s.counter("pairing_full", "packets of connections beyond those that pairing can look at")),
      pairing_displaced(s.counter("pairing_displaced",
                                  "directions without state forgotten for others: of the port that had most, the one "
                                  "that was silent longest")),
      pairs_undone(
          s.counter("pairs_undone",
                    "pairs that an ACK contradicted, that another queue pair acknowledges, or that were silent "
                    "while a handshake contested them")),
      cm_refused(s.counter("cm_refused",
                           "messages of the connection manager that would end or replace a pair that is alive, or of "
                           "another port than the pair's")),
      paths_changed(s.counter("paths_changed", "times that a reload changed N, the number of paths")),
      changes_lost(s.counter("changes_lost", "changes of tables put off: more than kChangesMax in one instant")) {}

Counter& Counters::of(Reason reason) {
  switch (reason) {
    case Reason::kInvalid:
      return drop_nack_invalid;
    case Reason::kUndetermined:
      return drop_nack_undetermined;
    case Reason::kBehindWindow:
      return nack_behind_window;
    case Reason::kBeforeState:
      return nack_before_state;
    case Reason::kAheadOfData:
      return nack_ahead_of_data;
    case Reason::kDoubt:
      return nack_doubt;
    case Reason::kOtherNak:
      return nack_other;
    default:
      return nack_valid;
  }
}

Counter& Counters::of_stash(Reason reason) {
  switch (reason) {
    case Reason::kInvalid:
      return undetermined_invalid;
    case Reason::kAcknowledged:
      return undetermined_acknowledged;
    case Reason::kOooDegree:
      return undetermined_ooo_degree;
    case Reason::kAged:
      return undetermined_aged;
    case Reason::kDoubt:
      return undetermined_doubt;
    default:
      return undetermined_valid;
  }
}

}  // namespace rocebox::themis
