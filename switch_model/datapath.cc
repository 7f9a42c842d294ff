// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/datapath.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocebox::switch_model {
namespace {

// A stream of its own for each control, and for the control plane.
constexpr unsigned kControlPlane = 2;

}  // namespace

Datapath::Counters::Counters(Stats& stats)
    : drop_no_port(stats.counter("drop_no_port", "no program gave the packet a port to leave by")),
      drop_no_members(stats.counter("drop_no_members", "of a multicast group that has no other port")),
      drop_passes(stats.counter("drop_passes", "went round, mirrored or recirculated, more than kPassesMax times")),
      drop_loop_full(stats.counter("drop_loop_full", "recirculated while the loopback port's buffer was full")),
      copy_failed(stats.counter("copy_failed", "replicas and mirrors not made: the pool was dry, or no room for them")),
      replicated(stats.counter("replicated", "copies that multicast groups made")),
      mirrored(stats.counter("mirrored", "copies that mirrors made")),
      recirculated(stats.counter("recirculated", "packets that entered ingress again")),
      drop_no_copy(stats.counter("drop_no_copy", "replicas that were to be edited or recirculated: the pool was dry")),
      strict_violations(stats.counter("strict_violations", "accesses that the hardware could not do; strict mode")) {}

Datapath::Datapath(const Config& config, Stats& stats, bool strict)
    : info_(config.info),
      count_(stats),
      traffic_(config.traffic_manager, info_, stats),
      strict_(strict),
      transmissions_(info_.port_count()),
      recirculation_delay_(config.recirculation_delay),
      waiting_(kLoopPackets),
      generator_(config.applications, info_, stats),
      layout_(info_.pipes),
      violations_(count_.strict_violations),
      names_(config.programs),
      profile_(config.profile),
      accepted_(config.accept_unjudged) {
  groups_ = groups_of(config);
  for (Port port = 0; port < info_.port_count(); port++) pipe_of_.push_back(info_.pipe_of(port));
  due_ports_.reserve(kSwitchPortsMax);
  for (Port port = 0; port < info_.port_count(); port++) transmissions_[port].timer.set_tag(port);
  generated_.reserve(kGeneratedMax);
  pauses_.reserve(2 * kQueuesPerPort * info_.port_count() + 2 * kBatchMax);
  for (unsigned i = 0; i < names_.size(); i++) {
    layout_.begin(names_[i]);
    const Build build{layout_, stats, info_, next_hops_, dynamic_groups_};
    programs_.push_back(config.find(names_[i])->make(build, strict_ ? &accesses_ : nullptr));
    if (programs_[i]->has_ingress()) controls_[0].push_back(i);
    if (programs_[i]->has_egress()) controls_[1].push_back(i);
  }
  shares_ = std::ranges::all_of(controls_[1], [&](unsigned i) { return programs_[i]->owns_what_it_writes(); });
  fixed_options_ = fixed_options(config);
  std::vector<std::string> problems = lay_out(layout_, profile_, used_);
  problems.insert(problems.end(), layout_.beyond().begin(), layout_.beyond().end());
  check_accepted();
  if (strict_ && !problems.empty()) throw ConfigError(fmt::format("{}", fmt::join(problems, "\n")));
}

void Datapath::process(Context& context, Port in, Batch& batch) {
  begin(context);
  const unsigned size = batch.size();
  if (size == 1 && !traffic_.idle()) return process_one(context, in, batch);
  for (unsigned i = 0; i < size; i++) {
    PacketState& p = ingress_[i] = {};
    p.packet = batch[i];
    p.ingress_port = in;
    p.pipe = pipe_of_[in];
  }
  if (!traffic_.idle()) classify(context, in, {ingress_.data(), size});
  run(context, Gress::kIngress, {ingress_.data(), size});
  Leaving leaving{context, &batch};
  if (all_plain(size, context.now())) return pass_plain(leaving, size);
  for (unsigned i = 0; i < size; i++) manage(leaving, ingress_[i], {i, false});
  finish(leaving);
}

