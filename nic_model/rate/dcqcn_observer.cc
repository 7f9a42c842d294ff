// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/rate/dcqcn_observer.h"

#include "runtime/roce/parse.h"

namespace rocebox::nic_model {

DcqcnObserver::DcqcnObserver(const DcqcnConfig& config, std::uint32_t first_qpn, std::size_t queue_pairs,
                             bool naks_say_loss)
    : config_(config), first_qpn_(first_qpn), naks_say_loss_(naks_say_loss), rates_(queue_pairs) {}

std::uint32_t DcqcnObserver::events() const {
  return event_bit(QpEventKind::kTx) | event_bit(QpEventKind::kCnp) |
         (naks_say_loss_ ? event_bit(QpEventKind::kNack) : 0);
}

void DcqcnObserver::on_queue_pair(Controls& controls, std::uint32_t qpn) {
  DcqcnRate& rate = of(qpn);
  rate.start(config_, controls.line_rate(), controls.now());
  controls.set_rate(qpn, rate.rate());
}

void DcqcnObserver::on_event(Controls& controls, const QpEvent& event) {
  DcqcnRate& rate = of(event.qpn);
  if (!rate.is_on()) return;  // it has not been ready to send
  if (event.kind == QpEventKind::kTx) {
    rate.on_sent(controls.now(), event.bytes);
  } else if (event.kind == QpEventKind::kCnp ||
             (roce::aeth_kind(event.syndrome) == roce::AethKind::kNak &&
              roce::aeth_value(event.syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError))) {
    rate.on_congestion(controls.now());
  }
  controls.set_rate(event.qpn, rate.rate());
}

}  // namespace rocebox::nic_model
