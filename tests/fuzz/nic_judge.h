// SPDX-License-Identifier: BSD-3-Clause
// What nic_fuzz.cc knows of each queue pair: what was posted to it, and which completions may therefore come.
#pragma once
#include <vector>

#include "nic_model/host/host.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::nic_bed {

/// Work request identifiers: what it is, of which life of a queue pair, and its number.
enum class Posted : std::uint8_t { kSend = 1, kReceive, kShared };
inline std::uint64_t identifier(Posted what, std::uint32_t life, std::size_t number) {
  return static_cast<std::uint64_t>(what) << 56 | std::uint64_t{life} << 24 | number;
}

/// Requests of a shared receive queue.
struct SharedRequests {
  struct Request {
    std::uint32_t bytes;
    bool done = false;
  };
  std::vector<Request> requests;
};

/// One queue pair from when it is made or reset until the next time.
class Judge {
 public:
  /// `life`: no other has it.
  Judge(ibv_qp_type type, std::uint32_t life, SharedRequests* shared) : type_(type), life_(life), shared_(shared) {}

  std::uint64_t next_send() const { return identifier(Posted::kSend, life_, sends_.size()); }
  void posted_send(bool is_signaled) { sends_.push_back(is_signaled); }
  std::uint64_t next_receive() const { return identifier(Posted::kReceive, life_, receives_.size()); }
  void posted_receive(std::uint32_t bytes) { receives_.push_back(bytes); }

  void completed(const ibv_wc& wc) {
    const auto what = static_cast<Posted>(wc.wr_id >> 56);
    const auto number = static_cast<std::size_t>(wc.wr_id & 0xFFFFFF);
    if (what == Posted::kShared) return completed_shared(wc, number);
    require((wc.wr_id >> 24 & 0xFFFFFFFF) == life_, "a request of a life before does not complete");
    if (what == Posted::kReceive) return completed_receive(wc, number);
    require(what == Posted::kSend, "an identifier that was posted");
    require(number < sends_.size() && number >= sends_done_, "sends complete in order, once, and were posted");
    for (; sends_done_ < number; sends_done_++)
      require(!sends_[sends_done_] && !send_failed_, "only unsignaled ones complete in silence");
    sends_done_ = number + 1;
    if (wc.status == IBV_WC_SUCCESS) {
      require(sends_[number], "an unsignaled one succeeds in silence");
      require(!send_failed_ || type_ != IBV_QPT_RC, "nothing succeeds behind what failed");
      send_failed_ = send_reason_ = false;
    } else {
      require(wc.status == IBV_WC_WR_FLUSH_ERR || !send_reason_, "one request fails, the others are flushed");
      send_failed_ = true;
      send_reason_ = send_reason_ || (type_ == IBV_QPT_RC && wc.status != IBV_WC_WR_FLUSH_ERR);
    }
  }
  /// All that was posted to send, to receive, has completed.
  void require_sends_done() const {
    for (std::size_t i = sends_done_; i < sends_.size(); i++)
      require(!sends_[i] && !send_failed_, "a queue that failed has flushed all that was sent");
  }
  void require_receives_done() const {
    require(receives_done_ == receives_.size(), "a queue that failed has flushed all that was to be received");
  }

 private:
  void completed_receive(const ibv_wc& wc, std::size_t number) {
    require(!shared_, "it has a receive queue of its own");
    require(number < receives_.size() && number == receives_done_, "receives complete in order, once, and were posted");
    receives_done_++;
    received(wc, receives_[number]);
  }
  void completed_shared(const ibv_wc& wc, std::size_t number) {
    require(shared_ && number < shared_->requests.size(), "a shared request that was posted");
    SharedRequests::Request& request = shared_->requests[number];
    require(!std::exchange(request.done, true), "a shared request completes once");
    require(number >= shared_next_, "one queue pair's shared requests complete in order");
    shared_next_ = number + 1;
    received(wc, request.bytes);
  }
  void received(const ibv_wc& wc, std::uint32_t bytes) {
    if (wc.status != IBV_WC_SUCCESS) return void(receive_failed_ = true);
    require(!receive_failed_, "nothing is received behind what failed");
    require(wc.opcode != IBV_WC_RECV || wc.byte_len <= bytes, "a message is no longer than its request");
  }

  ibv_qp_type type_;
  std::uint32_t life_;
  SharedRequests* shared_;
  std::vector<bool> sends_;  // signaled
  std::vector<std::uint32_t> receives_;
  std::size_t sends_done_ = 0, receives_done_ = 0, shared_next_ = 0;
  bool send_failed_ = false, send_reason_ = false, receive_failed_ = false;
};

}  // namespace rocebox::fuzz::nic_bed
