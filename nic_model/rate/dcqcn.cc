// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/dcqcn.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernel/rate_queue.h"

namespace rocebox::nic_model {
namespace {

constexpr double kUnits = 1024;  // dce_tcp_g and alpha are in 1/1024

}  // namespace

void DcqcnConfig::fields(Fields& f) {
  f.boolean("enabled", enabled, "obey and send congestion notifications; as `congestion_control: dcqcn` says, too");
  f.duration("rpg_time_reset", rpg_time_reset, {kMicrosecond, kSecond}, "time between increases of the rate");
  f.bytes("rpg_byte_reset", rpg_byte_reset, {1024, std::uint64_t{1} << 40}, "bytes between increases of the rate");
  f.integer("rpg_threshold", rpg_threshold, {1, 31}, "increases by either before the target rate grows, too");
  f.rate("rpg_ai_rate", rpg_ai_rate, {kRateMin, kRateMax}, "additive increase of the target rate");
  f.rate("rpg_hai_rate", rpg_hai_rate, {kRateMin, kRateMax}, "the same once both have passed the threshold");
  f.rate("rpg_min_rate", rpg_min_rate, {kRateMin, kRateMax}, "the least rate");
  f.rate("rpg_max_rate", rpg_max_rate, {0, kRateMax},
         "the highest rate that is a limit: a queue pair that comes to it is not limited any more; 0: the port's");
  if (rpg_max_rate != 0 && rpg_max_rate < rpg_min_rate) f.refuse("rpg_max_rate", "is less than `rpg_min_rate`");
  f.fraction("rpg_min_dec_fac", rpg_min_dec_fac, {0, 1}, "share of the rate that a reduction leaves at least");
  f.integer("rpg_gd", rpg_gd, {10, 31},
            "a reduction takes alpha, in 1/1024, over two to this power from the rate: 11 is half of alpha");
  f.rate("rate_to_set_on_first_cnp", rate_to_set_on_first_cnp, {0, kRateMax},
         "the rate from which the notification reduces that finds a queue pair without a limit; 0: the port's");
  f.integer("dce_tcp_g", dce_tcp_g, {1, 1024}, "share of alpha that an update keeps, in 1/1024");
  f.duration("dce_tcp_rtt", dce_tcp_rtt, {100, kSecond}, "time between updates of alpha");
  f.duration("rate_reduce_monitor_period", rate_reduce_monitor_period, {0, kSecond},
             "time between reductions at least");
  f.integer("initial_alpha_value", initial_alpha_value, {1, 1023}, "alpha at first, in 1/1024");
  f.boolean("clamp_tgt_rate", clamp_tgt_rate,
            "each reduction moves the target rate, as in DCQCN's paper; false: only the first of a row");
  f.boolean("clamp_tgt_rate_after_time_inc", clamp_tgt_rate_after_time_inc,
            "such a row ends with an increase by time or by bytes; false: by bytes alone");
  f.duration("min_time_between_cnps", min_time_between_cnps, {0, kSecond},
             "of one queue pair, at the notification point");
  f.integer("cnp_dscp", cnp_dscp, {0, 63}, "DSCP of congestion notifications");
}

const char* DcqcnConfig::refuses(std::uint64_t line_rate) const {
  if (line_rate == 0) return "needs the port's `rate:`";
  return rpg_min_rate > line_rate ? "has an `rpg_min_rate`, which is more than the port's `rate`: lower it" : nullptr;
}

std::optional<NotificationPoint> DcqcnConfig::notification_point() const {
  return NotificationPoint{min_time_between_cnps, static_cast<std::uint8_t>(cnp_dscp)};
}

void DcqcnRate::start(const DcqcnConfig& config, std::uint64_t line_rate, Nanos now) {
  *this = DcqcnRate();
  if (line_rate == 0) return;
  config_ = &config;
  line_ = top_ = current_ = target_ = static_cast<double>(line_rate);
  if (config.rpg_max_rate) top_ = std::min(line_, static_cast<double>(config.rpg_max_rate));
  alpha_ = static_cast<double>(config.initial_alpha_value) / kUnits;
  last_reduced_ = now - kSecond;
  increase_at_ = now;
}

// From the first notification on alpha decays in each period without one, whatever the rate is.
void DcqcnRate::decay(Nanos now) {
  if (alpha_at_ == kNever) return;
  const auto updates = (now - alpha_at_) / config_->dce_tcp_rtt;
  if (updates == 0) return;
  alpha_at_ += updates * config_->dce_tcp_rtt;
  alpha_ *=
      std::pow(static_cast<double>(config_->dce_tcp_g) / kUnits, static_cast<double>(updates - (notified_ ? 1 : 0)));
  notified_ = false;
}

// Without a limit there is nothing to increase, and alpha is not asked for before the next notification.
void DcqcnRate::catch_up(Nanos now) {
  if (!limited_) {
    increase_at_ = now;
    return;
  }
  while (limited_ && now - increase_at_ >= config_->rpg_time_reset) {
    increase_at_ += config_->rpg_time_reset;
    by_time_++;
    increase();
  }
}

void DcqcnRate::increase() {
  const std::int64_t most = std::max(by_time_, by_bytes_), least = std::min(by_time_, by_bytes_);
  if (least > config_->rpg_threshold)
    target_ += static_cast<double>(config_->rpg_hai_rate) * static_cast<double>(least - config_->rpg_threshold);
  else if (most > config_->rpg_threshold)
    target_ += static_cast<double>(config_->rpg_ai_rate);
  target_ = std::min(target_, top_);
  current_ = (target_ + current_) / 2;
  if (top_ - current_ > top_ / 1000) return;
  current_ = target_ = line_;
  limited_ = false;
}

void DcqcnRate::on_congestion(Nanos now) {
  if (!is_on()) return;
  catch_up(now);
  decay(now);
  if (alpha_at_ == kNever) alpha_at_ = now;
  const double keep = static_cast<double>(config_->dce_tcp_g) / kUnits;
  if (!notified_) alpha_ = keep * alpha_ + (1 - keep);
  notified_ = true;
  if (now - last_reduced_ < config_->rate_reduce_monitor_period) return;
  last_reduced_ = now;
  if (!limited_ && config_->rate_to_set_on_first_cnp)
    current_ = std::min(line_, static_cast<double>(config_->rate_to_set_on_first_cnp));
  const bool increased = by_bytes_ > 0 || (by_time_ > 0 && config_->clamp_tgt_rate_after_time_inc);
  if (config_->clamp_tgt_rate || increased || !limited_) target_ = std::min(current_, top_);
  const double share = 1 - alpha_ * kUnits / static_cast<double>(std::uint64_t{1} << config_->rpg_gd);
  current_ = std::max(current_ * std::max(share, config_->rpg_min_dec_fac), static_cast<double>(config_->rpg_min_rate));
  current_ = std::min(current_, top_);
  limited_ = true;
  by_time_ = by_bytes_ = 0;
  bytes_ = 0;
  increase_at_ = now;
}

void DcqcnRate::on_sent(Nanos now, std::uint64_t bytes) {
  catch_up(now);
  if (!limited_) return;
  bytes_ += bytes;
  while (limited_ && bytes_ >= config_->rpg_byte_reset) {
    bytes_ -= config_->rpg_byte_reset;
    by_bytes_++;
    increase();
  }
}

}  // namespace rocebox::nic_model
