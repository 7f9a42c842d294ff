// SPDX-License-Identifier: BSD-3-Clause
// Control: Software-Controlled RDMA of a NIC: what its observer sees goes to a policy, whose rates, paths, probes and
// messages it carries out. Without a policy, or when that one has gone wrong, DCQCN has the queue pairs.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/scr/engine.h"
#include "kernels/scr/hints_file.h"
#include "nic_model/rate/dcqcn_observer.h"
#include "nic_model/rate/observer.h"

namespace rocebox::scr {

class Control final : public nic_model::Observer, private EngineOwner {
 public:
  using Config = ControlConfig;
  /// Throws ConfigError: the policy cannot be had.
  Control(const ControlConfig& config, const nic_model::ControlledNic& nic, Stats& stats);

  std::uint32_t events() const override;
  void on_queue_pair(nic_model::Controls& controls, std::uint32_t qpn) override;
  void on_queue_pair_gone(std::uint32_t qpn) override;
  void on_event(nic_model::Controls& controls, const nic_model::QpEvent& event) override;
  void on_timer(nic_model::Controls& controls) override;
  void on_peer_message(nic_model::Controls& controls, std::uint32_t qpn,
                       std::span<const std::uint8_t, nic_model::kPeerMessageBytes> message) override;
  void report(Report& report) const override;
  /// Throws ConfigError: the policy has no such parameters.
  std::unique_ptr<nic_model::ObserverChange> prepare(const ControlConfig& config) const;

 private:
  class NewParameters;
  using Controls = nic_model::Controls;
  struct Flow {
    std::uint16_t source_port = 0;
    bool known = false, responds = false;
    bool has_early_hint = false;
    std::uint16_t early_weight = 0;  // by a file, before the queue pair was ready
  };
  struct Change {
    Nanos at;
    std::uint64_t rate;
    std::uint32_t qpn;
    std::uint16_t port;
  };
  void act(const scr_action& action, Nanos now) override;
  bool look_at_host(Event& event, Nanos now) override;
  void on_stop(Nanos now) override;
  bool is_on() const { return engine_ && !engine_->stopped(); }
  void fall_back(Controls& controls, const nic_model::QpEvent& event);
  void settle(Controls& controls);
  void hint(Controls& controls);
  void hint_of_file(const HintsFile::Hint& hint, Nanos now);
  void tell_hint(std::uint32_t qpn, std::uint64_t weight, Nanos at);
  void trace(std::uint32_t flow, Nanos now, std::uint64_t rate, std::uint16_t port);

  const std::uint32_t first_qpn_;
  const std::vector<HintConfig> hints_;
  std::size_t hints_told_ = 0;
  std::vector<Flow> flows_;
  Counter &flows_full_, &bad_messages_, &wrong_hints_, &early_hints_;
  HintsFile hints_file_;
  std::unique_ptr<Engine> engine_;
  nic_model::DcqcnObserver fallback_;
  Controls* controls_ = nullptr;  // of the call that is made
  Nanos armed_ = kNever;
  std::vector<Change> changes_;
};

}  // namespace rocebox::scr
