// SPDX-License-Identifier: BSD-3-Clause
// DCQCN (Zhu et al., SIGCOMM 2015): the rate of a queue pair at its reaction point, and when a notification point
// speaks.
#pragma once
#include <cstdint>

#include "nic_model/rate/congestion_control.h"
#include "runtime/component/fields.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model {

/// Parameters by mlx5's names (/sys/class/net/DEVICE/ecn/), with its defaults. The paper's are others (README.md).
struct DcqcnConfig {
  void fields(Fields& fields);
  const char* refuses(std::uint64_t line_rate) const;
  std::optional<NotificationPoint> notification_point() const;

  bool enabled = false;
  // Reaction point.
  Nanos rpg_time_reset = 300 * kMicrosecond;
  std::uint64_t rpg_byte_reset = 32767 * 64;
  std::int64_t rpg_threshold = 1;
  std::uint64_t rpg_ai_rate = 5'000'000, rpg_hai_rate = 50'000'000, rpg_min_rate = 1'000'000;
  std::uint64_t rpg_max_rate = 0;  ///< 0: the port's
  double rpg_min_dec_fac = 0.5;
  std::int64_t rpg_gd = 11;
  std::uint64_t rate_to_set_on_first_cnp = 0;  ///< 0: the port's
  std::int64_t dce_tcp_g = 1019;
  Nanos dce_tcp_rtt = 1 * kMicrosecond;
  Nanos rate_reduce_monitor_period = 4 * kMicrosecond;
  std::int64_t initial_alpha_value = 1023;
  bool clamp_tgt_rate = false, clamp_tgt_rate_after_time_inc = true;
  // Notification point.
  Nanos min_time_between_cnps = 4 * kMicrosecond;
  std::int64_t cnp_dscp = 48;
};

/// The reaction point of one queue pair. Time is what each call brings: what has passed since the last one is made up
/// for, so that no timer runs for who does not send. At first, and once increases have taken it to the highest rate,
/// nothing limits it (mlx5 then takes its rate limiter away) until the next notification.
class DcqcnRate {
 public:
  void start(const DcqcnConfig& config, std::uint64_t line_rate, Nanos now);
  bool is_on() const { return config_ != nullptr; }
  /// A congestion notification, or a NAK that says that something was lost.
  void on_congestion(Nanos now);
  /// `bytes` are sent now.
  void on_sent(Nanos now, std::uint64_t bytes);
  /// Does what was due until now.
  void catch_up(Nanos now);
  /// Bits per second.
  double rate() const { return current_; }
  double alpha() const { return alpha_; }

 private:
  void decay(Nanos now);
  void increase();

  const DcqcnConfig* config_ = nullptr;
  double line_ = 0, top_ = 0, current_ = 0, target_ = 0, alpha_ = 1;  // top_: rpg_max_rate
  Nanos last_reduced_ = 0, increase_at_ = 0;
  Nanos alpha_at_ = kNever;  // until when alpha has decayed; kNever: no notification has come
  std::uint64_t bytes_ = 0;
  std::int64_t by_time_ = 0, by_bytes_ = 0;
  bool notified_ = false;  // since alpha was updated last
  bool limited_ = false;   // a rate limiter is there
};

}  // namespace rocebox::nic_model
