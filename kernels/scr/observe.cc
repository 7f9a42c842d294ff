// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/observe.h"

#include <algorithm>
#include <utility>

#include "kernels/scr/nacks.h"
#include "kernels/scr/scr.h"
#include "nic_model/dpa/library.h"
#include "nic_model/pcc/events.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::scr {

namespace pcc = nic_model::pcc;

namespace {

constexpr std::uint32_t kWireOverhead = 24;  // preamble, FCS and gap: rates are the wire's
constexpr std::uint32_t kUnknown = flows::Pairing::kNone;

}  // namespace

void ObserveConfig::fields(Fields& f) {
  FrameworkConfig::fields(f);
  f.rate("rate", rate, {1'000'000, 100'000'000'000'000}, "of the senders' ports, for the policy");
  f.duration("interval", interval, {kMicrosecond, 3600 * kSecond}, "over which rates are reported");
  f.integer("samples", samples, {0, 4096}, "intervals that are reported of a flow: the first ones with packets");
  f.group("pcc", "a program for DOCA PCC in place of a policy: it handles each event at once",
          [this](Fields& g) { pcc.fields(g); });
  if (pcc.has_program() && has_policy()) f.refuse("pcc", "has a program, and there is a policy: one or the other");
  if (pcc.notification.has_program())
    f.refuse("pcc", "has a `notification_point`, which is a NIC's: this sends no answers");
  fixed = flatten_all(f.values());
  std::erase_if(fixed, [](const auto& option) {
    return std::ranges::any_of(kChangeable, [&](std::string_view name) { return is_within(option.first, name); });
  });
  if (flows > kFlowsMax / 2) f.refuse("flows", "are connections here, of two directions each: at most 8192");
  if (flows * samples > std::int64_t{1} << 24)
    f.refuse("samples", "need too much memory: `flows` times `samples` may be 16777216");
}

