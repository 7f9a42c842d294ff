// SPDX-License-Identifier: BSD-3-Clause
// Loopback: the way of packets from a queue pair to one of the same NIC: they go through the host's memory and not by
// the wire, so they take PCIe's time and none of the port's.
#pragma once
#include <cstddef>
#include <vector>

#include "nic_model/config.h"
#include "nic_model/rate/transmitter.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {

class Core;

class Loopback {
 public:
  explicit Loopback(const LoopbackConfig& config);

  /// `qp`, whose peer is this NIC, is served in its turn; nothing when it stands in a list.
  void add(Context& context, Qp& qp);
  void remove(Qp& qp);
  /// The timer: puts what has arrived into `arrived`, and lets the next packets leave.
  template <class Arrived>
  void run(Context& context, Arrived&& arrived) {
    while (first_ != end_ && ring_[first_ % ring_.size()].due <= context.now())
      arrived(std::move(ring_[first_++ % ring_.size()].packet));
    send(context);
  }

 private:
  struct OnItsWay {
    PacketPtr packet;
    Nanos due = 0;
  };
  void send(Context& context);
  PacketPtr choose(Context& context);

  const Nanos latency_;
  RateQueue rate_;
  Timer timer_;
  QpList ready_;
  std::vector<OnItsWay> ring_;  // in order; empty until the first packet
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace rocebox::nic_model
