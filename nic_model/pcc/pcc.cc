// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/pcc.h"

#include <fmt/format.h>

#include <algorithm>

#include "nic_model/dpa/library.h"
#include "runtime/component/component.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/parse.h"

namespace rocebox::nic_model::pcc {
namespace {

constexpr std::uint32_t bit_of(doca_pcc_dev_event_type_enum kind) { return 1u << static_cast<unsigned>(kind); }

// Events of the NIC as the program has them.
constexpr std::pair<QpEventKind, doca_pcc_dev_event_type_enum> kKinds[] = {
    {QpEventKind::kTx, DOCA_PCC_DEV_EVNT_ROCE_TX},
    {QpEventKind::kAck, DOCA_PCC_DEV_EVNT_ROCE_ACK},
    {QpEventKind::kNack, DOCA_PCC_DEV_EVNT_ROCE_NACK},
    {QpEventKind::kCnp, DOCA_PCC_DEV_EVNT_ROCE_CNP},
    {QpEventKind::kRtt, DOCA_PCC_DEV_EVNT_RTT}};

doca_pcc_dev_event_type_enum kind_of(QpEventKind kind) {
  for (const auto& [ours, theirs] : kKinds)
    if (ours == kind) return theirs;
  return DOCA_PCC_DEV_EVNT_NULL;
}

std::uint32_t nack_kind(std::uint8_t syndrome) {
  if (roce::aeth_kind(syndrome) == roce::AethKind::kRnrNak) return DOCA_PCC_DEV_NACK_EVNT_RNR;
  const bool lost = roce::aeth_value(syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError);
  return lost ? DOCA_PCC_DEV_NACK_EVNT_OOS : DOCA_PCC_DEV_NACK_EVNT_NULL;
}

void store_time(unsigned char* to, Nanos time) {
  roce::Be32 word;
  word = static_cast<std::uint32_t>(time);
  std::memcpy(to, &word, sizeof word);
}

}  // namespace

Pcc::Pcc(const PccConfig& config, const ControlledNic& nic, Stats& stats)
    : first_qpn_(nic.first_qpn),
      rate_unit_(static_cast<double>(nic.line_rate) / DOCA_PCC_DEV_MAX_RATE),
      flows_(nic.queue_pairs),
      fallback_({}, nic, stats),
      events_(stats.counter("pcc_events", "events that the program of congestion control handled")),
      probes_(stats.counter("pcc_rtt_requests", "probes of the round-trip time that it asked for")),
      wrong_rates_(stats.counter("pcc_wrong_rates", "rates of 0 or above the port's that it asked for")),
      stops_(stats.counter("pcc_stops", "it went wrong, and DCQCN took over")) {
  if (!config.has_program()) return;
  const std::string path = config.program.empty() ? config.file.path : dpa::library_path(config.program);
  const std::string text = config.program.empty() ? config.file.text : dpa::Program::read(path);
  process_ =
      std::make_unique<Process>(path, text,
                                ProcessOptions{nic.queue_pairs, nic.line_rate, static_cast<std::uint32_t>(config.slot),
                                               static_cast<std::uint32_t>(config.threads), config.watchdog});
  for (const auto& [ours, theirs] : kKinds)
    if (!(process_->disabled() & bit_of(theirs))) wanted_ |= event_bit(ours);
  const Moment at_first;
  for (const ParameterConfig& one : config.parameters)
    if (std::string why =
            process_->set_parameter(static_cast<std::uint32_t>(one.slot), static_cast<std::uint32_t>(one.id),
                                    static_cast<std::uint32_t>(one.value), at_first);
        !why.empty())
      throw ConfigError(fmt::format("`{}`: {}", path, why));
}

// What DCQCN takes when the program has been stopped is asked for from the start.
std::uint32_t Pcc::events() const { return wanted_ | fallback_.events() | event_bit(QpEventKind::kTx); }

void Pcc::on_queue_pair(Controls& controls, std::uint32_t qpn) {
  Flow& flow = flows_[qpn - first_qpn_];
  flow = {};
  flow.known = true;
  if (!is_on()) return fallback_.on_queue_pair(controls, qpn);
  if (!port_is_told_) {
    port_is_told_ = true;
    process_->port_changed({controls.now(), controls.bytes_received(), controls.bytes_sent()});
    if (!is_on()) return fall_back(controls);
  }
  process_->new_flow(qpn - first_qpn_, controls.now());
  set_rate(controls, qpn, flow, DOCA_PCC_DEV_DEFAULT_RATE);
}

bool Pcc::tell(Controls& controls, const QpEvent& event, Flow& flow, doca_pcc_dev_event_t& told) {
  if (event.kind == QpEventKind::kTx) {
    flow.source_port = event.udp_source_port;
    told.sent = {(event.bytes + 31) / 32 & 0xFFFF, 1};
    if (flow.wants_probe && probe(controls, event.qpn, flow)) told.general.flags = DOCA_PCC_DEV_TX_FLAG_RTT_REQ_SENT;
  } else if (event.kind == QpEventKind::kNack) {
    told.general.ev_subtype = nack_kind(event.syndrome) & 0xFF;
  } else if (event.kind == QpEventKind::kRtt) {
    store_time(told.answer, event.rtt->request_sent);
    store_time(told.answer + 4, event.rtt->request_received);
    store_time(told.answer + 8, event.rtt->response_sent);
  }
  if (!(wanted_ & event_bit(event.kind))) return false;
  told.general.ev_type = static_cast<unsigned>(kind_of(event.kind)) & 0xFF;
  told.answers.num_coalesced = 1;
  told.tag = told.qpn = event.qpn;
  told.serial = told.first_serial = ++flow.serial;
  return true;
}

void Pcc::on_event(Controls& controls, const QpEvent& event) {
  if (!is_on()) {
    if (fallback_.events() & event_bit(event.kind)) fallback_.on_event(controls, event);
    return;
  }
  Flow& flow = flows_[event.qpn - first_qpn_];
  if (!flow.known) return;  // it has not been ready to send
  doca_pcc_dev_event_t told{};
  told.time = told.first_time = static_cast<std::uint32_t>(controls.now());
  if (!tell(controls, event, flow, told)) return;
  doca_pcc_dev_results_t results{};
  results.rate = flow.rate;
  process_->set_source_port(flow.source_port);
  events_.add();
  const Moment moment{controls.now(), controls.bytes_received(), controls.bytes_sent()};
  if (!process_->handle(event.qpn - first_qpn_, told, results, moment)) [[unlikely]]
    return fall_back(controls);
  obey(controls, event.qpn, flow, results);
}

void Pcc::obey(Controls& controls, std::uint32_t qpn, Flow& flow, const doca_pcc_dev_results_t& results) {
  if (results.rate != flow.rate) {
    if (results.rate == 0 || results.rate > DOCA_PCC_DEV_MAX_RATE) wrong_rates_.add();
    set_rate(controls, qpn, flow, std::clamp<std::uint32_t>(results.rate, 1, DOCA_PCC_DEV_MAX_RATE));
  }
  if (const std::uint16_t port = process_->new_source_port()) {
    controls.set_udp_source_port(qpn, port);
    flow.source_port = port;
  }
  if (results.rtt_req) flow.wants_probe = true;
}

// A probe leaves with a packet of its flow, on that packet's path: who sends nothing measures nothing.
bool Pcc::probe(Controls& controls, std::uint32_t qpn, Flow& flow) {
  if (!controls.request_rtt(qpn, flow.source_port)) return false;
  flow.wants_probe = false;
  probes_.add();
  return true;
}

void Pcc::set_rate(Controls& controls, std::uint32_t qpn, Flow& flow, std::uint32_t rate) {
  flow.rate = rate;
  controls.set_rate(qpn, rate * rate_unit_);
}

void Pcc::fall_back(Controls& controls) {
  stops_.add();
  for (std::size_t i = 0; i < flows_.size(); i++)
    if (flows_[i].known) fallback_.on_queue_pair(controls, first_qpn_ + static_cast<std::uint32_t>(i));
}

void Pcc::report(Report& report) const {
  if (process_) process_->report(report);
}

Component pcc_component() {
  static constexpr Example kExamples[] = {
      {"a NIC whose rates a program sets",
       "address: 10.0.0.1\nrate: 100Gbps\ncongestion_control: pcc\npcc: {program: rtt_control}\n"},
      {nullptr, nullptr}};
  return congestion_control<Pcc>("pcc", "programs written for DOCA PCC (C, an event of a flow at a time) set rates",
                                 kExamples);
}

}  // namespace rocebox::nic_model::pcc
