// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/nic.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/packet/pool.h"
#include "runtime/roce/multicast.h"

namespace rocebox::nic_model {
namespace {

// What a frame to `mac` begins with.
std::array<std::uint8_t, sizeof(roce::Ethernet)> frame_to(const roce::Mac& mac) {
  std::array<std::uint8_t, sizeof(roce::Ethernet)> frame{};
  std::ranges::copy(mac, frame.begin());
  return frame;
}

}  // namespace

Nic::Nic(const NicConfig& config, Stats& stats)
    : config_(config),
      mac_(first_six_bytes(frame_to(config_.mac_address()).data())),
      core_(config_, stats),
      neighbors_(core_),
      group_reports_(core_, stats),
      gsi_(core_, stats),
      connections_(core_, neighbors_, gsi_, stats,
                   [this](Context& context, Qp& qp, const ibv_qp_attr& attributes, int mask) {
                     return host_.modify_qp_in(context, qp, attributes, mask);
                   }),
      host_(core_, connections_, neighbors_, [this](Context& context, Qp& qp) { resolve(context, qp); }),
      rtt_(core_, stats),
      peer_messages_(core_, stats),
      pauses_(config_, core_.transmitter, stats),
      delivered_{&core_.count.delivered, &core_.count.answered, &core_.count.rp_cnp_handled,
                 &core_.count.rp_cnp_ignored, &pauses_.frames()} {
  core_.rtt = &rtt_;
  core_.peer_messages = &peer_messages_;
  if (!config_.control) return;
  try {
    observe_by(config_.control->make({config_.rate, config_.first_qpn, static_cast<std::uint32_t>(config_.queue_pairs)},
                                     stats));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("`{}`: {}", config_.control_name, error.what()));
  }
}

void Nic::observe_by(std::unique_ptr<Observer> observer) {
  observer_ = std::move(observer);
  core_.observe_by(observer_.get());
}

void Nic::start(Context& context) {
  context.reserve_timers(static_cast<std::size_t>(config_.queue_pairs) * 3);
  core_.entropy_seed = context.random();
}

void Nic::on_timer(Context& context, Timer& timer) {
  if (core_.transmitter.owns(timer)) [[likely]] {
    core_.transmitter.run(context, core_);
    return settle(context);
  }
  on_other_timer(context, timer);
}

void Nic::on_other_timer(Context& context, Timer& timer) {
  const auto whose = static_cast<std::uint32_t>(timer_whose(timer.tag()));
  switch (timer_of(timer.tag())) {
    case TimerOf::kTransmitter:  // seen above
      break;
    case TimerOf::kReads:
      core_.transmitter.stage(context);
      break;
    case TimerOf::kRetransmission:
      if (Qp* qp = core_.find(whose)) qp->requester.on_retransmit_timer(context);
      break;
    case TimerOf::kRnr:
      if (Qp* qp = core_.find(whose)) qp->requester.on_rnr_timer(context);
      break;
    case TimerOf::kNeighbors:
      if (whose != 0)
        group_reports_.on_timer(context);
      else if (neighbors_.on_timer(context))
        give_up(context);
      break;
    case TimerOf::kLoopback:
      core_.loopback.run(context, [&](PacketPtr packet) { receive_own(context, std::move(packet)); });
      break;
    case TimerOf::kPause:
      pauses_.on_timer(context);
      break;
    case TimerOf::kCompletion:
      core_.cqs[whose]->on_timer();
      core_.completed.push_back(core_.cqs[whose].get());
      break;
    case TimerOf::kPace:
      if (Qp* qp = core_.find(whose)) qp->requester.on_pace_timer(context);
      break;
    case TimerOf::kResponsePace:
      if (Qp* qp = core_.find(whose)) qp->responder.on_pace_timer(context);
      break;
    case TimerOf::kConnection:
      connections_.on_timer(context, whose);
      break;
    case TimerOf::kObserver: {
      Controls controls(context, core_);
      core_.observer->on_timer(controls);
      break;
    }
    case TimerOf::kDpa:
      host_.on_device_timer(context, timer);
      break;
    case TimerOf::kProgram:
      host_.fire(context, timer);
      break;
  }
  settle(context);
}

void Nic::on_host(Context& context) {
  host_.start_programs(context);
  settle(context);
}

class Nic::NewOptions final : public Change {
 public:
  NewOptions(bool up, std::unique_ptr<ObserverChange> observer) : up_(up), observer_(std::move(observer)) {}
  void apply(Kernel& kernel, Nanos now) override {
    auto& nic = static_cast<Nic&>(kernel);
    if (std::exchange(nic.core_.up, up_) != up_) nic.host_.tell_port(up_);
    if (observer_)
      observer_->apply(*nic.observer_, now,
                       {nic.core_.count.rx_roce_bytes.read(), nic.core_.count.tx_roce_bytes.read()});
  }

 private:
  bool up_;
  std::unique_ptr<ObserverChange> observer_;
};

std::unique_ptr<Change> Nic::prepare(const NicConfig& config) const {
  if (const std::string other = first_difference(config_.fixed, config.fixed); !other.empty())
    throw ConfigError(
        fmt::format("nic: `{}` cannot be changed while it runs; only `up` can, and what a program has of `parameters` "
                    "and `mailbox`",
                    other));
  // The same control as before, if any: its name is among those that are fixed.
  return std::make_unique<NewOptions>(config.up,
                                      config.control && observer_ ? config.control->change(*observer_) : nullptr);
}

