// SPDX-License-Identifier: BSD-3-Clause
// A queue pair's own rate: when its next packet may leave.
#include <algorithm>

#include "nic_model/core.h"
#include "nic_model/transport/pacing.h"
#include "nic_model/transport/requester.h"

namespace rocebox::nic_model {

double Requester::pace_rate() const {
  double rate = qp_.rate;
  for (const double limit : {static_cast<double>(core_.config.limiter.qp_rate), qp_.attributes.rate_limit})
    if (limit != 0 && (rate == 0 || limit < rate)) rate = limit;
  return rate;
}

// What SQD keeps from beginning waits for its program.
bool Requester::waits_for_nothing() const {
  const bool is_kept = qp_.attributes.state == IBV_QPS_SQD && packet_ == 0;
  return (has_outstanding() || (current_ != end_ && !is_kept)) && deadline_ == kNever && !qp_.pace_timer.armed() &&
         !qp_.rnr_timer.armed();
}

// Whether pace() has something to do.
bool Requester::is_paced() const {
  return core_.is_observed(QpEventKind::kTx) || qp_.rate != 0 || qp_.attributes.rate_limit != 0 ||
         core_.config.limiter.qp_rate != 0;
}

// The next packet of a queue pair with a rate waits until this one would be out at that rate.
void Requester::pace(Context& context, Packet packet) {
  const auto bytes = static_cast<std::uint32_t>(packet.wire_bytes() + core_.config.overhead);
  if (core_.is_observed(QpEventKind::kTx)) [[unlikely]] {
    QpEvent event;
    event.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
    event.bytes = bytes;
    event.udp_source_port = qp_.attributes.udp_source_port;
    core_.observe(context, qp_, event);
  }
  const LimiterConfig& limiter = core_.config.limiter;
  const double rate = pace_rate();
  if (rate == 0) return;
  const double nanos_per_byte = 8e9 / limiter.effective(rate);
  const auto time = static_cast<Nanos>(bytes * nanos_per_byte);
  const Nanos saved = most_saved(core_.config, bytes, nanos_per_byte);
  paced_until_ = std::max(paced_until_, context.now() - saved) + time;
  if (paced_until_ > context.now()) context.arm(qp_.pace_timer, paced_until_);
}

// What is left to wait for is so many bits: at the new rate they take another time.
void Requester::on_rate_changed(Context& context, double before) {
  const double rate = pace_rate();
  if (context.now() >= paced_until_ || before == 0 || rate == before) return;
  const LimiterConfig& limiter = core_.config.limiter;
  const double share = rate == 0 ? 0 : limiter.effective(before) / limiter.effective(rate);
  paced_until_ = context.now() + static_cast<Nanos>(static_cast<double>(paced_until_ - context.now()) * share);
  context.arm(qp_.pace_timer, paced_until_);
}

void Requester::on_pace_timer(Context& context) { core_.wake(context, qp_); }

}  // namespace rocebox::nic_model
