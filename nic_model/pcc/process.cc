// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/component/component.h"

namespace rocebox::nic_model::pcc {
namespace {

constexpr std::size_t kLinesKept = 64;
constexpr std::uint32_t kCountersSampledMax = 64;
constexpr std::uint32_t kRxBytes = 1, kTxBytes = 2;  // doca_pcc_dev_nic_port_counter_types_t
constexpr std::uint64_t kFlowGuard = std::uint64_t{kGuard} << 32 | kGuard;
constexpr std::string_view kApi[] = {"doca_pcc_dev_", "doca_pcc_np_dev_", "rocebox_pcc_", "rocebox_dpa_fence"};

thread_local Process* running_process = nullptr;

}  // namespace

Process::Process(const std::string& path, std::string_view program, const ProcessOptions& options)
    : options_(options),
      program_(path, program, kApi),
      calls_(program_, [](void* process) { static_cast<Process*>(process)->call(); }, this,
             {options.watchdog, options.budget}),
      declare_memory_(program_.function<DeclareMemory>("doca_pcc_dev_user_declare_memory")),
      init_(program_.function<Init>("doca_pcc_dev_user_init")),
      algo_(program_.function<Algo>("doca_pcc_dev_user_algo")),
      set_parameters_(program_.function<SetParameters>("doca_pcc_dev_user_set_algo_params")),
      port_changed_(program_.function<PortChanged>("doca_pcc_dev_user_port_info_changed")),
      packet_handler_(program_.function<PacketHandler>("doca_pcc_dev_np_user_packet_handler")),
      mailbox_(program_.function<Mailbox::Handler>("doca_pcc_dev_user_mailbox_handle")),
      flows_(options.flows),
      internal_rates_(options.flows) {
  if (options.role == Role::kNotificationPoint) {
    if (!packet_handler_)
      throw ConfigError(
          fmt::format("`{}` has no doca_pcc_dev_np_user_packet_handler, which a notification point has", path));
    tables_.close();
    return;
  }
  if (!init_ || !algo_)
    throw ConfigError(fmt::format("`{}` has no {}, which a reaction point has", path,
                                  init_ ? "doca_pcc_dev_user_algo" : "doca_pcc_dev_user_init"));
  attributes_.algo_slot = options.slot & 15;
  const Moment at_first;
  if (!run(Call::kInit, at_first)) throw ConfigError(fmt::format("`{}`: {}", path, error_));
  tables_.close();
  const Tables::Slot* slot = tables_.slot(0, options.slot);
  is_internal_ = slot && !slot->enabled;
}

void Process::check(const std::string& path, std::string_view program) { dpa::Program::check(path, program, kApi); }

Process* Process::current() { return running_process; }

void Process::call() {
  switch (call_) {
    case Call::kEvent:
      return algo_(&flows_[flow_].context, event_, &attributes_, results_);
    case Call::kInit:
      is_declaring_ = true;
      if (declare_memory_) declare_memory_();
      is_declaring_ = false;
      return init_(&disabled_);
    case Call::kPort:
      return port_changed_(0);
    case Call::kParameter:
      is_taken_ = set_parameters_(0, slot_, id_, 1, &value_, tables_.slot(0, slot_)->parameters) == 0;
      return;
    case Call::kProbe:
      is_taken_ = packet_handler_(notification_.request(), notification_.response()) == 0;
      return;
    case Call::kMail:
      is_taken_ = mailbox_.deliver();
      return;
  }
}

void Process::fail(const char* why) {
  failure_ = why;
  calls_.leave();
}

bool Process::run(Call call, const Moment& moment) {
  call_ = call;
  moment_ = &moment;
  running_process = this;
  const bool has_returned = calls_.run();
  running_process = nullptr;
  if (!has_returned) [[unlikely]]
    error_ = failure_ ? failure_ : calls_.why();
  return has_returned;
}

void Process::new_flow(std::uint32_t flow, Nanos now) {
  flows_[flow] = {kFlowGuard, {}, kFlowGuard};
  internal_rates_[flow].start(internal_config_, options_.line_rate, now);
}

bool Process::handle(std::uint32_t number, doca_pcc_dev_event_t& event, doca_pcc_dev_results_t& results,
                     const Moment& moment) {
  if (stopped()) return false;
  flow_ = number;
  event_ = &event;
  results_ = &results;
  moment_ = &moment;
  new_source_port_ = 0;
  if (is_internal_) {
    internal(results);
    event_ = nullptr;
    return true;
  }
  is_handling_ = true;
  const bool returned = run(Call::kEvent, moment);
  is_handling_ = false;
  event_ = nullptr;
  if (!returned) return false;
  const Flow& flow = flows_[number];
  if (flow.before != kFlowGuard || flow.after != kFlowGuard) [[unlikely]]
    error_ = fmt::format("it wrote beside the 48 bytes of the context of a flow, in an event of kind {}",
                         static_cast<unsigned>(event.general.ev_type));
  else if (const Tables::Slot* slot = tables_.slot(0, options_.slot); slot && tables_.is_overrun(*slot)) [[unlikely]]
    error_ = fmt::format("it wrote behind the parameters or counters of slot {}", options_.slot);
  return !stopped();
}

std::optional<NotificationAnswer> Process::answer(std::uint32_t flow, const RttRequest& request, const Moment& moment) {
  if (stopped()) return {};
  flow_ = flow;
  is_taken_ = false;
  notification_.begin(request, moment.now);
  if (!run(Call::kProbe, moment)) return {};
  if (notification_.is_overrun()) error_ = "it wrote beside the answer to a probe, or beside the probe";
  if (stopped() || !is_taken_) return {};
  return notification_.answer();
}

bool Process::mail(const MailBytes& message, const Moment& moment) {
  if (stopped()) return false;
  is_taken_ = false;
  mailbox_.begin(message);
  if (!run(Call::kMail, moment)) return false;
  if (mailbox_.is_overrun()) error_ = "it wrote more than there is room for into the response to a message of the host";
  if (stopped()) return false;
  mailbox_.end(moment.now, is_taken_);
  return is_taken_;
}

void Process::check_mailbox() const {
  if (!mailbox_.is_there())
    throw ConfigError(fmt::format("`{}` has no doca_pcc_dev_user_mailbox_handle, which `mailbox` needs", name()));
}

void Process::set_response_dscp(std::uint32_t dscp) {
  if (call_ == Call::kProbe) notification_.set_dscp(dscp);
}

void Process::port_changed(const Moment& moment) {
  if (port_changed_ && !stopped()) run(Call::kPort, moment);
}

std::string Process::set_parameter(std::uint32_t slot, std::uint32_t id, std::uint32_t value, const Moment& moment) {
  if (stopped()) return "the program has been stopped";
  if (std::string why = tables_.refuses(slot, id, value); !why.empty()) return why;
  slot_ = slot;
  id_ = id;
  value_ = value;
  is_taken_ = true;
  if (set_parameters_ && !run(Call::kParameter, moment)) return error_;
  if (!is_taken_) return fmt::format("the program does not take {} as parameter {} of slot {}", value, id, slot);
  tables_.slot(0, slot)->parameters[id] = value;
  return "";
}

std::vector<ParameterValue> Process::values_of(std::span<const ParameterValue> given) const {
  std::vector<ParameterValue> all = tables_.values_at_first();
  for (const ParameterValue& one : given) {
    if (const std::string why = tables_.refuses(one.slot, one.id, one.value); !why.empty())
      throw ConfigError(fmt::format("`{}`: {}", name(), why));
    for (ParameterValue& other : all)
      if (other.slot == one.slot && other.id == one.id) other.value = one.value;
  }
  return all;
}

std::string Process::give(const ParameterValue& what, const Moment& moment) {
  const Tables::Slot* slot = tables_.slot(0, what.slot);
  if (slot && slot->parameters[what.id] == what.value) return "";
  return set_parameter(what.slot, what.id, what.value, moment);
}

bool Process::give_source_port(std::uint16_t port) {
  if (is_handling_) new_source_port_ = port;
  return is_handling_;
}

// By events alone: what time has changed is made up for.
void Process::internal(doca_pcc_dev_results_t& results) {
  if (!event_) fail("doca_pcc_dev_default_internal_algo: outside of an event");
  DcqcnRate& rate = internal_rates_[flow_];
  if (!rate.is_on()) return;
  if (event_->general.ev_type == DOCA_PCC_DEV_EVNT_ROCE_TX)
    rate.on_sent(moment_->now, std::uint64_t{event_->sent.sent_32bytes} * 32);
  else if (event_->general.ev_type == DOCA_PCC_DEV_EVNT_ROCE_CNP)
    rate.on_congestion(moment_->now);
  else
    rate.catch_up(moment_->now);
  const double share = rate.rate() / static_cast<double>(options_.line_rate) * DOCA_PCC_DEV_MAX_RATE;
  results.rate = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(share + 0.5));
}

