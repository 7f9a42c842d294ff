// SPDX-License-Identifier: BSD-3-Clause
// ReliableReceiver: the other end: buffers for the parts of messages, a look at their bitmaps every so often, and what
// the sender is told of them.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/sdr/backend/queue_pair.h"
#include "kernels/sdr/limits.h"
#include "kernels/sdr/reliability/coded_part.h"

namespace rocebox::sdr {

class ReliableReceiver {
 public:
  using OnOver = std::function<void(nic_model::Host&, Transfer&)>;
  ReliableReceiver(QueuePair& qp, const ReliableOptions& options, OnOver on_over);

  /// Messages match those of the sender in this order; they must be as long. `transfer` as for ReliableSender::send().
  void receive(nic_model::Host& host, Transfer& transfer);
  void on_datagram(nic_model::Host& host, const Datagram& datagram);

  /// As ReliableSender::stop().
  void stop(nic_model::Host& host);

  std::uint64_t recovered() const { return recovered_; }
  std::uint64_t nacks() const { return nacks_; }

 private:
  struct Part {
    std::uint64_t number = 0, offset = 0;
    Transfer* transfer = nullptr;
    PartShape shape;
    std::unique_ptr<RepeatReceiver> repeat;
    std::unique_ptr<CodingReceiver> coding;
    CodedPart coded;
    std::uint32_t parity_key = 0;
    std::vector<Receive*> receives;
    std::vector<std::uint8_t> data, parity;  // of coded parts: bitmaps of the whole part
    std::uint32_t seen = 0;                  // chunks, where nothing repeats them
    Time give_up = kNoTime, changed = kNoTime;
    bool asked = false;
  };
  void post_parts(nic_model::Host& host);
  void give_up_waiting(nic_model::Host& host);
  // False: a part was given up, and what was sent for it and for those before it may still come.
  bool may_post(nic_model::Host& host);
  bool post(nic_model::Host& host, Part& part);
  void prepare(nic_model::Host& host, Part& part);
  void look(nic_model::Host& host);
  // False: the part is still under way.
  bool look_at(nic_model::Host& host, Part& part);
  bool look_at_repeat(nic_model::Host& host, Part& part);
  bool look_at_coded(nic_model::Host& host, Part& part);
  bool look_at_unreliable(nic_model::Host& host, Part& part);
  void gather(Part& part);
  std::span<const std::uint8_t> bitmap(const Part& part) const;
  void recover(Part& part);
  void end(nic_model::Host& host, Part& part, const char* error);
  struct Parts {
    std::uint64_t first, end;
  };
  // `messages` of them have no buffer yet, and get none.
  void give_up(nic_model::Host& host, Parts parts, std::uint64_t messages);
  // As ReliableSender::skip().
  void skip(nic_model::Host& host, Transfer& transfer);
  void arm(nic_model::Host& host);

  QueuePair& qp_;
  const ReliableOptions options_;
  OnOver on_over_;
  std::deque<Transfer*> waiting_;
  std::deque<std::unique_ptr<Part>> active_;  // the last one may not have all of its buffers posted yet
  std::vector<std::unique_ptr<Part>> spare_;
  std::deque<Parts> failed_;  // numbers of parts that were given up, the last kFailedPartsMax runs of them
  std::uint64_t next_part_ = 0;
  std::uint64_t recovered_ = 0, nacks_ = 0;
  bool armed_ = false;
  bool has_given_up_ = false;  // parts, of which the peer has not heard yet
  Time hold_until_ = 0;        // nothing is posted before
  Timer timer_;
  std::uint32_t timer_owner_;
};

}  // namespace rocebox::sdr
