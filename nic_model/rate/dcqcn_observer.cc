// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/dcqcn_observer.h"

#include <algorithm>

#include "runtime/roce/parse.h"

namespace rocebox::nic_model {

namespace {
constexpr double kPacketBits = 8 * 4096;
}

DcqcnObserver::DcqcnObserver(const DcqcnConfig& config, const ControlledNic& nic, Stats&)
    : config_(config),
      first_qpn_(nic.first_qpn),
      slow_(kPacketBits * 1e9 / static_cast<double>(config.rpg_time_reset)),
      rates_(nic.queue_pairs) {
  slow_ones_.reserve(nic.queue_pairs);
}

std::uint32_t DcqcnObserver::events() const {
  return event_bit(QpEventKind::kTx) | event_bit(QpEventKind::kTxResponse) | event_bit(QpEventKind::kCnp) |
         event_bit(QpEventKind::kNack);
}

void DcqcnObserver::on_queue_pair(Controls& controls, std::uint32_t qpn) {
  DcqcnRate& rate = of(qpn);
  rate.start(config_, controls.line_rate(), controls.now());
  set(controls, qpn, rate);
}

// What answers the peer's READs is data that meets the same queues.
void DcqcnObserver::set(Controls& controls, std::uint32_t qpn, const DcqcnRate& rate) {
  controls.set_rate(qpn, rate.rate());
  controls.set_response_rate(qpn, rate.rate());
}

void DcqcnObserver::on_event(Controls& controls, const QpEvent& event) {
  DcqcnRate& rate = of(event.qpn);
  if (!rate.is_on()) return;  // it has not been ready to send
  if (event.kind == QpEventKind::kTx || event.kind == QpEventKind::kTxResponse) {
    rate.on_sent(controls.now(), event.bytes);
  } else if (event.kind == QpEventKind::kCnp ||
             (event.places_directly && nack_kind(event.syndrome) == NackKind::kSequence)) {
    rate.on_congestion(controls.now());
  } else {
    return;
  }
  adopt(controls, event.qpn, rate);
}

void DcqcnObserver::adopt(Controls& controls, std::uint32_t qpn, const DcqcnRate& rate) {
  set(controls, qpn, rate);
  if (!is_slow(rate) || std::ranges::find(slow_ones_, qpn) != slow_ones_.end()) return;
  if (slow_ones_.empty()) wake(controls);
  slow_ones_.push_back(qpn);
}

void DcqcnObserver::wake(Controls& controls) {
  due_ = controls.now() + config_.rpg_time_reset;
  controls.wake_at(due_);
}

void DcqcnObserver::on_timer(Controls& controls) {
  std::erase_if(slow_ones_, [&](std::uint32_t qpn) {
    DcqcnRate& rate = of(qpn);
    if (!rate.is_on()) return true;
    rate.catch_up(controls.now());
    set(controls, qpn, rate);
    return !is_slow(rate);
  });
  due_ = kNever;
  if (!slow_ones_.empty()) wake(controls);
}

Component dcqcn_component() {
  static constexpr Example kExamples[] = {
      {"a NIC that slows down by marks", "address: 10.0.0.1\nrate: 100Gbps\ncongestion_control: dcqcn\n"},
      {nullptr, nullptr}};
  return congestion_control<DcqcnObserver>("dcqcn", "DCQCN: rates follow congestion marks that peers tell of",
                                           kExamples);
}

}  // namespace rocebox::nic_model