void Nic::resolve(Context& context, Qp& qp) {
  const roce::IpAddress& remote = qp.attributes.remote;
  const roce::IpAddress own = config_.source_for(remote);
  qp.peer_ipv4 = 0;  // until the way is known all of its packets are looked at
  qp.loops_back = remote == own;
  const bool is_group = roce::is_multicast(remote);
  const roce::Mac known = is_group ? roce::multicast_mac(remote) : config_.mac_address();
  const roce::Mac* mac = is_group || qp.loops_back ? &known : neighbors_.resolve(context, remote);
  qp.path_known = mac != nullptr;
  if (!mac) return;
  if (roce::is_ipv4(remote) && roce::is_ipv4(own) && !qp.is(IBV_QPT_UD) && !qp.loops_back) {
    auto* both = reinterpret_cast<std::uint8_t*>(&qp.peer_ipv4);
    std::copy_n(remote.begin() + 12, 4, both);
    std::copy_n(own.begin() + 12, 4, both + 4);
  }
  roce::Underlay underlay;
  underlay.source_mac = config_.mac_address();
  underlay.destination_mac = *mac;
  underlay.ip_version = roce::is_ipv4(qp.attributes.remote) ? 4 : 6;
  underlay.addresses = {config_.source_for(qp.attributes.remote), qp.attributes.remote};
  underlay.tos = qp.attributes.traffic_class;
  underlay.ttl = qp.attributes.hop_limit;
  underlay.udp_source_port = qp.attributes.udp_source_port;
  const std::optional<NotificationPoint>& notifies = config_.notification_point;
  if (notifies) underlay.tos = static_cast<std::uint8_t>((underlay.tos & ~roce::kEcnMask) | roce::kEcnEct0);
  qp.headers = Headers(underlay);
  underlay.tos = static_cast<std::uint8_t>(notifies.value_or(NotificationPoint{}).cnp_dscp << 2);
  qp.notification_headers = Headers(underlay);
  core_.wake(context, qp);
}

// A neighbour has become known.
void Nic::resolve_waiting(Context& context) {
  connections_.on_neighbor(context);
  for (const auto& qp : core_.qps)
    if (qp && !qp->path_known && qp->can_receive() && !qp->is(IBV_QPT_UD)) resolve(context, *qp);
}

// What waits for the way to a neighbour that does not answer fails; whoever posts again has it asked again.
void Nic::give_up(Context& context) {
  for (const auto& qp : core_.qps)
    if (qp && !qp->path_known && !qp->is(IBV_QPT_UD) && qp->can_send() &&
        neighbors_.has_given_up(qp->attributes.remote))
      qp->requester.give_up(context);
}

void Nic::report(Report& report) const {
  std::size_t used = 0;
  for (const auto& qp : core_.qps) used += qp != nullptr;
  report.count("queue_pairs", static_cast<std::int64_t>(used));
  report.count("connections", static_cast<std::int64_t>(connections_.connections()));
  report.count("regions", static_cast<std::int64_t>(core_.memory.regions()));
  if (observer_) observer_->report(report);
  host_.report(report);
}

namespace {

class NicOptions final : public DeviceOptions {
 public:
  explicit NicOptions(const Registry& registry) : config_(registry) {}
  void fields(Fields& fields) override { config_.fields(fields); }
  void place(const Placement& placement) override { config_.place(placement); }
  const std::vector<std::string>& ports() const override { return config_.ports; }
  std::uint32_t packet_bytes() const override { return config_.header_only ? kHeaderPacketBytes : 2048; }
  std::uint32_t packets_in_flight() const override { return static_cast<std::uint32_t>(config_.window); }
  std::uint64_t port_rate(Port) const override { return config_.rate; }
  std::vector<OwnAddress> own_addresses() const override {
    std::vector<OwnAddress> all = {{"address", roce::address_text(*config_.address)}};
    if (config_.address6) all.push_back({"address6", roce::address_text(*config_.address6)});
    all.push_back({"mac", roce::mac_text(*config_.mac), true});
    return all;
  }
  std::vector<MadeDatagrams> made_datagrams() const override {
    return {{0, config_.path_mtu_max() + kPathMtuHeaderBytes,
             "give the NIC the port's MTU as its `mtu`, or raise the port's MTU"}};
  }
  const char* one_core_because() const override { return "whose queue pairs and memory are one host's"; }
  std::unique_ptr<Kernel> make(Stats& stats) const override { return std::make_unique<Nic>(config_, stats); }
  std::unique_ptr<Change> change(const Kernel& running) const override {
    return static_cast<const Nic&>(running).prepare(config_);
  }
  bool makes_packets() const override { return true; }

 private:
  NicConfig config_;
};

constexpr Example kExamples[] = {{"a NIC with an IPv4 address", "address: 10.0.0.1\n"}, {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::nic_model

rocebox::Component rocebox::nic_component() {
  return device_kind<nic_model::NicOptions>("nic", "an RDMA NIC: queue pairs, memory and completions behind one port",
                                            nic_model::kExamples);
}
