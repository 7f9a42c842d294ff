// SPDX-License-Identifier: BSD-3-Clause
// Workload: what hosts do, for who runs them: programs that post work to the devices in front of them and wait until it
// is done.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/component/component.h"
#include "runtime/component/fields.h"
#include "runtime/component/registry.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/progress.h"
#include "runtime/kernel/report.h"

namespace rocebox {

inline constexpr char kWorkloadKind[] = "workload";

/// A host on which a workload runs: the device before it and its side towards the host, which outlive the workload.
struct WorkloadHost {
  std::string name;
  HostSide* side;
};

/// One transfer of a workload from a host to another, from the moment at which the sender could begin to the moment at
/// which the receiver has all of it.
struct FlowRecord {
  unsigned source, destination;  ///< places in the hosts of the workload
  std::uint64_t bytes;
  Nanos start;
  Nanos end;                       ///< kNever: it is not done
  bool waits_for_answers = false;  ///< in between, so that its bytes say nothing of how long it should take
};

/// A pure object, as devices are: no clock, no thread. It is called by the drive (start) and by its hosts' devices, in
/// their own calls; one thread runs all of them.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Begins at `now`: posts to hosts, whose devices the drive steps in the same instant (HostSide::set_waker).
  virtual void start(Nanos now) = 0;
  /// Whether all is done that it will ever do, be it that what is left has failed.
  virtual bool finished() const = 0;
  /// Called once, by the workload, in the call in which it finishes.
  void set_on_finished(std::function<void(Nanos now)> on_finished) { on_finished_ = std::move(on_finished); }
  /// Whether from now on, until another workload starts, what runs on a host acts on that host alone, and what hosts do
  /// together (flows(), finished()) is the same whoever of them does his part first: then each may be run ahead of the
  /// others by as long as it takes to hear of them. It becomes false no more.
  virtual bool hosts_act_alone() const { return false; }
  /// What has been done so far; for a watchdog. What is due later counts as it was when `steps` last changed, or as it
  /// is now if that is earlier, so that what is put off again and again without a step is not waited for for ever.
  virtual Progress progress() const = 0;
  /// Its transfers so far, in the order in which they began.
  virtual std::span<const FlowRecord> flows() const = 0;
  /// What waits for what, for people, when nothing advances any more: one line a stuck transfer, at most `lines`.
  virtual void explain_waiting(Report& report, unsigned lines) const = 0;
  /// A text `error` that is not empty fails the run, which names the workload and says that text; but not where an
  /// expectation says that it is to fail (`workloads.NAME.failed == 1`).
  virtual void report(Report& report) const = 0;

 protected:
  void tell_finished(Nanos now) {
    if (on_finished_) on_finished_(now);
  }

 private:
  std::function<void(Nanos now)> on_finished_;
};

/// The options of a workload; `hosts` says how many it runs on.
class WorkloadOptions : public Options {
 public:
  virtual Range<std::int64_t> hosts() const = 0;
  /// Packets that one of its connections may have on their way, where that is not what its hosts' devices say
  /// (DeviceOptions::packets_in_flight()); 0: it is.
  virtual std::uint32_t packets_in_flight() const { return 0; }
  /// Throws ConfigError for what options alone do not show: a host whose device is of another kind than it needs.
  virtual std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const = 0;
};

/// A row of component_kinds().
inline constexpr ComponentKind kWorkloads = {kWorkloadKind,
                                             [](const Component& row, const Options& options) -> const char* {
                                               if (!dynamic_cast<const WorkloadOptions*>(&options))
                                                 return "has options of another kind: use workload_component()";
                                               return row.is_wire ? "is no wire: that is a kernel" : nullptr;
                                             }};

/// A workload of options `O`.
template <class O>
constexpr Component workload_component(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi,
          kWorkloadKind,
          name,
          summary,
          [](const Registry&) -> std::unique_ptr<Options> { return std::make_unique<O>(); },
          examples};
}

}  // namespace rocebox
