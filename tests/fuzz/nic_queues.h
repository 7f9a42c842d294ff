// SPDX-License-Identifier: BSD-3-Clause
// What a host of nic_fuzz.cc shares between queue pairs: completion queues and a shared receive queue, and which events
// of them may come.
#pragma once
#include "tests/fuzz/nic_judge.h"
#include "tests/fuzz/nic_kinds.h"

namespace rocebox::fuzz::nic_bed {

/// One of those whose queue pairs talk across, one of all others'.
inline constexpr unsigned kCqs = 2;
inline unsigned cq_of(unsigned pair) { return kKinds[pair].way == Way::kAcross ? 0 : 1; }

struct WatchedCq {
  nic_model::CompletionQueue* cq = nullptr;
  bool is_armed = false, is_armed_for_all = false;
  std::uint32_t count = 0, period_us = 0;  // of moderation

  void arm(nic_model::Host& host, bool solicited_only) {
    host.arm(*cq, solicited_only);
    is_armed_for_all = !solicited_only || (is_armed && is_armed_for_all);
    is_armed = true;
  }
  void moderate(nic_model::Host& host, std::uint32_t new_count, std::uint32_t new_period_us) {
    require(host.modify_cq(*cq, new_count, new_period_us) == 0, "completions can be moderated");
    count = new_count, period_us = new_period_us;
  }
  /// When all periods are over.
  void require_told() const {
    const bool may_wait = count > 1 && period_us == 0;
    require(!is_armed || !is_armed_for_all || may_wait || cq->unconsumed() == 0 || cq->overrun(),
            "the host is told of what has completed");
  }
};

class SharedQueue {
 public:
  void make(nic_model::Host& host, std::uint32_t requests) {
    ibv_srq_init_attr attributes{};
    attributes.attr = {requests, 2, 0};
    made_for_ = requests;
    queue_ = host.create_srq(attributes);
    require(queue_ != nullptr, "a shared receive queue can be made");
  }
  void destroy(nic_model::Host& host) {
    require(host.destroy_srq(*std::exchange(queue_, nullptr)) == 0, "one that nobody uses can go");
  }
  /// Without queue pairs: all room is taken by what is posted, or free.
  void require_whole(nic_model::Host& host) {
    std::uint32_t requests = queue_->posted();
    for (ibv_recv_wr empty{}; host.post_receive(*queue_, &empty, nullptr) == 0;) requests++;
    require(requests == made_for_, "a shared receive queue gets back what was taken");
  }
  void set_limit(std::uint32_t limit) {
    queue_->set_limit(limit);
    is_armed_ = limit > 0;
  }
  void told_limit(std::uint32_t number) {
    require(queue_ && queue_->number() == number && is_armed_, "a limit is told of once");
    is_armed_ = false;
  }
  std::uint64_t next() const { return identifier(Posted::kShared, 0, requests_.requests.size()); }
  SharedRequests& requests() { return requests_; }
  nic_model::ReceiveQueue* queue() { return queue_; }

 private:
  nic_model::ReceiveQueue* queue_ = nullptr;
  SharedRequests requests_;
  std::uint32_t made_for_ = 0;
  bool is_armed_ = false;
};

}  // namespace rocebox::fuzz::nic_bed
