// SPDX-License-Identifier: BSD-3-Clause
// Pauses: pause frames (802.1Qbb by priority, 802.3x for all) that a NIC obeys.
#pragma once
#include <array>

#include "nic_model/config.h"
#include "nic_model/rate/transmitter.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::nic_model {

class Pauses {
 public:
  Pauses(const NicConfig& config, Transmitter& transmitter, Stats& stats);

  /// Null: it is no pause frame; else what its end is counted as.
  Counter* on_packet(Context& context, Packet packet);
  void on_timer(Context& context);
  const Counter& frames() const { return rx_pause_ctrl_phy_; }

 private:
  // A pause of one priority, or by the frames for all; its time is counted when a frame ends or renews it, or its end
  // comes. mlx5 counts microseconds.
  struct Paused {
    Counter& frames;
    Counter& duration;
    Nanos from = 0, until = 0, counted = 0;
  };
  void renew(Paused& paused, Nanos now, Nanos until);
  void settle(Context& context);

  const NicConfig& config_;
  Transmitter& transmitter_;
  Counter& rx_pause_ctrl_phy_;
  std::vector<Paused> priorities_;  // eight, and the one for all
  Timer timer_;
};

}  // namespace rocebox::nic_model