// The same for one packet, where it may wait: what goes on to one port is not gathered first.
void Datapath::process_one(Context& context, Port in, Batch& batch) {
  PacketState& p = ingress_[0] = {};
  p.packet = batch[0];
  p.ingress_port = in;
  p.pipe = pipe_of_[in];
  classify(context, in, {&p, 1});
  run(context, Gress::kIngress, {&p, 1});
  Leaving leaving{context, &batch};
  constexpr Cause kItself{0, false};
  if (!is_plain(p) || p.egress_port >= pipe_of_.size()) {
    manage(leaving, p, kItself);
    return finish(leaving);
  }
  if (admit(leaving, p, kItself)) {
    queueing_[0] = {context.now(), 0, 0};
    p.pipe = pipe_of_[p.egress_port];
    run(context, Gress::kEgress, {&p, 1});
    leave(leaving, p, kItself);
  }
  if (!pauses_.empty()) send_pauses(leaving, kBatchMax);
  arm_loops(context);
}

// Whether every packet goes on to one port and nothing waits: then egress works on them where they are, in the pipes of
// these ports.
bool Datapath::all_plain(unsigned size, Nanos now) {
  if (!traffic_.idle()) return false;
  const std::size_t ports = info_.port_count();
  for (unsigned i = 0; i < size; i++) {
    PacketState& p = ingress_[i];
    if (p.egress_port == kBalancedPort) take_next_hop(p, now);
    if (!is_plain(p) || p.egress_port >= ports) return false;
    p.pipe = pipe_of_[p.egress_port];
  }
  return true;
}

void Datapath::pass_plain(Leaving& leaving, unsigned size) {
  run(leaving.context, Gress::kEgress, {ingress_.data(), size});
  for (unsigned i = 0; i < size; i++) {
    PacketState& p = ingress_[i];
    if (is_plain(p)) [[likely]]
      leaving.batch->send(i, p.egress_port);
    else
      leave(leaving, p, {i, false});
  }
  arm_loops(leaving.context);
}

void Datapath::on_timer(Context& context, Timer& timer) {
  begin(context);
  if (timer.part()) return run_timer(context, timer.part() - 1u, timer);
  if (&timer == &instant_timer_) return run_instant(context);
  if (&timer == &recirculation_timer_) return release_recirculated(context);
  if (&timer == &generator_timer_) return generate(context);
  if (&timer == &pause_timer_) return repeat_pauses(context);
  serve(context, static_cast<Port>(timer.tag()));
}

void Datapath::report(Report& report) const {
  for (unsigned i = 0; i < programs_.size(); i++)
    report.object(names_[i], [&](Report& program) { programs_[i]->report(program); });
  if (!traffic_.idle()) report.object("traffic_manager", [&](Report& object) { traffic_.report(object); });
  if (!generator_.idle()) generator_.report(report);
  if (strict_) report_strict(report);
}

void Datapath::stimuli(std::vector<Stimulus>& all) const {
  for (const auto& program : programs_) program->stimuli(all);
}

// All streams at the first call, so that none depends on another's draws.
void Datapath::begin(Context& context) {
  if (seeded_) [[likely]]
    return;
  seeded_ = true;
  marks_ = RandomStream(context.random());
  for (auto& streams : random_)
    for (RandomStream& stream : streams) stream = RandomStream(context.random());
}

void Datapath::run(Context& context, Gress gress, std::span<PacketState> packets) {
  if (packets.empty()) return;
  if (strict_) accesses_.begin(gress, packets);
  const Queueing* queueing = gress == Gress::kEgress && !traffic_.idle() ? queueing_.data() : nullptr;
  for (const unsigned i : controls_[static_cast<std::size_t>(gress)]) {
    Pass pass(context, packets, gress, i, random_[i][static_cast<std::size_t>(gress)], generated_, count_.drop_no_copy,
              queueing);
    if (gress == Gress::kIngress)
      programs_[i]->ingress(pass);
    else
      programs_[i]->egress(pass);
  }
}

void Datapath::run_timer(Context& context, unsigned program, Timer& timer) {
  Pass pass(context, {}, Gress::kIngress, program, random_[program][kControlPlane], generated_, count_.drop_no_copy);
  programs_[program]->on_timer(pass, timer);
  Leaving leaving{context, nullptr};
  for (PacketState& p : generated_) {
    if (!traffic_.idle()) p.traffic_class = traffic_.class_of(p.packet);
    put(leaving, p, {0, true});
  }
  generated_.clear();
  finish(leaving);
}

// Of a packet for which no program behind `forward` has chosen. Here, packet by packet, queues are what the packets
// before have made of them; in ingress that would hang on how the input was cut into batches.
void Datapath::take_next_hop(PacketState& p, Nanos now) const {
  const EcmpGroup* group = next_hops_.filled ? next_hops_.group_of(p.metadata) : nullptr;
  if (!group) return;
  const std::uint32_t draw = p.metadata[next_hops_.draw_word];
  std::uint32_t hop = group->pick(draw, 32);
  if (next_hops_.least_queue)
    hop = group->first + traffic_.least_queue({&next_hops_.hops[group->first], group->count}, draw, now);
  p.metadata[next_hops_.hop_word] = hop + 1;
  p.egress_port = next_hops_.hops[hop].port;
}

