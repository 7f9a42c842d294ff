// SPDX-License-Identifier: BSD-3-Clause
// halve_at_naks: a congestion control of a NIC: a NAK halves its queue pair's rate, an ACK gives some of it back.
// Example: `nic: {rate: 10Gbps, congestion_control: halve_at_naks, halve_at_naks: {step: 100Mbps}}`.
#include <algorithm>

#include "nic_model/rate/congestion_control.h"

using namespace rocebox;
using namespace rocebox::nic_model;

namespace {

class HalveAtNaks final : public Observer {
 public:
  struct Config {
    std::uint64_t step = 100'000'000;
    void fields(Fields& f) {
      f.rate("step", step, {1'000, 400'000'000'000}, "an ACK increases its queue pair's rate by so much");
    }
    const char* refuses(std::uint64_t line_rate) const { return line_rate == 0 ? "needs the port's `rate:`" : nullptr; }
  };
  HalveAtNaks(const Config& config, const ControlledNic& nic, Stats& stats)
      : step_(static_cast<double>(config.step)),
        line_(static_cast<double>(nic.line_rate)),
        halvings_(stats.counter("halvings", "NAKs that halved a queue pair's rate")) {}

  std::uint32_t events() const override { return event_bit(QpEventKind::kAck) | event_bit(QpEventKind::kNack); }
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override { controls.set_rate(qpn, line_); }
  void on_event(Controls& controls, const QpEvent& event) override {
    const double rate = controls.rate(event.qpn);
    if (event.kind == QpEventKind::kNack) halvings_.add();
    controls.set_rate(event.qpn, event.kind == QpEventKind::kNack ? rate / 2 : std::min(rate + step_, line_));
  }

 private:
  double step_, line_;
  Counter& halvings_;
};

}  // namespace

extern "C" const Component* rocebox_components() {
  static const Component components[] = {
      congestion_control<HalveAtNaks>("halve_at_naks", "halves a queue pair's rate at each of its NAKs"), {}};
  return components;
}
