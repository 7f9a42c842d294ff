// SPDX-License-Identifier: BSD-3-Clause
// Engine: the event-driven framework of SCR (4.3) as a pure object: collected events go through queues to threads,
// which run the policy; what it asks for comes out when its time has come. Whoever owns it says what time it is.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/scr/config.h"
#include "kernels/scr/policy.h"
#include "kernels/scr/processors.h"
#include "kernels/scr/queues.h"
#include "kernels/scr/ring.h"
#include "runtime/kernel/counter.h"
#include "runtime/kernel/deadline_heap.h"

namespace rocebox::scr {

struct EngineCounters {
  explicit EngineCounters(Stats& stats);
  Counter &collected, &handled, &put_aside, &bytes, &overfull, &lost_probes, &wrong_actions, &late_actions, &stops;
  Counter &tx_handled, &tx_bytes;
};

/// Who an engine works for.
class EngineOwner {
 public:
  /// What the policy asked for takes effect: rates within the port's, flows that are. Probes are the owner's to send.
  virtual void act(const scr_action& action, Nanos now) = 0;
  /// The state of the node that the event's detail names, in the event; false: there is none. Asked for each
  /// host_period.
  virtual bool look_at_host(Event& /*event*/, Nanos /*now*/) { return false; }
  /// The policy has been stopped.
  virtual void on_stop(Nanos now) = 0;

 protected:
  ~EngineOwner() = default;
};

class Engine {
 public:
  /// Throws ConfigError: the policy cannot be had. `path` and `program` are the policy's.
  Engine(const FrameworkConfig& config, const std::string& path, std::string_view program, std::uint64_t line_rate,
         Stats& stats);

  bool wants(unsigned kind) const { return wanted_ >> kind & 1; }
  bool stopped() const { return policy_.stopped(); }
  std::uint32_t flows() const { return flows_; }

  /// The collector's: `event` has happened at its time, which is not before run()'s.
  void put(const Event& event);
  /// The same, without latency: before put() of anything that the flow does.
  void tell(const Event& event, EngineOwner& owner);
  /// The owner has sent the probe, or could not: it is waited for.
  void await_probe(std::uint32_t flow, std::uint16_t port, Nanos now);
  /// When run() has something to do.
  Nanos due() const { return std::min(soonest_, processors_.due()); }
  /// All that is due by `now`, in the order of time.
  void run(Nanos now, EngineOwner& owner);

  /// As Policy's.
  Policy::Values values_of(const std::vector<ParameterValue>& given) const { return policy_.values_of(given); }
  /// The policy has these parameters from now on, and is told so.
  void take(const Policy::Values& values, Nanos now);

  /// The rate that the policy gave last; 0: none, or the port's.
  std::uint64_t rate(std::uint32_t flow) const { return known_[flow].rate; }
  void report(Report& report) const { policy_.report(report); }

 private:
  struct Due {
    Nanos at = 0;
    scr_action action{};
  };
  // A probe without an answer yet.
  struct Awaited : Deadline {
    std::uint16_t port = 0;
  };
  // Of a flow.
  struct Known {
    std::uint64_t rate = 0;
    std::uint32_t unchanged = 0;  // events since the last change
    std::uint32_t aside = 0;      // events in aside_, put there until there are enough
    std::uint8_t next_probe = 0;
  };
  // What is due besides threads; at one instant the first goes first. Then threads have their turn.
  enum Source : std::uint8_t {
    kInstalls,
    kProbes,
    kSends,
    kTriggers,
    kAnswers,
    kMessages,
    kTimeouts,
    kTimer,
    kHostLook,
    kSources
  };
  static constexpr unsigned kWays = kTimeouts - kTriggers;
  void set_due(Source source, Nanos at);
  void take_action(Source source, Nanos at, EngineOwner& owner);
  void take_event(Source source, Nanos at);
  void arrive(const Event& event, Nanos at);
  void look_at(scr_host what, unsigned wanted, Nanos at, EngineOwner& owner);
  void dispatch(Nanos at, EngineOwner& owner);
  void settle(Source source, Nanos at, EngineOwner& owner);
  bool put_aside(Event& event);
  void handle(const Event& event, Nanos at, Nanos ends, EngineOwner& owner);
  void schedule(scr_action action, Nanos ends, EngineOwner& owner);
  std::span<Awaited> awaited_of(std::uint32_t flow);
  void lose_probe(Nanos at);
  void settle_probe(const Event& event);
  void drain(Nanos now);

  const Timing timing_;
  const std::uint32_t flows_;
  const std::uint64_t line_rate_;
  const std::uint32_t stable_after_, stable_events_;
  const bool is_stable_wanted_;
  const Nanos probe_timeout_, host_period_;
  EngineCounters count_;
  Policy policy_;
  std::uint32_t wanted_;
  EventQueues queues_;
  Processors processors_;
  std::vector<Known> known_;
  std::vector<Event> aside_;  // of each flow
  // By Source, from kTriggers on. On their way to threads: what the wire tells, answers to probes, what peers and the
  // host tell.
  std::array<Ring<Event>, kWays> ways_;
  const std::array<Nanos, kWays> latency_;
  std::array<Ring<Due>, 3> actions_;    // by Source, each in the order of time
  std::unique_ptr<Awaited[]> awaited_;  // kProbesAwaited of each flow
  DeadlineHeap timeouts_;
  std::array<Nanos, kSources> due_;  // of each source
  Nanos soonest_ = kNever;           // of all of them
};

}  // namespace rocebox::scr
