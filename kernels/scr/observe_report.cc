// SPDX-License-Identifier: BSD-3-Clause
// What the kernel `scr` saw and what the policy said, flow by flow and interval by interval.
#include <utility>

#include "kernels/scr/observe.h"

namespace rocebox::scr {

void Observe::report(Report& report) const {
  if (engine_) engine_->report(report);
  if (process_) process_->report(report);
  std::vector<std::uint32_t> senders;
  for (std::uint32_t i = 0; i < flows_.size(); i++)
    if (flows_[i].packets) senders.push_back(i);
  const auto name = [&](Report& r, std::uint32_t number) {
    const flows::DirectionKey& key = pairing_.key(number);
    r.text("source", roce::address_text(key.addresses.source));
    r.text("destination", roce::address_text(key.addresses.destination));
    r.count("qpn", key.destination_qp);
  };
  report.table("scr_flows", senders.size(), [&](Report& r, std::size_t i) {
    const Flow& flow = flows_[senders[i]];
    name(r, senders[i]);
    r.count("packets", static_cast<std::int64_t>(flow.packets));
    r.count("bytes", static_cast<std::int64_t>(flow.bytes));
    r.count("policy_bits_per_second", static_cast<std::int64_t>(flow.rate));
  });
  std::vector<std::pair<std::uint32_t, const Sample*>> rows;
  for (const std::uint32_t number : senders)
    for (std::uint32_t i = 0; i < flows_[number].samples; i++)
      rows.emplace_back(number, &samples_[std::size_t{number} * samples_max_ + i]);
  report.table("scr_rates", rows.size(), [&](Report& r, std::size_t i) {
    r.duration("at", rows[i].second->at);
    name(r, rows[i].first);
    r.count("seen_bits_per_second", static_cast<std::int64_t>(rows[i].second->seen));
    r.count("policy_bits_per_second", static_cast<std::int64_t>(rows[i].second->policy));
  });
}

}  // namespace rocebox::scr
