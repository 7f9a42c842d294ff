// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/observe.h"

#include <algorithm>

#include "kernels/scr/scr.h"
#include "nic_model/dpa/library.h"
#include "nic_model/dpa/program.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::scr {
namespace {

constexpr std::uint32_t kWireOverhead = 24;  // preamble, FCS and gap: rates are the wire's
constexpr std::uint32_t kUnknown = flows::Pairing::kNone;

std::uint8_t nack_detail(std::uint8_t syndrome) {
  if (roce::aeth_kind(syndrome) == roce::AethKind::kRnrNak) return SCR_NACK_RNR;
  const bool lost = roce::aeth_value(syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError);
  return lost ? SCR_NACK_SEQUENCE : SCR_NACK_FATAL;
}

}  // namespace

void ObserveConfig::fields(Fields& f) {
  FrameworkConfig::fields(f);
  f.rate("rate", rate, {1'000'000, 100'000'000'000'000}, "of the senders' ports, for the policy");
  f.duration("interval", interval, {kMicrosecond, 3600 * kSecond}, "over which rates are reported");
  f.integer("samples", samples, {0, 4096}, "intervals that are reported of a flow: the first ones with packets");
  if (flows > kFlowsMax / 2) f.refuse("flows", "are connections here, of two directions each: at most 8192");
  if (flows * samples > std::int64_t{1} << 24)
    f.refuse("samples", "need too much memory: `flows` times `samples` may be 16777216");
}

Observe::Observe(const ObserveConfig& config, Stats& stats)
    : interval_(config.interval),
      samples_max_(static_cast<std::uint32_t>(config.samples)),
      packets_(stats.counter("packets", "packets looked at")),
      others_(stats.counter("other_packets", "packets that tell nothing of a connection: no RoCEv2, or no RC or UC")),
      flows_full_(stats.counter("scr_flows_full", "packets of directions beyond those that are remembered")),
      unpaired_(stats.counter("unpaired_responses", "responses and notifications whose requests are not known")),
      asked_of_(stats.counter("scr_not_carried_out",
                              "probes and messages that the policy asked for: here nobody sends them")),
      pairing_({.directions = static_cast<std::uint32_t>(2 * config.flows)}),
      flows_(static_cast<std::size_t>(2 * config.flows)),
      samples_(flows_.size() * samples_max_) {
  if (!config.has_policy()) return;
  const std::string path = config.policy.empty() ? config.file.path : nic_model::dpa::library_path(config.policy);
  const std::string text = config.policy.empty() ? config.file.text : nic_model::dpa::Program::read(path);
  FrameworkConfig framework = config;
  framework.flows = 2 * config.flows;
  engine_ = std::make_unique<Engine>(framework, path, text, config.rate, stats);
}

void Observe::process(Context& context, Port, Batch& batch) {
  const Nanos now = context.now();
  if (engine_) engine_->run(now, *this);
  for (unsigned i = 0; i < batch.size(); i++) look(batch[i], now);
  packets_.add(batch.size());
  if (engine_ && engine_->due() != kNever) context.arm_by(timer_, engine_->due());
}

void Observe::on_timer(Context& context, Timer&) {
  engine_->run(context.now(), *this);
  if (engine_->due() != kNever) context.arm(timer_, engine_->due());
}

void Observe::look(Packet packet, Nanos now) {
  if (!roce::is_roce(packet)) return others_.add();
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const bool is_cnp = info.service == roce::Service::kCnp;
  if (!is_cnp && info.service != roce::Service::kRc && info.service != roce::Service::kUc) return others_.add();
  const roce::QpnPsn numbers = roce::qpn_and_psn(packet);
  const std::uint32_t direction = pairing_.add({roce::addresses(packet), numbers.destination_qp});
  if (direction == kUnknown) return flows_full_.add();
  if (info.has(roce::kIsRequest)) return request(direction, packet, now);
  const bool is_response = info.has(roce::kIsResponse);
  std::uint32_t asker = kUnknown;
  if (is_response) {
    const roce::Aeth* aeth = roce::aeth(packet);
    const bool refused = aeth && roce::aeth_kind(aeth->syndrome) != roce::AethKind::kAck;
    asker = pairing_.response(direction, numbers.psn,
                              refused ? flows::ResponseKind::kNotReceived : flows::ResponseKind::kReceived);
  } else if (is_cnp) {
    asker = pairing_.partner(direction);
  }
  if (asker == kUnknown || !pairing_.requested(asker)) return unpaired_.add();
  if (is_response) return response(asker, packet, now);
  Event event{};
  put(event, asker, SCR_CNP, now);
}