void Process::say(std::string line) {
  lines_in_all_++;
  if (lines_.size() >= kLinesKept) return;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  lines_.push_back(std::move(line));
}

void Process::configure_counters(const std::uint32_t* ids, std::uint32_t count, std::uint32_t* values) {
  if (count > kCountersSampledMax) fail("doca_pcc_dev_nic_counters_config: too many counters");
  for (std::uint32_t i = 0; i < count; i++) {
    const std::uint32_t type = ids[i] >> 4 & 15, rest = ids[i] & ~0xFFu;
    if ((rest != 1u << 24 && rest != 0) || (type != kRxBytes && type != kTxBytes))
      fail("doca_pcc_dev_nic_counters_config: there is no counter of that name");
  }
  counter_ids_.assign(ids, ids + count);
  counter_values_ = values;
}

void Process::sample_counters() const {
  for (std::size_t i = 0; i < counter_ids_.size(); i++) {
    if (counter_ids_[i] & 15) {
      counter_values_[i] = 0;  // of a port that is not there
      continue;
    }
    const bool sent = (counter_ids_[i] >> 4 & 15) == kTxBytes;
    counter_values_[i] = static_cast<std::uint32_t>(sent ? moment_->bytes_sent : moment_->bytes_received);
  }
}

void Process::report(Report& report) const {
  report.text("pcc_program", name());
  if (stopped()) report.text("pcc_error", error_);
  tables_.report(report);
  mailbox_.report(report);
  report.table("pcc_lines", lines_.size(), [&](Report& r, std::size_t i) { r.text("line", lines_[i]); });
  if (lines_in_all_ > lines_.size())
    report.count("pcc_lines_not_kept", static_cast<std::int64_t>(lines_in_all_ - lines_.size()));
}

}  // namespace rocebox::nic_model::pcc
