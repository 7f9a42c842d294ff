// SPDX-License-Identifier: BSD-3-Clause
// ReliableSender: messages that arrive whole: parts of them go as messages of SDR, and their state machines say what is
// sent again.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/sdr/backend/queue_pair.h"
#include "kernels/sdr/reliability/coded_part.h"

namespace rocebox::sdr {

class ReliableSender {
 public:
  using OnOver = std::function<void(nic_model::Host&, Transfer&)>;
  ReliableSender(QueuePair& qp, const ReliableOptions& options, OnOver on_over);

  /// Messages go in this order. `transfer` has address, length and key, and is the caller's to keep until it is over.
  void send(nic_model::Host& host, Transfer& transfer);
  /// What the peer says.
  void on_datagram(nic_model::Host& host, const Datagram& datagram);
  /// Sends what is due and fits, and begins parts that have buffers at the peer.
  void pump(nic_model::Host& host);

  /// The queue pair is gone: messages under way are forgotten, and nobody is told.
  void stop(nic_model::Host& host);

  std::uint64_t repetitions() const { return repetitions_; }
  std::uint64_t fallbacks() const { return fallbacks_; }
  std::uint64_t probes() const { return probes_; }

 private:
  struct Part {
    std::uint64_t number = 0, offset = 0;
    Transfer* transfer = nullptr;
    PartShape shape;
    std::unique_ptr<RepeatSender> repeat;
    std::unique_ptr<CodingSender> coding;
    CodedPart coded;
    std::uint32_t parity_key = 0;
    std::vector<Send*> sends;
    std::uint32_t sent = 0;  // chunks, with nothing repeated
    bool fresh_sent = false, settled = false, fell_back = false;
    Time probe_at = kNoTime, give_up = kNoTime;
  };
  void begin_parts(nic_model::Host& host);
  void give_up_waiting(nic_model::Host& host);
  bool has_part(const Transfer& transfer) const;
  bool begin(nic_model::Host& host, Part& part);
  // Null, or why the part cannot go into the peer's buffers.
  const char* misfit(const Part& part) const;
  // What is left of a message that has failed keeps its numbers, or what follows would go into its buffers.
  void skip(Transfer& transfer);
  bool send_next(nic_model::Host& host, Part& part);
  void put(nic_model::Host& host, Part& part, bool parity, std::uint32_t chunk);
  void settle(nic_model::Host& host, Part& part, const char* error);
  void look_at_time(nic_model::Host& host, Part& part);
  void arm(nic_model::Host& host);
  /// Whether any part was over.
  bool close(nic_model::Host& host);

  QueuePair& qp_;
  const ReliableOptions options_;
  OnOver on_over_;
  std::deque<Transfer*> waiting_;  // not all cut into parts
  std::deque<std::unique_ptr<Part>> active_;
  std::vector<std::unique_ptr<Part>> spare_;
  std::uint64_t next_part_ = 0;
  std::uint64_t repetitions_ = 0, fallbacks_ = 0, probes_ = 0;
  bool pumping_ = false;
  Timer timer_;
  std::uint32_t timer_owner_;
};

}  // namespace rocebox::sdr
