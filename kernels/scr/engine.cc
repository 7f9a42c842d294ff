// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/engine.h"

#include <algorithm>

namespace rocebox::scr {
namespace {

std::array<std::uint32_t, 3> threads_of(const FrameworkConfig& config) {
  std::array<std::uint32_t, 3> all{};
  for (unsigned i = 0; i < 3; i++) all[i] = static_cast<std::uint32_t>(config.threads[i]);
  return all;
}

bool has_changed(std::uint64_t before, std::uint64_t after) {
  const std::uint64_t least = before < after ? before : after, most = before < after ? after : before;
  return most - least > most / 32;
}

}  // namespace

EngineCounters::EngineCounters(Stats& stats)
    : collected(stats.counter("scr_events_collected", "events that collectors put into queues")),
      handled(stats.counter("scr_events_handled", "events that the policy handled, each of one or more collected")),
      put_aside(stats.counter("scr_events_put_aside", "events of flows at a stable rate that were put aside")),
      bytes(stats.counter("scr_bytes_handled", "bytes that handled events told of")),
      overfull(stats.counter("scr_ceiling_passed", "events taken in by a full one, because its queue was full, too")),
      lost_probes(stats.counter("scr_probes_lost", "probes of the round-trip time without an answer in time")),
      wrong_actions(
          stats.counter("scr_wrong_actions",
                        "things a policy asked for that cannot be: rates beyond the port's or below the least, "
                        "flows that are not, more than there is room for")),
      late_actions(stats.counter("scr_without_latency",
                                 "events that came, and actions that took effect, at once: too many were under way")),
      stops(stats.counter("scr_stops", "the policy went wrong, and the default took over")),
      tx_handled(stats.counter("scr_tx_events_handled", "TX events among those handled")),
      tx_bytes(stats.counter("scr_tx_bytes_handled", "bytes that handled TX events told of")) {}

Engine::Engine(const FrameworkConfig& config, const std::string& path, std::string_view program,
               std::uint64_t line_rate, Stats& stats)
    : timing_(config.timing),
      flows_(static_cast<std::uint32_t>(config.flows)),
      line_rate_(line_rate),
      stable_after_(static_cast<std::uint32_t>(config.stable_after)),
      stable_events_(static_cast<std::uint32_t>(config.stable_events)),
      is_stable_wanted_(config.coalescing[SCR_TX] == Strategy::kRateStable),
      probe_timeout_(config.probe_timeout),
      host_period_(config.host_period),
      count_(stats),
      policy_(path, program, {flows_, line_rate, config.watchdog, config.budget}, config.values()),
      wanted_(policy_.events()),
      queues_(flows_, config.strategies(), config.ceiling),
      processors_(threads_of(config), queues_.keys()),
      known_(flows_),
      aside_(is_stable_wanted_ ? flows_ : 0),
      ways_{Ring<Event>(kEventsUnderWay), Ring<Event>(kEventsUnderWay), Ring<Event>(kEventsUnderWay)},
      latency_{timing_.trigger, timing_.rtt_response, timing_.message},
      actions_{Ring<Due>(actions_waiting(flows_)),
               Ring<Due>(wants(SCR_RTT) ? probes_waiting(flows_) : actions_waiting(flows_)),
               Ring<Due>(actions_waiting(flows_))},
      awaited_(std::make_unique<Awaited[]>(std::size_t{flows_} * kProbesAwaited)) {
  timeouts_.reserve(std::size_t{flows_} * kProbesAwaited);
  due_.fill(kNever);
  set_due(kHostLook, wants(SCR_KINDS) || wants(SCR_KINDS + 1) ? host_period_ : kNever);
}

// By pairs: a chain of comparisons, each of which waits for the one before, took twice as long.
void Engine::set_due(Source source, Nanos at) {
  due_[source] = at;
  static_assert(kSources == 9);
  const auto& d = due_;
  const Nanos actions = std::min(std::min(d[0], d[1]), std::min(d[2], d[8]));
  const Nanos events = std::min(std::min(d[3], d[4]), std::min(d[5], d[6]));
  soonest_ = std::min(std::min(actions, d[7]), events);
}

// An event is under way to its thread for its latency; many are at once, and none is taken together with others before
// it has come.
void Engine::put(const Event& event) {
  if (!wants(event.kind)) return;
  count_.collected.add();
  if (event.kind == SCR_RTT && event.detail == 0) settle_probe(event);
  const Source source = event.kind == SCR_RTT ? kAnswers : event.kind < SCR_RTT ? kTriggers : kMessages;
  const Nanos latency = latency_[source - kTriggers];
  if (latency == 0 || (event.kind == SCR_RTT && event.detail)) return arrive(event, event.time);
  Ring<Event>& way = ways_[source - kTriggers];
  if (way.full()) [[unlikely]] {
    // The oldest comes at once: none may overtake another.
    count_.late_actions.add();
    arrive(way.front(), event.time);
    way.pop();
    set_due(source, way.empty() ? kNever : way.front().time + latency);
  }
  if (way.empty()) set_due(source, event.time + latency);
  way.push(event);
}

void Engine::arrive(const Event& event, Nanos at) {
  const EventQueues::Put how = queues_.put(event);
  if (how == EventQueues::Put::kOverfull) count_.overfull.add();
  if (how != EventQueues::Put::kQueued) return;
  const std::uint32_t key = queues_.key(event.flow, event.kind);
  if (queues_.size(key) == 1) processors_.add(key, at);
}

// The first of them comes to its queue.
void Engine::take_event(Source source, Nanos at) {
  Ring<Event>& way = ways_[source - kTriggers];
  arrive(way.front(), at);
  way.pop();
  set_due(source, way.empty() ? kNever : way.front().time + latency_[source - kTriggers]);
}

void Engine::take_action(Source source, Nanos at, EngineOwner& owner) {
  Ring<Due>& ring = actions_[source];
  const scr_action action = ring.front().action;
  ring.pop();
  set_due(source, ring.empty() ? kNever : ring.front().at);
  owner.act(action, at);
}

void Engine::tell(const Event& event, EngineOwner& owner) {
  if (event.flow < flows_) known_[event.flow] = {};
  if (wants(event.kind)) handle(event, event.time, event.time, owner);
}

// Of a policy that has been stopped nothing is left.
void Engine::drain(Nanos now) {
  for (Ring<Due>& ring : actions_)
    while (!ring.empty()) ring.pop();
  for (Ring<Event>& way : ways_)
    while (!way.empty()) way.pop();
  while (!timeouts_.empty()) timeouts_.pop();
  due_.fill(kNever);
  soonest_ = kNever;
  while (processors_.due() != kNever) {
    std::uint32_t thread;
    const std::uint32_t key = processors_.take(thread);
    while (queues_.size(key)) queues_.take(key);
    processors_.busy(thread, now);
  }
}

void Engine::take(const Policy::Values& values, Nanos now) {
  if (policy_.stopped()) return;
  policy_.take(values);
  put(host_event(now, SCR_NODE, SCR_HOST_PARAMETERS));
}

void Engine::look_at(scr_host what, unsigned wanted, Nanos at, EngineOwner& owner) {
  if (!wants(wanted)) return;
  Event event = host_event(at, SCR_NODE, what);
  if (owner.look_at_host(event, at)) put(event);
}

// At one instant: what takes effect, then what comes, then what is handled.
void Engine::run(Nanos now, EngineOwner& owner) {
  for (Nanos at; (at = due()) <= now;) {
    if (policy_.stopped()) [[unlikely]]
      break;
    if (at != soonest_) {
      dispatch(at, owner);
      continue;
    }
    unsigned source = 0;
    while (due_[source] != at) source++;
    settle(static_cast<Source>(source), at, owner);
  }
  if (policy_.stopped()) [[unlikely]]
    drain(now);
}

void Engine::settle(Source source, Nanos at, EngineOwner& owner) {
  switch (source) {
    case kInstalls:
    case kProbes:
    case kSends:
      return take_action(source, at, owner);
    case kTriggers:
    case kAnswers:
    case kMessages:
      return take_event(source, at);
    case kTimeouts:
      return lose_probe(at);
    case kTimer:
      set_due(kTimer, kNever);
      return put(host_event(at, SCR_NODE, SCR_HOST_TIMER));
    case kHostLook:
      set_due(kHostLook, at + host_period_);
      look_at(SCR_HOST_PCIE, SCR_KINDS, at, owner);
      return look_at(SCR_HOST_NIC, SCR_KINDS + 1, at, owner);
    case kSources:
      return;
  }
}

void Engine::dispatch(Nanos at, EngineOwner& owner) {
  std::uint32_t thread;
  const std::uint32_t key = processors_.take(thread);
  Event& event = queues_.take(key);
  if (queues_.size(key)) processors_.add(key, at);
  if (is_stable_wanted_ && event.kind == SCR_TX && put_aside(event)) {
    count_.put_aside.add();
    return processors_.busy(thread, at + timing_.early);
  }
  processors_.busy(thread, at + timing_.law);
  handle(event, at, at + timing_.law, owner);
}

// rate_stable: of a flow whose rate has not changed for long, events are handled so many at a time.
bool Engine::put_aside(Event& event) {
  Known& flow = known_[event.flow];
  Event& waiting = aside_[event.flow];
  if (flow.aside) {
    accumulate(waiting, event);
    event = waiting;
  }
  if (flow.unchanged < stable_after_ || flow.aside + 1 >= stable_events_) {
    flow.aside = 0;
    return false;
  }
  waiting = event;
  flow.aside++;
  return true;
}

void Engine::handle(const Event& event, Nanos at, Nanos ends, EngineOwner& owner) {
  count_.handled.add();
  count_.bytes.add(event.bytes);
  if (event.kind == SCR_TX) {
    count_.tx_handled.add();
    count_.tx_bytes.add(event.bytes);
    known_[event.flow].unchanged++;
  }
  const std::uint64_t lost = policy_.actions_lost();
  if (!policy_.handle(event, at)) {
    count_.stops.add();
    return owner.on_stop(at);
  }
  if (lost != policy_.actions_lost()) [[unlikely]]
    count_.wrong_actions.add(policy_.actions_lost() - lost);
  for (const scr_action& action : policy_.actions()) schedule(action, ends, owner);
}

void Engine::schedule(scr_action action, Nanos ends, EngineOwner& owner) {
  if (action.kind == SCR_WAKE) {
    return set_due(kTimer, std::max(static_cast<Nanos>(action.value), ends));
  }
  if (action.flow >= flows_ || action.kind > SCR_WAKE) return count_.wrong_actions.add();
  Source source = kSends;
  Nanos at = ends;
  if (action.kind == SCR_SET_RATE) {
    if (action.value > line_rate_ || (action.value && action.value < kRateFloor)) {
      count_.wrong_actions.add();
      action.value = std::clamp(action.value, kRateFloor, line_rate_);
    }
    Known& flow = known_[action.flow];
    if (action.value == flow.rate) return;
    if (has_changed(flow.rate, action.value)) flow.unchanged = 0;
    flow.rate = action.value;
  }
  if (action.kind == SCR_SET_RATE || action.kind == SCR_SET_PORT) {
    source = kInstalls;
    at += timing_.install;
  } else if (action.kind == SCR_PROBE) {
    source = kProbes;
    at += timing_.rtt_request;
  }
  Ring<Due>& ring = actions_[source];
  if (ring.full()) [[unlikely]] {
    // The oldest takes effect at once: an older rate must not come after a newer one.
    count_.late_actions.add();
    take_action(source, ends, owner);
  }
  if (ring.empty()) set_due(source, at);
  ring.push({at, action});
}

std::span<Engine::Awaited> Engine::awaited_of(std::uint32_t flow) {
  return {&awaited_[std::size_t{flow} * kProbesAwaited], kProbesAwaited};
}

void Engine::await_probe(std::uint32_t flow, std::uint16_t port, Nanos now) {
  const std::span<Awaited> probes = awaited_of(flow);
  std::uint8_t& turn = known_[flow].next_probe;
  // One for each path: while one has no answer, the time of that one counts.
  for (const Awaited& one : probes)
    if (one.armed() && one.port == port) return;
  // A free place; where there is none, the next one in turn is not waited for any more.
  unsigned slot = turn % kProbesAwaited;
  for (unsigned i = 0; i < kProbesAwaited && probes[slot].armed(); i++) slot = (slot + 1) % kProbesAwaited;
  turn = static_cast<std::uint8_t>(slot + 1);
  probes[slot].port = port;
  timeouts_.arm(probes[slot], now + probe_timeout_, std::uint64_t{flow} * kProbesAwaited + slot);
  set_due(kTimeouts, timeouts_.next());
}

void Engine::settle_probe(const Event& event) {
  for (Awaited& one : awaited_of(event.flow))
    if (one.port == event.udp_source_port) timeouts_.cancel(one);
  set_due(kTimeouts, timeouts_.next());
}

void Engine::lose_probe(Nanos at) {
  Event event{};
  event.flow = static_cast<std::uint32_t>(timeouts_.first_order() / kProbesAwaited);
  event.udp_source_port = static_cast<Awaited&>(timeouts_.pop()).port;
  set_due(kTimeouts, timeouts_.next());
  event.time = event.since = at;
  event.count = 1;
  event.kind = SCR_RTT;
  event.detail = 1;
  count_.lost_probes.add();
  put(event);
}

}  // namespace rocebox::scr
