// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/control.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/scr/messages.h"
#include "kernels/scr/nacks.h"
#include "kernels/scr/scr.h"
#include "nic_model/dpa/library.h"

namespace rocebox::scr {
namespace {

namespace nm = nic_model;

struct Kinds {
  nm::QpEventKind theirs;
  scr_kind ours;
};
constexpr Kinds kKinds[] = {{nm::QpEventKind::kTx, SCR_TX},        {nm::QpEventKind::kRx, SCR_RX},
                            {nm::QpEventKind::kAck, SCR_ACK},      {nm::QpEventKind::kNack, SCR_NACK},
                            {nm::QpEventKind::kCnp, SCR_CNP},      {nm::QpEventKind::kRtt, SCR_RTT},
                            {nm::QpEventKind::kTxResponse, SCR_TX}};
static_assert(kKinds[static_cast<unsigned>(nm::QpEventKind::kTxResponse)].theirs == nm::QpEventKind::kTxResponse);

}  // namespace

Control::Control(const ControlConfig& config, const nm::ControlledNic& nic, Stats& stats)
    : first_qpn_(nic.first_qpn),
      hints_(config.hints),
      flows_(nic.queue_pairs),
      flows_full_(
          stats.counter("scr_flows_full", "queue pairs that are DCQCN's, because the policy knows as many as it can")),
      bad_messages_(stats.counter("scr_bad_messages", "messages of peers that no policy sends")),
      wrong_hints_(stats.counter("scr_wrong_hints",
                                 "hints for queue pairs that the policy does not know, or of an absurd weight")),
      early_hints_(stats.counter("scr_early_hints", "hints of a file that wait for their queue pair")),
      hints_file_(config.hints_file, config.hints_period, stats),
      fallback_({}, nic, stats) {
  changes_.reserve(static_cast<std::size_t>(config.trace));
  if (!config.has_policy()) return;
  const auto [path, text] = nm::dpa::program_file(config.policy, config.file);
  FrameworkConfig framework = config;
  framework.flows = std::min<std::int64_t>(config.flows, nic.queue_pairs);
  engine_ = std::make_unique<Engine>(framework, path, text, nic.line_rate, stats);
}

// What DCQCN takes when the policy has been stopped is asked for from the start.
std::uint32_t Control::events() const {
  std::uint32_t wanted = fallback_.events();
  for (const Kinds& one : kKinds)
    if (engine_ && engine_->wants(one.ours)) wanted |= event_bit(one.theirs);
  return wanted;
}

void Control::on_queue_pair(Controls& controls, std::uint32_t qpn) {
  const std::uint32_t number = qpn - first_qpn_;
  Flow& flow = flows_[number];
  const Flow before = std::exchange(flow, {});
  flow.known = true;
  if (!is_on()) return fallback_.on_queue_pair(controls, qpn);
  if (number >= engine_->flows()) {
    flows_full_.add();
    return fallback_.on_queue_pair(controls, qpn);
  }
  controls_ = &controls;
  engine_->tell(host_event(controls.now(), number, SCR_HOST_NEW_FLOW), *this);
  if (before.has_early_hint) tell_hint(qpn, before.early_weight, controls.now());
  settle(controls);
}

// What an application says of that number from now on is of the next one. An early hint is, too: it came after this one
// had gone, or there was none yet.
void Control::on_queue_pair_gone(std::uint32_t qpn) {
  Flow& flow = flows_[qpn - first_qpn_];
  flow.known = flow.responds = false;
  fallback_.on_queue_pair_gone(qpn);
}

// DCQCN's: of those that the policy does not know, or of all when it has been stopped.
void Control::fall_back(Controls& controls, const nm::QpEvent& event) {
  if (!(fallback_.events() & event_bit(event.kind))) return;
  const Nanos due = fallback_.due();
  fallback_.on_event(controls, event);
  if (!is_on() || fallback_.due() == due) return;
  // It has set the NIC's one timer.
  armed_ = kNever;
  settle(controls);
}

void Control::on_event(Controls& controls, const nm::QpEvent& event) {
  const std::uint32_t number = event.qpn - first_qpn_;
  if (!is_on() || number >= engine_->flows()) return fall_back(controls, event);
  controls_ = &controls;
  engine_->run(controls.now(), *this);
  Flow& flow = flows_[number];
  Event told{};
  told.time = told.since = controls.now();
  told.flow = number;
  told.count = 1;
  told.psn = event.psn;
  told.bytes = event.bytes;
  told.udp_source_port = event.udp_source_port;
  told.kind = static_cast<std::uint8_t>(kKinds[static_cast<unsigned>(event.kind)].ours);
  if (told.kind == SCR_TX) flow.source_port = event.udp_source_port;
  if (event.kind == nm::QpEventKind::kTxResponse && !flow.responds) {
    flow.responds = true;
    // Of one that cannot send yet the policy has said nothing.
    if (const std::uint64_t rate = flow.known ? engine_->rate(number) : 0)
      controls.set_response_rate(event.qpn, static_cast<double>(rate));
  }
  if (event.kind == nm::QpEventKind::kNack) told.detail = nack_detail(event.syndrome);
  if (event.rtt) {
    told.rtt = static_cast<std::uint32_t>(std::clamp<Nanos>(event.rtt->rtt(), 0, UINT32_MAX));
    told.network_rtt = static_cast<std::uint32_t>(std::clamp<Nanos>(event.rtt->network_rtt(), 0, told.rtt));
    told.udp_source_port = event.rtt->udp_source_port;
  }
  engine_->put(told);
  settle(controls);
}

void Control::on_peer_message(Controls& controls, std::uint32_t qpn, ConstMessageBytes message) {
  const std::uint32_t number = qpn - first_qpn_;
  if (!is_on() || number >= engine_->flows()) return;
  const std::optional<PeerContents> contents = read_contents(message);
  if (!contents) return bad_messages_.add();
  controls_ = &controls;
  engine_->run(controls.now(), *this);
  Event told{};
  told.time = told.since = controls.now();
  told.flow = number;
  told.count = 1;
  told.kind = SCR_PEER;
  told.detail = contents->kind;
  told.value = contents->value;
  told.value2 = contents->value2;
  engine_->put(told);
  settle(controls);
}

void Control::on_timer(Controls& controls) {
  armed_ = kNever;
  if (!is_on()) return fallback_.on_timer(controls);
  controls_ = &controls;
  if (fallback_.due() <= controls.now()) fallback_.on_timer(controls);
  hint(controls);
  settle(controls);
}

// What applications have said by now.
void Control::hint(Controls& controls) {
  for (; hints_told_ < hints_.size() && hints_[hints_told_].at <= controls.now(); hints_told_++) {
    const HintConfig& one = hints_[hints_told_];
    tell_hint(static_cast<std::uint32_t>(one.qpn), static_cast<std::uint64_t>(one.weight), one.at);
  }
  for (const HintsFile::Hint& one : hints_file_.look(controls.now())) hint_of_file(one, controls.now());
}

// Applications write before they connect, too: the last such hint is told when the queue pair is ready.
void Control::hint_of_file(const HintsFile::Hint& hint, Nanos now) {
  const std::uint32_t number = hint.qpn - first_qpn_;
  if (number >= engine_->flows() || flows_[number].known || hint.weight > kHintWeightMax)
    return tell_hint(hint.qpn, hint.weight, now);
  flows_[number].has_early_hint = true;
  flows_[number].early_weight = static_cast<std::uint16_t>(hint.weight);
  early_hints_.add();
}

void Control::tell_hint(std::uint32_t qpn, std::uint64_t weight, Nanos at) {
  const std::uint32_t number = qpn - first_qpn_;
  if (number >= engine_->flows() || !flows_[number].known || weight > kHintWeightMax) return wrong_hints_.add();
  Event told = host_event(std::max(at, Nanos{0}), number, SCR_HOST_HINT);
  told.value = weight;
  engine_->put(told);
}

// All that is due, and a call for what is due next.
void Control::settle(Controls& controls) {
  controls_ = &controls;
  engine_->run(controls.now(), *this);
  if (!is_on()) {
    // The policy has just been stopped, perhaps in the timer that has told of DCQCN's deadline, too.
    if (fallback_.due() != kNever) controls.wake_at(fallback_.due());
    return;
  }
  Nanos due = std::min({engine_->due(), hints_file_.due(), fallback_.due()});
  if (hints_told_ < hints_.size()) due = std::min(due, std::max(hints_[hints_told_].at, controls.now() + 1));
  if (due == armed_) return;
  armed_ = due;
  controls.wake_at(due);
}

class Control::NewParameters final : public nm::ObserverChange {
 public:
  explicit NewParameters(Policy::Values values) : values_(std::move(values)) {}
  void apply(nm::Observer& observer, Nanos now, const nm::PortBytes& /*bytes*/) override {
    static_cast<Control&>(observer).engine_->take(values_, now);
  }

