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
  /// Of queue pairs from `first_qpn` on, `queue_pairs` at most. `naks_say_loss`: each NAK for a sequence error is a
  /// signal, too (Themis, Figure 2b).
  DcqcnObserver(const DcqcnConfig& config, std::uint32_t first_qpn, std::size_t queue_pairs, bool naks_say_loss);

  std::uint32_t events() const override;
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override;
  void on_event(Controls& controls, const QpEvent& event) override;

 private:
  DcqcnRate& of(std::uint32_t qpn) { return rates_[qpn - first_qpn_]; }

  const DcqcnConfig config_;
  const std::uint32_t first_qpn_;
  const bool naks_say_loss_;
  std::vector<DcqcnRate> rates_;
};

}  // namespace rocebox::nic_model
