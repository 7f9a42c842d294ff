// SPDX-License-Identifier: BSD-3-Clause
// Qp: a queue pair: its attributes in verbs' terms, its queues, and the two sides of its transport.
#pragma once
#include <infiniband/verbs.h>
#include <rte_common.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "nic_model/queues/completion_queue.h"
#include "nic_model/queues/receive_queue.h"
#include "nic_model/queues/send_queue.h"
#include "nic_model/rate/observer.h"
#include "nic_model/transport/headers.h"
#include "nic_model/transport/loss_recovery.h"
#include "nic_model/transport/requester.h"
#include "nic_model/transport/responder.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/multicast.h"

namespace rocebox::nic_model {

/// What a queue pair is made with.
struct QpInit {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t domain = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  ReceiveQueue* shared_receive_queue = nullptr;  ///< null: one of its own
  bool signal_all = false;                       ///< every send work request gives a completion
  /// IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: its datagrams to a group do not come to queue pairs of its own NIC.
  bool block_multicast_loopback = false;
  ibv_qp_cap capacity{};
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
  LossRecovery loss_recovery{};
};

/// What each packet needs lies together, from the beginning on: so many cache lines, and prefetch() brings them all.
class alignas(RTE_CACHE_LINE_SIZE) Qp {
 public:
  Qp(Core& core, std::uint32_t number, const QpInit& init, const ibv_qp_cap& granted);

  std::uint32_t number() const { return number_; }
  bool is(ibv_qp_type type) const { return init.type == type; }
  roce::Service service() const {
    return is(IBV_QPT_RC) ? roce::Service::kRc : is(IBV_QPT_UC) ? roce::Service::kUc : roce::Service::kUd;
  }
  Accessor accessor() const { return {init.domain, number_}; }
  bool can_receive() const {
    return attributes.state == IBV_QPS_RTR || attributes.state == IBV_QPS_RTS || attributes.state == IBV_QPS_SQD ||
           attributes.state == IBV_QPS_SQE;
  }
  /// The way to one peer on the wire is known: `headers` says which.
  bool reaches_a_peer() const { return path_known && !loops_back && !roce::is_multicast(attributes.remote); }
  bool can_send() const { return attributes.state == IBV_QPS_RTS || attributes.state == IBV_QPS_SQD; }
  /// Whether requests that are posted are flushed.
  bool flushes_requests() const { return attributes.state == IBV_QPS_ERR || attributes.state == IBV_QPS_SQE; }
  /// Of what it sends next: the upper bits of the traffic class, as mlx5 maps DSCPs.
  unsigned priority() const { return (is(IBV_QPT_UD) ? requester.traffic_class() : attributes.traffic_class) >> 5; }
  ReceiveQueue& receive_queue() { return init.shared_receive_queue ? *init.shared_receive_queue : own_receive_queue; }

  QpAttributes attributes;  // a cache line, and of the next one what loss recovery needs
  Qp* next_ready = nullptr;
  /// Some places behind it in that list, perhaps, or no more: only a hint for the cache.
  Qp* soon_ready = nullptr;
  bool is_ready = false;    ///< it stands in the transmitter's list
  bool responds = false;    ///< its last packet was a response
  bool path_known = false;  ///< its next hop's MAC address is known
  bool loops_back = false;  ///< its peer is of this NIC

 private:
  std::uint32_t number_;

 public:
  /// Source and destination of a packet of its peer as they stand in an IPv4 header; 0: whole addresses must be
  /// compared.
  std::uint64_t peer_ipv4 = 0;
  double rate = 0;  ///< bits per second at which its requests leave at most; 0: unlimited
  Timer retransmit_timer;
  const QpInit init;             // its first part
  std::uint64_t turn_bytes = 0;  ///< of its message that have gone in this turn; for the greedy scheduler alone
  alignas(RTE_CACHE_LINE_SIZE) SendQueue send_queue;
  alignas(RTE_CACHE_LINE_SIZE) Requester requester;
  alignas(RTE_CACHE_LINE_SIZE) Responder responder;
  alignas(RTE_CACHE_LINE_SIZE) Headers headers;  ///< of the path of a connected one; once `path_known`
  // From here on what packets seldom need.
  ReceiveQueue own_receive_queue;
  Timer rnr_timer, pace_timer, response_timer;
  Headers notification_headers;  ///< of congestion notifications
  double response_rate = 0;      ///< as `rate`, of its responses to READs
  std::uint32_t rtt_serial = 0;  ///< of its last probe
  /// When the last probes left, by serial number; kNever: there is none that is not answered.
  std::array<Nanos, kProbesUnderWay> rtt_sent{kNever, kNever, kNever, kNever, kNever, kNever, kNever, kNever};
  std::uint64_t peer_message_sent = 0, peer_message_seen = 0;  ///< times in the last messages, each by its sender
  Nanos last_cnp = 0;                                          ///< when this side sent its last congestion notification
  bool has_heard = false;                                      ///< in RTR: its program was told that its peer sends
  std::uint32_t connection = 0;  ///< of RDMA CM that it was given to since it was made or reset; 0: none

  // Hints for the cache: first what lies in the queue pair itself, then, when that is near, what its rings have.

  void prefetch_to_send() const {
    prefetch_lines(&attributes, &init.capacity);
    prefetch_lines(&send_queue, &send_queue + 1);
    requester.prefetch();
    responder.prefetch_state();
    prefetch_line(&headers);
  }
  void prefetch_rings_to_send() const {
    requester.prefetch_to_send();
    send_queue.prefetch_to_send(requester.unsent());
  }
  /// An ACK, or a request.
  void prefetch_to_receive(bool is_response) const {
    prefetch_lines(&attributes, &init.capacity);
    if (is_response) {
      requester.prefetch();
      prefetch_lines(&send_queue, &send_queue + 1);
    } else {
      responder.prefetch();
      prefetch_line(&headers);
    }
  }
  /// An ACK, and what the host does then: it posts again.
  void prefetch_rings_to_complete() const {
    requester.prefetch_to_complete();
    send_queue.prefetch_to_complete(requester.incomplete());
  }
};

inline bool Responder::wants_to_send() const {
  return waiting_ && qp_.path_known && !(is_paced_ && responses_[first_].kind == Response::Kind::kRead);
}

}  // namespace rocebox::nic_model
