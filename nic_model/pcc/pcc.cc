// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/pcc.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nic_model/dpa/library.h"
#include "nic_model/pcc/events.h"
#include "nic_model/pcc/notification.h"
#include "runtime/component/component.h"

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

Moment moment_of(const Controls& controls) {
  return {controls.now(), controls.bytes_received(), controls.bytes_sent()};
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
      stops_(stats.counter("pcc_stops", "it went wrong, and DCQCN took over")),
      refused_parameters_(
          stats.counter("pcc_parameters_refused", "new values of parameters that it did not take while it ran")),
      refused_mails_(stats.counter("pcc_mails_refused", "messages of the host that a program did not take")),
      answers_(stats.counter("pcc_np_answers", "probes of peers whose answers the notification point wrote")),
      refused_answers_(stats.counter("pcc_np_refused", "probes of peers that it did not want answered")),
      notification_stops_(
          stats.counter("pcc_np_stops", "it went wrong; probes are answered with three times from then on")) {
  const Moment at_first;
  if (config.notification.has_program()) {
    const auto [path, text] = dpa::program_file(config.notification.program, config.notification.file);
    notification_ = std::make_unique<Process>(
        path, text,
        ProcessOptions{0, nic.line_rate, 0, static_cast<std::uint32_t>(config.notification.threads), config.watchdog,
                       Role::kNotificationPoint, config.budget});
    if (!config.notification.mailbox.empty()) notification_->check_mailbox();
    notification_mailbox_ = config.notification.mailbox;
    give_notification(new_mails({}, notification_mailbox_), at_first);
  }
  if (!config.has_program()) return;
  const auto [path, text] = dpa::program_file(config.program, config.file);
  process_ = std::make_unique<Process>(
      path, text,
      ProcessOptions{nic.queue_pairs, nic.line_rate, static_cast<std::uint32_t>(config.slot),
                     static_cast<std::uint32_t>(config.threads), config.watchdog, Role::kReactionPoint, config.budget});
  for (const auto& [ours, theirs] : kKinds)
    if (!(process_->disabled() & bit_of(theirs))) wanted_ |= event_bit(ours);
  for (const ParameterValue& one : process_->values_of(config.values()))
    if (std::string why = process_->give(one, at_first); !why.empty())
      throw ConfigError(fmt::format("`{}`: {}", path, why));
  if (!config.mailbox.empty()) process_->check_mailbox();
  mailbox_ = config.mailbox;
  give({}, new_mails({}, mailbox_), at_first);
}

// What DCQCN takes when the program has been stopped is asked for from the start.
std::uint32_t Pcc::events() const { return wanted_ | fallback_.events() | event_bit(QpEventKind::kTx); }

void Pcc::on_queue_pair(Controls& controls, std::uint32_t qpn) {
  Flow& flow = flows_[qpn - first_qpn_];
  flow = {};
  flow.known = true;
  flow.dscp = controls.traffic_class(qpn) >> 2;
  if (has_to_fall_back()) return fall_back(controls);
  if (!is_on()) return fallback_.on_queue_pair(controls, qpn);
  tell_port(*process_, port_is_told_, moment_of(controls));
  if (!is_on()) return stop(controls);
  process_->new_flow(qpn - first_qpn_, controls.now());
  set_rate(controls, qpn, flow, DOCA_PCC_DEV_DEFAULT_RATE);
}

bool Pcc::tell(Controls& controls, const QpEvent& event, Flow& flow, doca_pcc_dev_event_t& told) {
  if (event.kind == QpEventKind::kTx) {
    flow.source_port = event.udp_source_port;
    set_sent(told, event.bytes);
    if (flow.wants_probe && probe(controls, event.qpn, flow)) told.general.flags = DOCA_PCC_DEV_TX_FLAG_RTT_REQ_SENT;
  } else if (event.kind == QpEventKind::kNack) {
    set_nack(told, event.syndrome);
  } else if (event.kind == QpEventKind::kRtt) {
    if (const auto answer = read_answer(event.rtt->payload))
      std::ranges::copy(*answer, told.answer);
    else
      set_rtt(told, event.rtt->request_sent, event.rtt->request_received, event.rtt->response_sent);
  }
  return (wanted_ & event_bit(event.kind)) != 0;
}

void Pcc::on_event(Controls& controls, const QpEvent& event) {
  if (!is_on()) {
    if (has_to_fall_back()) fall_back(controls);
    if (fallback_.events() & event_bit(event.kind)) fallback_.on_event(controls, event);
    return;
  }
  Flow& flow = flows_[event.qpn - first_qpn_];
  if (!flow.known) return;  // it has not been ready to send
  doca_pcc_dev_event_t told = event_of(kind_of(event.kind), controls.now(), event.qpn, flow.serial + 1);
  if (!tell(controls, event, flow, told)) return;
  flow.serial++;
  told.dscp = flow.dscp;
  doca_pcc_dev_results_t results{};
  results.rate = flow.rate;
  process_->set_source_port(flow.source_port);
  events_.add();
  if (!process_->handle(event.qpn - first_qpn_, told, results, moment_of(controls))) [[unlikely]]
    return stop(controls);
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

// In one of the NIC's calls.
void Pcc::stop(Controls& controls) {
  stops_.add();
  fall_back(controls);
}

// Its flows are DCQCN's from now on, each from the port's rate.
void Pcc::fall_back(Controls& controls) {
  has_fallen_back_ = true;
  for (std::size_t i = 0; i < flows_.size(); i++)
    if (flows_[i].known) fallback_.on_queue_pair(controls, first_qpn_ + static_cast<std::uint32_t>(i));
}

void Pcc::tell_port(Process& process, bool& is_told, const Moment& moment) {
  if (!std::exchange(is_told, true)) process.port_changed(moment);
}

// The answer as it would be without a program, once that has gone wrong.
bool Pcc::on_rtt_request(Controls& controls, const RttRequest& request, RttAnswer& answer) {
  if (!notification_ || notification_->stopped()) return true;
  const Moment moment = moment_of(controls);
  tell_port(*notification_, notification_port_is_told_, moment);
  const auto said = notification_->answer(request.qpn - first_qpn_, request, moment);
  if (notification_->stopped()) {
    notification_stops_.add();
    return true;
  }
  if (!said) {
    refused_answers_.add();
    return false;
  }
  answers_.add();
  write_answer(answer.payload, *said);
  if (said->dscp) answer.traffic_class = static_cast<std::uint8_t>(*said->dscp << 2 | (answer.traffic_class & 3));
  return true;
}

// The program's own functions are called, as when a user sets parameters of DOCA PCC and its host application sends
// messages. One that goes wrong in them is stopped at once; its flows go over to DCQCN in the NIC's next call.
void Pcc::give(std::span<const ParameterValue> values, std::span<const MailBytes> mails, const Moment& moment) {
  if (!is_on()) return;
  for (const ParameterValue& one : values)
    if (!process_->give(one, moment).empty()) refused_parameters_.add();
  for (const MailBytes& one : mails)
    if (!process_->mail(one, moment)) refused_mails_.add();
  if (!is_on()) stops_.add();
}

void Pcc::give_notification(std::span<const MailBytes> mails, const Moment& moment) {
  if (!notification_ || notification_->stopped()) return;
  for (const MailBytes& one : mails)
    if (!notification_->mail(one, moment)) refused_mails_.add();
  if (notification_->stopped()) notification_stops_.add();
}

class Pcc::NewOptions final : public ObserverChange {
 public:
  NewOptions(std::vector<ParameterValue> values, std::vector<std::string> mailbox,
             std::vector<std::string> notification_mailbox)
      : values_(std::move(values)),
        mailbox_(std::move(mailbox)),
        notification_mailbox_(std::move(notification_mailbox)) {}
  void apply(Observer& observer, Nanos now, const PortBytes& bytes) override {
    auto& pcc = static_cast<Pcc&>(observer);
    const Moment moment{now, bytes.received, bytes.sent};
    pcc.give(values_, new_mails(pcc.mailbox_, mailbox_), moment);
    pcc.give_notification(new_mails(pcc.notification_mailbox_, notification_mailbox_), moment);
    pcc.mailbox_ = std::move(mailbox_);
    pcc.notification_mailbox_ = std::move(notification_mailbox_);
  }

 private:
  std::vector<ParameterValue> values_;
  std::vector<std::string> mailbox_, notification_mailbox_;
};

std::unique_ptr<ObserverChange> Pcc::prepare(const PccConfig& config) const {
  if (process_ && !config.mailbox.empty()) process_->check_mailbox();
  if (notification_ && !config.notification.mailbox.empty()) notification_->check_mailbox();
  return std::make_unique<NewOptions>(process_ ? process_->values_of(config.values()) : std::vector<ParameterValue>(),
                                      config.mailbox, config.notification.mailbox);
}

void Pcc::report(Report& report) const {
  if (process_) process_->report(report);
  if (notification_) report.object("notification_point", [this](Report& r) { notification_->report(r); });
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
