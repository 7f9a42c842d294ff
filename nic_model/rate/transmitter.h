// SPDX-License-Identifier: BSD-3-Clause
// Transmitter: the port's one serialiser, and whose turn it is: the NIC's own packets first, then queue pairs in turn,
// a packet each.
#pragma once
#include <vector>

#include "nic_model/config.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {

class Core;
class Qp;

class Transmitter {
 public:
  explicit Transmitter(const NicConfig& config);

  /// `qp` is served in its turn; nothing when it stands in the list.
  void add(Context& context, Qp& qp);
  /// A packet of the NIC's own, before all queue pairs. False: too many wait, and it is the caller's to drop.
  bool add_control(Context& context, PacketPtr& packet);
  /// `qp` is about to go.
  void remove(Qp& qp);
  /// The timer: sends what is due.
  void run(Context& context, Core& core);

 private:
  void arm(Context& context);
  PacketPtr choose(Context& context);
  void leave(Context& context, Core& core, PacketPtr packet);

  RateQueue rate_;
  std::uint64_t overhead_bytes_;
  Timer timer_;
  Qp* first_ = nullptr;
  Qp* last_ = nullptr;
  std::vector<PacketPtr> control_;  // a ring of kControlPacketsMax
  std::size_t control_first_ = 0, control_end_ = 0;
  PacketPtr leaving_;  // its last bit is being sent until the timer fires
};

}  // namespace rocebox::nic_model
