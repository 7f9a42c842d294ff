// SPDX-License-Identifier: BSD-3-Clause
// DCQCN's reaction point as an observer: notifications, and NAKs of what is placed directly, reduce a queue pair's
// rate.
#pragma once
#include <vector>

#include "nic_model/rate/dcqcn.h"
#include "nic_model/rate/observer.h"

namespace rocebox::nic_model {

class DcqcnObserver final : public Observer {
 public:
  using Config = DcqcnConfig;
  /// Of queue pairs whose packets are placed directly each NAK for a sequence error is a signal, too (Themis, Figure
  /// 2b).
  DcqcnObserver(const DcqcnConfig& config, const ControlledNic& nic, Stats& stats);

  std::uint32_t events() const override;
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override;
  void on_queue_pair_gone(std::uint32_t qpn) override { of(qpn) = DcqcnRate(); }
  void on_event(Controls& controls, const QpEvent& event) override;
  /// Increases by time of queue pairs that send so seldom that their own packets do not show them in time.
  void on_timer(Controls& controls) override;
  /// When on_timer() has something to do; kNever: it has not. For those who have it beside timers of their own.
  Nanos due() const { return due_; }

 private:
  DcqcnRate& of(std::uint32_t qpn) { return rates_[qpn - first_qpn_]; }

  const DcqcnConfig config_;
  const std::uint32_t first_qpn_;
  bool is_slow(const DcqcnRate& rate) const { return rate.rate() < slow_; }
  void set(Controls& controls, std::uint32_t qpn, const DcqcnRate& rate);
  void adopt(Controls& controls, std::uint32_t qpn, const DcqcnRate& rate);
  void wake(Controls& controls);

  /// At less bits per second a packet takes longer than an increase by time is away.
  const double slow_;
  std::vector<DcqcnRate> rates_;
  std::vector<std::uint32_t> slow_ones_;  // their numbers
  Nanos due_ = kNever;
};

Component dcqcn_component();

}  // namespace rocebox::nic_model