// What ingress decided.
void Datapath::manage(Leaving& leaving, PacketState& p, Cause cause) {
  if (p.mirror_port != kNoPort) [[unlikely]]
    mirror(leaving.context, p);
  if (p.drop_reason) return end(leaving, p, cause, *p.drop_reason);
  if (p.multicast_group) return replicate(leaving, p, cause);
  if (p.egress_port == kBalancedPort) take_next_hop(p, leaving.context.now());
  if (p.egress_port >= pipe_of_.size()) return end(leaving, p, cause, count_.drop_no_port);
  put(leaving, p, cause);
}

std::span<const Port> Datapath::members_of(std::uint16_t number) const {
  if (dynamic_groups_.has(number)) return dynamic_groups_.members(number);
  const auto group = std::find_if(groups_.begin(), groups_.end(), [=](const Group& g) { return g.number == number; });
  if (group == groups_.end()) return {};
  return group->members;
}

// The last member gets the packet itself. Replicas have its bytes, where all programs ask before they write.
void Datapath::replicate(Leaving& leaving, PacketState& p, Cause cause) {
  const std::span<const Port> members = members_of(p.multicast_group);
  p.multicast_group = 0;
  Port last = kNoPort;
  for (const Port member : members)
    if (member != p.ingress_port) last = member;
  if (last == kNoPort) return end(leaving, p, cause, count_.drop_no_members);
  p.instance = Instance::kReplica;
  for (const Port member : members) {
    if (member == p.ingress_port || member == last) continue;
    if (shares_ && !cause.owned) {
      leaving.batch->take(cause.after).release();
      cause.owned = true;
    }
    PacketPtr copy = shares_ ? leaving.context.share(p.packet) : leaving.context.copy(p.packet);
    if (!copy) {
      count_.copy_failed.add();
      continue;
    }
    count_.replicated.add();
    PacketState replica = p;
    replica.packet = copy.release();
    replica.egress_port = member;
    put(leaving, replica, {cause.after, true});
    p.replica++;
  }
  p.egress_port = last;
  put(leaving, p, cause);
}

void Datapath::put(Leaving& leaving, PacketState& p, Cause cause) {
  if (traffic_.idle()) return put_now(leaving, p, cause);
  if (!admit(leaving, p, cause)) return;
  queueing_[leaving.size] = {leaving.context.now(), 0, 0};
  put_now(leaving, p, cause);
}

void Datapath::put_now(Leaving& leaving, const PacketState& p, Cause cause) {
  PacketState& next = egress_[leaving.size] = p;
  next.pipe = pipe_of_[p.egress_port];
  causes_[leaving.size] = cause;
  if (++leaving.size == kBatchMax) egress(leaving);
}

void Datapath::egress(Leaving& leaving) {
  run(leaving.context, Gress::kEgress, {egress_.data(), leaving.size});
  for (unsigned i = 0; i < leaving.size; i++) {
    if (!pauses_.empty()) send_pauses(leaving, causes_[i].after);
    leave(leaving, egress_[i], causes_[i]);
  }
  leaving.size = 0;
}

// The end of a call.
void Datapath::finish(Leaving& leaving) {
  egress(leaving);
  if (!pauses_.empty()) send_pauses(leaving, kBatchMax);
  arm_loops(leaving.context);
}

void Datapath::leave(Leaving& leaving, PacketState& p, Cause cause) {
  if (p.mirror_port != kNoPort) [[unlikely]]
    mirror(leaving.context, p);
  if (p.drop_reason) return end(leaving, p, cause, *p.drop_reason);
  if (p.recirculate) [[unlikely]]
    return recirculate(leaving, p, cause);
  if (!traffic_.idle() && hold(leaving, p, cause)) return;
  if (!cause.owned) return leaving.batch->send(cause.after, p.egress_port);
  leaving.context.emit(PacketPtr(p.packet), p.egress_port, cause.after);
}

void Datapath::end(Leaving& leaving, PacketState& p, Cause cause, Counter& reason) {
  if (cause.owned)
    leaving.context.drop(PacketPtr(p.packet), reason);
  else
    leaving.batch->drop(cause.after, reason);
}

}  // namespace rocebox::switch_model
