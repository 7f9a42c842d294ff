// SPDX-License-Identifier: BSD-3-Clause
// Counters of a NIC, by mlx5's names (hw_counters, ethtool -S) where they mean the same.
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::nic_model {

struct Counters {
  explicit Counters(Stats& stats);

  // What came in and where it ended.
  Counter &rx_roce_packets, &rx_roce_bytes, &delivered, &answered, &drop_not_for_us, &drop_own_address, &drop_no_host,
      &drop_no_protocol, &drop_checksum, &drop_malformed, &drop_no_qp, &drop_wrong_service, &drop_wrong_peer,
      &drop_bad_qkey, &drop_bad_pkey, &drop_qp_state, &drop_icrc, &drop_truncated, &drop_down, &drop_out_of_sequence,
      &drop_duplicate, &drop_rnr, &drop_invalid, &drop_unexpected_response, &drop_message, &drop_group_window,
      &drop_group_sources, &drop_multicast, &multicast_rcv_packets, &multicast_copies;
  // What leaves.
  Counter &tx_roce_packets, &tx_roce_bytes, &tx_no_packet, &drop_control_full, &multicast_xmit_packets, &drop_tx_down;
  // Requests that a responder has executed.
  Counter &rx_write_requests, &rx_read_requests, &rx_atomic_requests, &rx_send_requests;
  // Responder.
  Counter &out_of_sequence, &duplicate_request, &out_of_buffer, &resp_local_length_error, &resp_cqe_error,
      &resp_remote_access_errors, &resp_invalid_requests, &acks_sent, &naks_sent, &rnr_naks_sent, &responses_dropped;
  // Requester.
  Counter &packet_seq_err, &implied_nak_seq_err, &local_ack_timeout_err, &rnr_nak_retry_err, &retries_exceeded,
      &req_cqe_error, &req_cqe_flush_error, &resp_cqe_flush_error, &req_remote_invalid_request,
      &req_remote_access_errors, &req_remote_operation_errors, &retransmitted_packets, &ghost_acks;
  // Completions and congestion.
  Counter &completions, &cq_overruns, &np_ecn_marked_roce_packets, &np_cnp_sent, &rp_cnp_handled, &rp_cnp_ignored;
  // The network below.
  Counter &arp_requests_sent, &arp_replies_sent, &nd_solicitations_sent, &nd_advertisements_sent, &echo_replies_sent,
      &unresolved_neighbors;
};

}  // namespace rocebox::nic_model
