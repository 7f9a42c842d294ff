// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/packet_generator/packet_generator.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernel/report.h"

namespace rocebox::switch_model {

Schedule::Schedule(const ApplicationConfig& config, Nanos origin)
    : batches_(static_cast<std::uint64_t>(config.batches)),
      packets_(static_cast<std::uint64_t>(config.packets)),
      times_(config.every ? static_cast<std::uint64_t>(config.times) : 1),
      batch_period_(config.batch_period()),
      packet_gap_(config.packet_gap),
      every_(config.every),
      trigger_at_(origin + config.start) {
  set_due();
}

void Schedule::advance() {
  if (++packet_ == all()) next_trigger(1);
  set_due();
}

// Packets of this trigger that are due before `limit`.
std::uint64_t Schedule::due_before(Nanos limit) const {
  const Nanos spent = limit - trigger_at_;
  if (spent <= 0) return 0;
  const auto batch = batches_ == 1 ? 0 : static_cast<std::uint64_t>(spent / batch_period_);
  if (batch >= batches_) return all();
  const Nanos within = spent - static_cast<Nanos>(batch) * batch_period_;
  const std::uint64_t packet = within <= 0        ? 0
                               : packet_gap_ == 0 ? packets_
                                                  : static_cast<std::uint64_t>((within - 1) / packet_gap_ + 1);
  return batch * packets_ + std::min(packet, packets_);
}

std::uint64_t Schedule::skip_to(Nanos limit) {
  std::uint64_t skipped = 0;
  if (due_ >= limit) return 0;
  // Whole triggers: a trigger ends before the next one begins.
  if (every_ != 0 && limit - trigger_at_ > every_) {
    const auto left = times_ == 0 ? UINT64_MAX : times_ - trigger_;
    const std::uint64_t whole = std::min(static_cast<std::uint64_t>((limit - trigger_at_) / every_), left);
    skipped += whole * all() - packet_;
    next_trigger(whole);
  }
  if (trigger_ < times_ || times_ == 0) {
    const std::uint64_t due = due_before(limit);
    if (due > packet_) {
      skipped += due - packet_;
      packet_ = due;
      if (packet_ == all()) next_trigger(1);
    }
  }
  set_due();
  return skipped;
}

void Schedule::next_trigger(std::uint64_t count) {
  trigger_ += count;
  packet_ = 0;
  trigger_at_ += static_cast<Nanos>(count) * every_;
}

void Schedule::set_due() {
  if (times_ != 0 && trigger_ >= times_) {
    due_ = kNever;
    return;
  }
  due_ = trigger_at_ + static_cast<Nanos>(packet_ / packets_) * batch_period_ +
         static_cast<Nanos>(packet_ % packets_) * packet_gap_;
}

PacketGenerator::PacketGenerator(const std::vector<ApplicationConfig>& applications, const SwitchInfo& info,
                                 Stats& stats)
    : generated_(stats.counter("generated", "packets that the packet generator made")),
      missed_(stats.counter("generator_missed", "packets that it left out: it was more than 10 ms late")),
      pool_empty_(stats.counter("generator_pool_empty", "packets that it left out: the pool was dry")) {
  for (const ApplicationConfig& config : applications)
    applications_.push_back({config.name, config, config.packet.frame(), info.find(config.port), {}, 0});
}

void PacketGenerator::begin(Nanos now) {
  begun_ = true;
  for (Application& application : applications_) application.schedule = Schedule(application.config, now);
}

Nanos PacketGenerator::next() const {
  Nanos next = kNever;
  for (const Application& application : applications_) next = std::min(next, application.schedule.due());
  return next;
}

unsigned PacketGenerator::make(Context& context, std::span<PacketState> states) {
  const Nanos now = context.now();
  for (Application& application : applications_) missed_.add(application.schedule.skip_to(now - kGeneratorLagMax));
  for (unsigned count = 0; count < states.size(); count++) {
    const auto first = std::ranges::min_element(
        applications_, {}, [](const Application& application) { return application.schedule.due(); });
    if (first->schedule.due() > now) return count;
    if (!make_one(context, *first, states[count])) {
      for (Application& application : applications_) pool_empty_.add(application.schedule.skip_to(now + 1));
      return count;
    }
    states[count].application = (first - applications_.begin() + 1) & 0x7F;  // at most kApplicationsMax
    first->schedule.advance();
  }
  return static_cast<unsigned>(states.size());
}

bool PacketGenerator::make_one(Context& context, Application& application, PacketState& state) {
  PacketPtr packet = context.allocate(static_cast<std::uint32_t>(application.frame.size()));
  if (!packet) return false;
  std::memcpy(packet->data(), application.frame.data(), application.frame.size());
  packet->meta().input = application.port;
  roce::parse(*packet);
  state = {};
  state.packet = packet.release();
  state.ingress_port = application.port;
  state.instance = Instance::kGenerated;
  state.generator_batch = application.schedule.batch();
  state.replica = application.schedule.packet();
  application.made++;
  generated_.add();
  return true;
}

void PacketGenerator::report(Report& report) const {
  report.table("packet_generator", applications_.size(), [this](Report& row, std::size_t i) {
    row.text("application", applications_[i].name);
    row.count("triggers", static_cast<std::int64_t>(applications_[i].schedule.triggers()));
    row.count("packets", static_cast<std::int64_t>(applications_[i].made));
  });
}

}  // namespace rocebox::switch_model