 private:
  Policy::Values values_;
};

std::unique_ptr<nm::ObserverChange> Control::prepare(const ControlConfig& config) const {
  if (!engine_) return nullptr;
  return std::make_unique<NewParameters>(engine_->values_of(config.values()));
}

void Control::act(const scr_action& action, Nanos now) {
  const std::uint32_t qpn = first_qpn_ + action.flow;
  Flow& flow = flows_[action.flow];
  switch (action.kind) {
    case SCR_SET_RATE:
      controls_->set_rate(qpn, static_cast<double>(action.value));
      if (flow.responds) controls_->set_response_rate(qpn, static_cast<double>(action.value));
      trace(action.flow, now, action.value, 0);
      break;
    case SCR_SET_PORT:
      if (controls_->set_udp_source_port(qpn, action.udp_source_port)) {
        flow.source_port = action.udp_source_port;
        trace(action.flow, now, engine_->rate(action.flow), action.udp_source_port);
      }
      break;
    case SCR_PROBE: {
      const std::uint16_t port = action.udp_source_port ? action.udp_source_port : flow.source_port;
      controls_->request_rtt(qpn, port);
      engine_->await_probe(action.flow, port, now);
      break;
    }
    case SCR_SEND: {
      std::array<std::uint8_t, nm::kPeerMessageBytes> message;
      write_contents(message, {action.detail, action.value, action.value2});
      controls_->send_to_peer(qpn, message);
      break;
    }
    default:
      break;
  }
}

bool Control::look_at_host(Event& event, Nanos) {
  if (event.detail == SCR_HOST_NIC) {
    const nm::NicUse use = controls_->nic_use();
    event.value = use.wire_bytes_sent;
    event.value2 = use.pcie_bytes_read;
    event.ready_flows = use.ready_queue_pairs;
    event.staged_bytes = use.staged_bytes;
    return true;
  }
  event.value = static_cast<std::uint64_t>(controls_->pcie_latency());
  event.value2 = controls_->wire_bytes_received();
  return true;
}

void Control::on_stop(Nanos) {
  for (std::uint32_t i = 0; i < engine_->flows(); i++)
    if (flows_[i].known) {
      fallback_.on_queue_pair(*controls_, first_qpn_ + i);
      if (flows_[i].responds) controls_->set_response_rate(first_qpn_ + i, 0);
    }
}

void Control::trace(std::uint32_t flow, Nanos now, std::uint64_t rate, std::uint16_t port) {
  if (changes_.size() < changes_.capacity()) changes_.push_back({now, rate, first_qpn_ + flow, port});
}

void Control::report(Report& report) const {
  if (!engine_) return;
  engine_->report(report);
  report.table("scr_changes", changes_.size(), [&](Report& r, std::size_t i) {
    const Change& one = changes_[i];
    r.duration("at", one.at);
    r.count("qpn", one.qpn);
    r.count("rate_bits_per_second", static_cast<std::int64_t>(one.rate));
    if (one.port) r.count("udp_source_port_number", one.port);
  });
}

}  // namespace rocebox::scr

rocebox::Component rocebox::scr_control_component() {
  static constexpr Example kExamples[] = {
      {"a NIC whose queue pairs share its port fairly",
       "address: 10.0.0.1\nrate: 100Gbps\ncongestion_control: scr_control\nscr_control: {policy: fair}\n"},
      {nullptr, nullptr}};
  return nic_model::congestion_control<scr::Control>(
      "scr_control",
      "Software-Controlled RDMA: a policy in C sets rates and paths by events of packets, peers and hosts", kExamples);
}
