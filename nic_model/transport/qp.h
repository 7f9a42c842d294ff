// SPDX-License-Identifier: BSD-3-Clause
// Qp: a queue pair: its attributes in verbs' terms, its queues, and the two sides of its transport.
#pragma once
#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "nic_model/queues/completion_queue.h"
#include "nic_model/queues/receive_queue.h"
#include "nic_model/queues/send_queue.h"
#include "nic_model/transport/headers.h"
#include "nic_model/transport/requester.h"
#include "nic_model/transport/responder.h"

namespace rocebox::nic_model {

/// What a queue pair is made with.
struct QpInit {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t domain = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  ReceiveQueue* shared_receive_queue = nullptr;  ///< null: one of its own
  ibv_qp_cap capacity{};
  bool signal_all = false;  ///< every send work request gives a completion
  /// IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: its datagrams to a group do not come to queue pairs of its own NIC.
  bool block_multicast_loopback = false;
  /// Its rings and doorbell record, where a device program posts by itself; `capacity` says nothing then.
  std::optional<QueueMemory> device_memory{};
};

/// Its attributes, as ibv_modify_qp has set them.
struct QpAttributes {
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t path_mtu = 1024;  ///< bytes
  std::uint32_t access = 0;       ///< ibv_access_flags of the remote side
  std::uint32_t destination_qp = 0;
  std::uint32_t receive_psn = 0, send_psn = 0;
  std::uint32_t qkey = 0;
  std::uint8_t max_rd_atomic = 1, max_dest_rd_atomic = 1;
  std::uint8_t min_rnr_timer = 0, timeout = 14, retry_cnt = 7, rnr_retry = 7;
  roce::IpAddress remote{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint16_t udp_source_port = 0;
  double rate_limit = 0;  ///< bits per second; 0: none
};

class Qp {
 public:
  Qp(Core& core, std::uint32_t number, const QpInit& init, const ibv_qp_cap& granted);

  std::uint32_t number() const { return number_; }
  bool is(ibv_qp_type type) const { return init.type == type; }
  Accessor accessor() const { return {init.domain, number_}; }
  bool can_receive() const {
    return attributes.state == IBV_QPS_RTR || attributes.state == IBV_QPS_RTS || attributes.state == IBV_QPS_SQD ||
           attributes.state == IBV_QPS_SQE;
  }
  bool can_send() const { return attributes.state == IBV_QPS_RTS || attributes.state == IBV_QPS_SQD; }
  /// Of what it sends next: the upper bits of the traffic class, as mlx5 maps DSCPs.
  unsigned priority() const { return (is(IBV_QPT_UD) ? requester.traffic_class() : attributes.traffic_class) >> 5; }
  ReceiveQueue& receive_queue() { return init.shared_receive_queue ? *init.shared_receive_queue : own_receive_queue; }

  const QpInit init;
  QpAttributes attributes;
  SendQueue send_queue;
  ReceiveQueue own_receive_queue;
  Headers headers;               ///< of the path of a connected one; once `path_known`
  Headers notification_headers;  ///< of congestion notifications
  bool path_known = false;       ///< its next hop's MAC address is known
  Requester requester;
  Responder responder;
  bool is_ready = false;         ///< it stands in the transmitter's list
  bool responds = false;         ///< its last packet was a response
  std::uint64_t turn_bytes = 0;  ///< of its message that have gone in this turn (greedy scheduler)
  Qp* next_ready = nullptr;
  double rate = 0;               ///< bits per second at which its requests leave at most; 0: unlimited
  std::uint32_t rtt_serial = 0;  ///< of its last probe
  Nanos rtt_sent = kNever;       ///< when that left; kNever: it is answered
  Nanos last_cnp = 0;            ///< when this side sent its last congestion notification
  Timer retransmit_timer, rnr_timer, pace_timer;

  /// Brings what sending needs nearer.
  void prefetch() const {
    __builtin_prefetch(&attributes, 1);
    __builtin_prefetch(&requester, 1);
    __builtin_prefetch(reinterpret_cast<const std::uint8_t*>(&requester) + RTE_CACHE_LINE_SIZE, 1);
    __builtin_prefetch(&responder, 1);
    __builtin_prefetch(&is_ready, 1);
    __builtin_prefetch(&headers);
  }

 private:
  std::uint32_t number_;
};

inline bool Responder::wants_to_send() const { return first_ != end_ && qp_.path_known; }

}  // namespace rocebox::nic_model
