// SPDX-License-Identifier: BSD-3-Clause
// Programmable congestion control: what NICs see of queue pairs becomes events of a program, and what it says becomes
// rates and probes. README.md has the events.
#pragma once
#include <memory>
#include <vector>

#include "nic_model/pcc/config.h"
#include "nic_model/pcc/process.h"
#include "nic_model/rate/dcqcn_observer.h"
#include "nic_model/rate/observer.h"

namespace rocebox::nic_model::pcc {

class Pcc final : public Observer {
 public:
  using Config = PccConfig;
  /// Throws ConfigError: the program cannot be had, or does not take its parameters.
  Pcc(const PccConfig& config, const ControlledNic& nic, Stats& stats);

  std::uint32_t events() const override;
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override;
  void on_queue_pair_gone(std::uint32_t qpn) override {
    flows_[qpn - first_qpn_].known = false;
    fallback_.on_queue_pair_gone(qpn);
  }
  void on_event(Controls& controls, const QpEvent& event) override;
  void on_timer(Controls& controls) override { fallback_.on_timer(controls); }
  bool on_rtt_request(Controls& controls, const RttRequest& request, RttAnswer& answer) override;
  void report(Report& report) const override;
  /// Throws ConfigError: the program has no such parameters.
  std::unique_ptr<ObserverChange> prepare(const PccConfig& config) const;

 private:
  class NewOptions;
  struct Flow {
    std::uint32_t serial = 0, rate = 0;
    std::uint16_t source_port = 0;
    std::uint8_t dscp = 0;
    bool known = false, wants_probe = false;
  };
  bool is_on() const { return process_ && !process_->stopped(); }
  // It was stopped between two calls.
  bool has_to_fall_back() const { return process_ && process_->stopped() && !has_fallen_back_; }
  bool tell(Controls& controls, const QpEvent& event, Flow& flow, doca_pcc_dev_event_t& told);
  void obey(Controls& controls, std::uint32_t qpn, Flow& flow, const doca_pcc_dev_results_t& results);
  bool probe(Controls& controls, std::uint32_t qpn, Flow& flow);
  void tell_port(Process& process, bool& is_told, const Moment& moment);
  void give(std::span<const ParameterValue> values, std::span<const MailBytes> mails, const Moment& moment);
  void give_notification(std::span<const MailBytes> mails, const Moment& moment);
  void set_rate(Controls& controls, std::uint32_t qpn, Flow& flow, std::uint32_t rate);
  void stop(Controls& controls);
  void fall_back(Controls& controls);

  const std::uint32_t first_qpn_;
  const double rate_unit_;  // bits per second
  std::unique_ptr<Process> process_, notification_;
  std::vector<std::string> mailbox_, notification_mailbox_;  // what the host has said so far
  std::uint32_t wanted_ = 0;                                 // bits of our kinds of events that the program wants
  std::vector<Flow> flows_;
  DcqcnObserver fallback_;
  bool port_is_told_ = false, notification_port_is_told_ = false, has_fallen_back_ = false;
  Counter &events_, &probes_, &wrong_rates_, &stops_, &refused_parameters_, &refused_mails_;
  Counter &answers_, &refused_answers_, &notification_stops_;
};

Component pcc_component();

}  // namespace rocebox::nic_model::pcc