Observe::Observe(const ObserveConfig& config, Stats& stats)
    : fixed_(config.fixed),
      interval_(config.interval),
      samples_max_(static_cast<std::uint32_t>(config.samples)),
      rate_unit_(static_cast<double>(config.rate) / DOCA_PCC_DEV_MAX_RATE),
      packets_(stats.counter("packets", "packets looked at")),
      others_(stats.counter("other_packets", "packets that tell nothing of a connection: no RoCEv2, or no RC or UC")),
      flows_full_(stats.counter("scr_flows_full", "packets of directions beyond those that are remembered")),
      unpaired_(stats.counter("unpaired_responses", "responses and notifications whose requests are not known")),
      asked_of_(stats.counter("scr_not_carried_out",
                              "probes and messages that the policy asked for: here nobody sends them")),
      wrong_rates_(stats.counter("pcc_wrong_rates", "rates of 0 or above the port's that a program asked for")),
      refused_parameters_(
          stats.counter("pcc_parameters_refused", "new values of parameters that it did not take while it ran")),
      refused_mails_(stats.counter("pcc_mails_refused", "messages of the host that it did not take")),
      program_stops_(stats.counter("pcc_stops", "a program went wrong: its flows keep their last rate")),
      pairing_({.directions = static_cast<std::uint32_t>(2 * config.flows)}),
      flows_(static_cast<std::size_t>(2 * config.flows)),
      samples_(std::make_unique_for_overwrite<Sample[]>(flows_.size() * samples_max_)) {
  if (config.pcc.has_program()) {
    const auto [path, text] = nic_model::dpa::program_file(config.pcc.program, config.pcc.file);
    process_ = std::make_unique<pcc::Process>(
        path, text,
        pcc::ProcessOptions{static_cast<std::uint32_t>(2 * config.flows), config.rate,
                            static_cast<std::uint32_t>(config.pcc.slot), static_cast<std::uint32_t>(config.pcc.threads),
                            config.pcc.watchdog, pcc::Role::kReactionPoint, config.pcc.budget});
    for (const pcc::ParameterValue& one : process_->values_of(config.pcc.values()))
      if (const std::string why = process_->give(one, {}); !why.empty()) throw ConfigError(path + ": " + why);
    if (!config.pcc.mailbox.empty()) process_->check_mailbox();
    give({}, config.pcc.mailbox, 0);
  }
  if (!config.has_policy()) return;
  const auto [path, text] = nic_model::dpa::program_file(config.policy, config.file);
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
  if (is_new && is_on()) begin(number, now);
  roll(number, now);
  const auto bytes = static_cast<std::uint32_t>(packet.wire_bytes() + kWireOverhead);
  flow.packets++;
  flow.bytes += bytes;
  flow.bucket_bytes += bytes;
  if (roce::bth(packet).ack_req()) flow.asked[flow.next_asked++ % kAsked] = {psn, now};
  seen_bytes_ += packet.wire_bytes();
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
    return put(event, number, SCR_NACK, now, aeth->syndrome);
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

// The flow's first request.
void Observe::begin(std::uint32_t number, Nanos now) {
  if (process_) {
    if (!port_is_told_) process_->port_changed({now, 0, seen_bytes_});
    port_is_told_ = true;
    if (!is_on()) return program_stops_.add();
    process_->new_flow(number, now);
    flows_[number].rate = static_cast<std::uint64_t>(DOCA_PCC_DEV_DEFAULT_RATE * rate_unit_);
    return;
  }
  engine_->tell(host_event(now, number, SCR_HOST_NEW_FLOW), *this);
}

void Observe::put(Event& event, std::uint32_t flow, scr_kind kind, Nanos now, std::uint8_t syndrome) {
  if (!is_on() || (engine_ && !engine_->wants(kind))) return;
  event.time = event.since = now;
  event.flow = flow;
  event.count = 1;
  event.kind = static_cast<std::uint8_t>(kind);
  if (process_) return tell_program(event, syndrome);
  engine_->put(event);
  engine_->run(now, *this);
}

// As Pcc does for a NIC. Nobody sends the probes that it asks for: the next round trip that is seen is the answer, with
// nothing of it at the peer.
void Observe::tell_program(const Event& event, std::uint8_t syndrome) {
  static constexpr std::pair<scr_kind, doca_pcc_dev_event_type_enum> kKinds[] = {
      {SCR_TX, DOCA_PCC_DEV_EVNT_ROCE_TX},
      {SCR_ACK, DOCA_PCC_DEV_EVNT_ROCE_ACK},
      {SCR_NACK, DOCA_PCC_DEV_EVNT_ROCE_NACK},
      {SCR_CNP, DOCA_PCC_DEV_EVNT_ROCE_CNP},
      {SCR_RTT, DOCA_PCC_DEV_EVNT_RTT}};
  const auto* kind = std::ranges::find(kKinds, event.kind, [](const auto& one) { return one.first; });
  Flow& flow = flows_[event.flow];
  if (kind == std::end(kKinds) || process_->disabled() >> kind->second & 1) return;
  if (event.kind == SCR_RTT && !std::exchange(flow.wants_rtt, false)) return;
  doca_pcc_dev_event_t told =
      pcc::event_of(kind->second, event.time, pairing_.key(event.flow).destination_qp, ++flow.serial);
  if (event.kind == SCR_TX) pcc::set_sent(told, static_cast<std::uint32_t>(event.bytes));
  if (event.kind == SCR_NACK) pcc::set_nack(told, syndrome);
  const Nanos sent = event.time - event.rtt;
  if (event.kind == SCR_RTT) pcc::set_rtt(told, sent, sent, sent);
  doca_pcc_dev_results_t results{};
  const auto before = static_cast<std::uint32_t>(static_cast<double>(flow.rate) / rate_unit_ + 0.5);
  results.rate = before;
  if (event.kind == SCR_TX) process_->set_source_port(event.udp_source_port);
  if (!process_->handle(event.flow, told, results, {event.time, 0, seen_bytes_})) return program_stops_.add();
  if (results.rtt_req) flow.wants_rtt = true;
  if (results.rate == before) return;
  if (results.rate == 0 || results.rate > DOCA_PCC_DEV_MAX_RATE) wrong_rates_.add();
  roll(event.flow, event.time);
  flow.rate =
      static_cast<std::uint64_t>(std::clamp<std::uint32_t>(results.rate, 1, DOCA_PCC_DEV_MAX_RATE) * rate_unit_);
}

// As Pcc's.
void Observe::give(std::span<const pcc::ParameterValue> values, const std::vector<std::string>& mailbox, Nanos now) {
  if (!process_ || process_->stopped()) return;
  const pcc::Moment moment{now, 0, seen_bytes_};
  for (const pcc::ParameterValue& one : values)
    if (!process_->give(one, moment).empty()) refused_parameters_.add();
  for (const pcc::MailBytes& one : pcc::new_mails(mailbox_, mailbox))
    if (!process_->mail(one, moment)) refused_mails_.add();
  mailbox_ = mailbox;
  if (process_->stopped()) program_stops_.add();
}

class Observe::NewOptions final : public Change {
 public:
  NewOptions(Policy::Values policy, std::vector<pcc::ParameterValue> program, std::vector<std::string> mailbox)
      : policy_(std::move(policy)), program_(std::move(program)), mailbox_(std::move(mailbox)) {}
  void apply(Kernel& kernel, Nanos now) override {
    auto& observe = static_cast<Observe&>(kernel);
    if (observe.engine_) observe.engine_->take(policy_, now);
    observe.give(program_, mailbox_, now);
  }

 private:
  Policy::Values policy_;
  std::vector<pcc::ParameterValue> program_;
  std::vector<std::string> mailbox_;
};

std::unique_ptr<Change> Observe::prepare(const ObserveConfig& config) const {
  if (const std::string other = first_difference(fixed_, config.fixed); !other.empty())
    throw ConfigError("scr: `" + other + "` cannot be changed while it runs; only parameters and messages can");
  if (process_ && !config.pcc.mailbox.empty()) process_->check_mailbox();
  return std::make_unique<NewOptions>(
      engine_ ? engine_->values_of(config.values()) : Policy::Values(),
      process_ ? process_->values_of(config.pcc.values()) : std::vector<pcc::ParameterValue>(), config.pcc.mailbox);
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

}  // namespace rocebox::scr

rocebox::Component rocebox::scr_component() {
  static constexpr Example kExamples[] = {{"no policy: rates alone", "{}"},
                                          {"what water filling would have given, without latencies",
                                           "{policy: fair, timing: {trigger: 0, law: 0, install: 0}}"},
                                          {"what Swift would have done, with few flows remembered",
                                           "{policy: swift, flows: 2, rate: 10Gbps, interval: 100us, samples: 8}"},
                                          {"what a program for DOCA PCC would have done",
                                           "{pcc: {program: rtt_control, parameters: [{id: 0, value: 8000}]}}"},
                                          {nullptr, nullptr}};
  return two_sided_kernel<scr::Observe>(
      "scr", "what a policy of Software-Controlled RDMA would do with RoCEv2 that passes", kExamples);
}