void Observe::request(std::uint32_t number, Packet packet, Nanos now) {
  const std::uint32_t psn = roce::qpn_and_psn(packet).psn;
  const bool is_new = !pairing_.requested(number);
  pairing_.request(number, psn, psn);
  Flow& flow = flows_[number];
  if (is_new && engine_ && !engine_->stopped()) {
    Event event{};
    event.time = event.since = now;
    event.flow = number;
    event.count = 1;
    event.kind = SCR_HOST;
    event.detail = SCR_HOST_NEW_FLOW;
    engine_->tell(event, *this);
  }
  roll(number, now);
  const auto bytes = static_cast<std::uint32_t>(packet.wire_bytes() + kWireOverhead);
  flow.packets++;
  flow.bytes += bytes;
  flow.bucket_bytes += bytes;
  if (roce::bth(packet).ack_req()) flow.asked[flow.next_asked++ % kAsked] = {psn, now};
  Event event{};
  event.bytes = bytes;
  event.psn = psn;
  event.udp_source_port = static_cast<std::uint16_t>(packet.header<roce::Udp>(packet.meta().udp_offset)->source_port);
  put(event, number, SCR_TX, now);
  put(event, number, SCR_RX, now);
}

void Observe::response(std::uint32_t number, Packet packet, Nanos now) {
  Event event{};
  event.psn = roce::qpn_and_psn(packet).psn;
  const roce::Aeth* aeth = roce::aeth(packet);
  if (!aeth || roce::opcode_info(packet).has(roce::kIsReadResponse)) return;
  if (roce::aeth_kind(aeth->syndrome) != roce::AethKind::kAck) {
    event.detail = nack_detail(aeth->syndrome);
    return put(event, number, SCR_NACK, now);
  }
  put(event, number, SCR_ACK, now);
  // The time to the receiver and back, from where the packets pass.
  for (Asked& asked : flows_[number].asked) {
    if (asked.at == kNever || asked.psn != event.psn) continue;
    event.rtt = event.network_rtt = static_cast<std::uint32_t>(std::clamp<Nanos>(now - asked.at, 0, UINT32_MAX));
    asked.at = kNever;
    return put(event, number, SCR_RTT, now);
  }
}

void Observe::put(Event& event, std::uint32_t flow, scr_kind kind, Nanos now) {
  if (!engine_ || engine_->stopped() || !engine_->wants(kind)) return;
  event.time = event.since = now;
  event.flow = flow;
  event.count = 1;
  event.kind = static_cast<std::uint8_t>(kind);
  engine_->put(event);
  engine_->run(now, *this);
}

// Intervals that are over go to the report.
void Observe::roll(std::uint32_t number, Nanos now) {
  Flow& flow = flows_[number];
  if (now - flow.bucket < interval_) return;
  if (flow.bucket_bytes && flow.samples < samples_max_)
    samples_[std::size_t{number} * samples_max_ + flow.samples++] = {
        flow.bucket,
        static_cast<std::uint64_t>(static_cast<double>(flow.bucket_bytes) * 8e9 / static_cast<double>(interval_)),
        flow.rate};
  flow.bucket_bytes = 0;
  flow.bucket = now - now % interval_;
}

void Observe::act(const scr_action& action, Nanos now) {
  if (action.kind == SCR_SET_RATE) {
    roll(action.flow, now);
    flows_[action.flow].rate = action.value;
  } else if (action.kind == SCR_PROBE || action.kind == SCR_SEND) {
    asked_of_.add();
  }
}

void Observe::report(Report& report) const {
  if (engine_) engine_->report(report);
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

rocebox::Component rocebox::scr_component() {
  static constexpr Example kExamples[] = {{"no policy: rates alone", "{}"},
                                          {"what water filling would have given, without latencies",
                                           "{policy: fair, timing: {trigger: 0, law: 0, install: 0}}"},
                                          {"what Swift would have done, with few flows remembered",
                                           "{policy: swift, flows: 2, rate: 10Gbps, interval: 100us, samples: 8}"},
                                          {nullptr, nullptr}};
  return two_sided_kernel<scr::Observe>(
      "scr", "what a policy of Software-Controlled RDMA would do with RoCEv2 that passes", kExamples);
}
