// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/nic.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/packet/pool.h"
#include "runtime/roce/icrc.h"

namespace rocebox::nic_model {

Nic::Nic(const NicConfig& config, Stats& stats)
    : config_(config),
      core_(config_, stats),
      neighbors_(core_),
      gsi_(core_, stats),
      connections_(core_, neighbors_, gsi_, stats,
                   [this](Context& context, Qp& qp, const ibv_qp_attr& attributes, int mask) {
                     return host_.modify_qp_in(context, qp, attributes, mask);
                   }),
      host_(core_, connections_, neighbors_, [this](Context& context, Qp& qp) { resolve(context, qp); }),
      rtt_(core_, neighbors_, stats),
      pauses_(config_, core_.transmitter, stats) {
  core_.rtt = &rtt_;
  if (config_.control)
    observe_by(config_.control->make(
        {config_.rate, config_.first_qpn, static_cast<std::uint32_t>(config_.queue_pairs), config_.places_directly()},
        stats));
}

void Nic::observe_by(std::unique_ptr<Observer> observer) {
  observer_ = std::move(observer);
  core_.observe_by(observer_.get());
}

void Nic::start(Context& context) { context.reserve_timers(static_cast<std::size_t>(config_.queue_pairs) * 2); }

void Nic::process(Context& context, Port, Batch& batch) {
  for (unsigned i = 0; i < batch.size(); i++) batch.drop(i, receive(context, batch[i]));
  host_.settle(context);
}

void Nic::on_timer(Context& context, Timer& timer) {
  const auto whose = static_cast<std::uint32_t>(timer_whose(timer.tag()));
  switch (timer_of(timer.tag())) {
    case TimerOf::kTransmitter:
      core_.transmitter.run(context, core_);
      break;
    case TimerOf::kRetransmission:
      if (Qp* qp = core_.find(whose)) qp->requester.on_retransmit_timer(context);
      break;
    case TimerOf::kRnr:
      if (Qp* qp = core_.find(whose)) qp->requester.on_rnr_timer(context);
      break;
    case TimerOf::kNeighbors:
      if (neighbors_.on_timer(context)) give_up(context);
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
  host_.settle(context);
}

void Nic::on_host(Context& context) {
  host_.start_programs(context);
  host_.settle(context);
}

bool Nic::is_for_us(Packet packet) const {
  const auto* ethernet = packet.header<roce::Ethernet>(0);
  const bool is_group = ethernet->destination[0] & 1;
  return is_group || std::equal(ethernet->destination, ethernet->destination + 6, config_.mac_address().begin());
}

class Nic::NewOptions final : public Change {
 public:
  explicit NewOptions(bool up) : up_(up) {}
  void apply(Kernel& kernel, Nanos) override { static_cast<Nic&>(kernel).core_.up = up_; }

 private:
  bool up_;
};

std::unique_ptr<Change> Nic::prepare(const NicConfig& config) const {
  const auto [own, other] = std::ranges::mismatch(config_.fixed, config.fixed);
  if (own != config_.fixed.end() || other != config.fixed.end())
    throw ConfigError(fmt::format("nic: `{}` cannot be changed while it runs; only `up` can",
                                  own != config_.fixed.end() ? own->first : other->first));
  return std::make_unique<NewOptions>(config.up);
}

Counter& Nic::receive(Context& context, Packet packet) {
  if (!core_.up) [[unlikely]]
    return core_.count.drop_down;
  if (packet.size() < sizeof(roce::Ethernet) || !is_for_us(packet)) return core_.count.drop_not_for_us;
  const PacketMeta& meta = packet.meta();
  if (meta.status == ParseStatus::kRoce) [[likely]]
    return receive_roce(context, packet);
  if (roce::class_of(meta.status) == PacketClass::kMalformed) return core_.count.drop_malformed;
  if (roce::class_of(meta.status) == PacketClass::kTruncated && meta.bth_offset) return core_.count.drop_truncated;
  if (meta.ip_version) {
    const roce::IpAddress to = roce::addresses(packet).destination;
    if (to != config_.source_for(to) && to[0] != 0xFF) return core_.count.drop_not_for_us;
  }
  if (Counter* end = pauses_.on_packet(context, packet)) return *end;
  if (Counter* end = rtt_.on_packet(context, packet)) return *end;
  bool found = false;
  const bool used = neighbors_.on_packet(context, packet, found);
  if (found) connections_.on_neighbor(context);
  if (found)
    for (const auto& qp : core_.qps)
      if (qp && !qp->path_known && qp->can_receive() && !qp->is(IBV_QPT_UD)) resolve(context, *qp);
  return used ? core_.count.answered : core_.count.drop_no_protocol;
}

Counter& Nic::receive_roce(Context& context, Packet packet) {
  Counters& count = core_.count;
  count.rx_roce_packets.add();
  count.rx_roce_bytes.add(packet.wire_bytes());
  if (config_.icrc) {
    const roce::IcrcStatus icrc = roce::icrc_check(packet);
    if (icrc == roce::IcrcStatus::kBad) return count.drop_icrc;
    if (icrc == roce::IcrcStatus::kUnverifiable && !config_.header_only) return count.drop_truncated;
    if (icrc == roce::IcrcStatus::kUnverifiable && !Headers::digest_is_right(packet)) return count.drop_icrc;
  }
  const roce::Bth& bth = roce::bth(packet);
  const roce::Addresses addresses = roce::addresses(packet);
  if (addresses.destination != config_.source_for(addresses.destination)) {
    if (is_multicast(addresses.destination)) return receive_multicast(context, packet);
    return count.drop_not_for_us;
  }
  if ((bth.pkey & 0x7FFF) != 0x7FFF) return count.drop_bad_pkey;
  if (bth.destination_qp == roce::kGsiQpn) {
    Counter* why = gsi_.check(packet);
    return why ? *why : connections_.receive(context, packet);
  }
  Qp* qp = core_.find(static_cast<std::uint32_t>(bth.destination_qp));
  if (!qp) return count.drop_no_qp;
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (info.service == roce::Service::kCnp) return notified(context, *qp, addresses.source);
  if (roce::ecn(packet) == roce::kEcnCe) {
    count.np_ecn_marked_roce_packets.add();
    notify(context, *qp);
  }
  const roce::Service service = qp->is(IBV_QPT_RC)   ? roce::Service::kRc
                                : qp->is(IBV_QPT_UC) ? roce::Service::kUc
                                                     : roce::Service::kUd;
  if (info.service != service) return count.drop_wrong_service;
  if (!qp->can_receive()) return count.drop_qp_state;
  if (service == roce::Service::kUd) return qp->responder.on_datagram(context, packet);
  if (addresses.source != qp->attributes.remote) return count.drop_wrong_peer;
  if (core_.is_observed(QpEventKind::kRx)) [[unlikely]]
    observe_received(context, *qp, packet);
  if (!info.has(roce::kIsResponse)) return qp->responder.on_request(context, packet);
  if (info.has(roce::kIsReadResponse)) return qp->requester.on_read_response(context, packet);
  if (info.has(roce::kHasAtomicAckEth)) return qp->requester.on_atomic_response(context, packet);
  return qp->requester.on_acknowledge(context, packet);
}

void Nic::observe_received(Context& context, Qp& qp, Packet packet) {
  QpEvent event;
  event.kind = QpEventKind::kRx;
  event.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  event.bytes = static_cast<std::uint32_t>(packet.wire_bytes() + config_.overhead);
  event.udp_source_port = static_cast<std::uint16_t>(packet.header<roce::Udp>(packet.meta().udp_offset)->source_port);
  core_.observe(context, qp, event);
}

Counter& Nic::receive_multicast(Context& context, Packet packet) {
  core_.count.multicast_rcv_packets.add();
  const roce::Bth& bth = roce::bth(packet);
  if ((bth.pkey & 0x7FFF) != 0x7FFF) return core_.count.drop_bad_pkey;
  if (bth.destination_qp != kMulticastQpn) return core_.count.drop_no_qp;
  if (roce::opcode_info(packet.meta().opcode).service != roce::Service::kUd) return core_.count.drop_wrong_service;
  return deliver_to_group(core_, context, packet);
}

// Reaction point.
Counter& Nic::notified(Context& context, Qp& qp, const roce::IpAddress& source) {
  if (!core_.is_observed(QpEventKind::kCnp) || !qp.can_send() || source != qp.attributes.remote)
    return core_.count.rp_cnp_ignored;
  QpEvent event;
  event.kind = QpEventKind::kCnp;
  core_.observe(context, qp, event);
  return core_.count.rp_cnp_handled;
}

// Notification point: a packet that came with a mark (annex A17.9.3).
void Nic::notify(Context& context, Qp& qp) {
  if (!config_.notification_point || !qp.path_known || qp.is(IBV_QPT_UD)) return;
  if (context.now() - qp.last_cnp < config_.notification_point->min_time_between_cnps) return;
  qp.last_cnp = context.now();
  PacketFields fields;
  fields.opcode = roce::kOpcodeCnp;
  fields.destination_qp = qp.attributes.destination_qp;
  fields.udp_source_port = qp.attributes.udp_source_port;
  PacketPtr packet = core_.make(context, qp.notification_headers, fields);
  if (!packet) return;
  std::memset(Headers::extension(*packet), 0, sizeof(roce::Cnp));
  packet->header<roce::Bth>(packet->meta().bth_offset)->fecn_becn_resv6 = 0x40;
  core_.finish(*packet);
  if (core_.transmitter.add_control(context, packet))
    core_.count.np_cnp_sent.add();
  else
    context.drop(std::move(packet), core_.count.drop_control_full);
}

void Nic::resolve(Context& context, Qp& qp) {
  const roce::Mac* mac = neighbors_.resolve(context, qp.attributes.remote);
  qp.path_known = mac != nullptr;
  if (!mac) return;
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
