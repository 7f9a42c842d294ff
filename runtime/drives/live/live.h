// SPDX-License-Identifier: BSD-3-Clause
// The live drive: ports and shards of one run, from start to report.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/drives/live/captures.h"
#include "runtime/drives/live/interface_claims.h"
#include "runtime/drives/live/link_watch.h"
#include "runtime/drives/live/ring_pairs.h"
#include "runtime/drives/live/shard.h"
#include "runtime/telemetry/json_report.h"
#include "runtime/telemetry/metrics.h"

namespace rocebox {

class Live {
 public:
  /// Opens every port and makes every shard; `cores` are the CPUs of the shards, whose lcores 1, 2, ... EAL has.
  /// `outputs` are files beside the captures of the configuration. Throws ConfigError, and then nothing has been
  /// started.
  Live(const config::RunConfig& config, Pool& pool, const std::vector<unsigned>& cores, ExtraOutputs outputs = {});
  /// Stops when that was not done.
  ~Live();

  /// Packets flow from now on. Throws ConfigError.
  void start();
  /// No packet is taken any more; those that are held leave, for at most the configuration's drain.
  void stop();

  /// Whether packets came from captures only, and all of them have come; or all workloads have finished.
  bool ended() const { return (config_.live_ports.empty() && captures_.ended()) || shards_[0]->workloads_finished(); }
  /// Why a capture cannot be read or written any further; empty: all is well.
  std::string failed() const { return captures_.failed(); }
  /// Which interface went away, where `live: port_lost:` says that the run ends then; empty: none did. Nothing tells
  /// when it changes, nor when failed() or ended() do.
  std::string lost() const;
  /// What the ports' links are when it returns is known: what changes from now on is counted.
  void see_links() { link_watch_->begin(); }
  /// Says on standard error what becomes of them, until stop().
  void watch_links() { link_watch_->start(); }
  /// Says on standard error which of the ports' interfaces other runs use, too, and lets them know of this one, whose
  /// name is `run`.
  void claim_interfaces(const std::string& run);
  /// Gives the outputs their names, the JSON report among them. After stop(). Throws std::runtime_error.
  void publish(const Json& report);
  const Clock& clock() const { return clock_; }
  /// The devices and links of the first shard: what they are called and count is the same in all.
  const Testbed& testbed() const { return shards_[0]->testbed(); }

  /// What happened: counts while packets flow, with the kernels' own tables after stop(). On any thread.
  Json report() const;
  /// The same numbers as metrics, with their sentences. On any thread.
  void add_metrics(Metrics& metrics) const;

  /// Has `work` done for every shard, one after another: on its core between two bursts while packets flow, here
  /// otherwise. On any thread but the shards'; see Mailbox.
  void for_each_shard(const std::function<void(Shard&)>& work);
  /// What another thread may look at of them: what packets do not change.
  std::vector<Shard*> shards();

 private:
  // What a core is started with.
  struct Launch {
    Shard* shard;
    const std::atomic<bool>* stop;
    std::atomic<unsigned>* ended;
    Nanos drain;
  };
  void make_ports();
  void refuse_shared() const;
  void check_pool() const;
  void report_ports(Json& report) const;
  Histogram port_latency(std::size_t port) const;
  // How long packets stay in a device or a link as a whole (`kernel` is empty) or in a kernel, held time included; of
  // all shards.
  struct SojournView {
    bool link;
    const std::string& name;
    const std::string& kernel;
    Histogram times;
  };
  void for_each_sojourn(const std::function<void(const SojournView&)>& each) const;
  void report_sojourns(Json& report) const;
  void report_shards(Json& report) const;
  void report_workloads(Json& report) const;
  void add_run_metrics(Metrics& metrics, const Json& report) const;
  void add_port_metrics(Metrics& metrics, const Json& report) const;
  void add_sojourn_metrics(Metrics& metrics) const;

  const config::RunConfig& config_;
  Pool& pool_;
  std::vector<unsigned> cores_;
  Clock clock_;
  RingPairs rings_;
  std::vector<std::unique_ptr<LivePort>> ports_;  // in the order in which they are written
  LiveCaptures captures_;                         // fills and refers to ports_
  std::unique_ptr<LinkWatch> link_watch_;
  std::unique_ptr<InterfaceClaims> claims_;
  std::unique_ptr<SoftwareRss> rss_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Launch> launches_;     // read by the cores until stop()
  unsigned launched_ = 0;            // cores
  std::atomic<unsigned> ended_ = 0;  // cores that have; a reader that sees it sees all that they did
  std::atomic<bool> stop_{false};
  std::mutex control_;           // held while the shards are started, stopped or changed
  mutable std::mutex observer_;  // held to read what drivers count: their own counts are not for two at a time
  std::atomic<bool> running_{false};
  std::atomic<Nanos> started_{0}, stopped_{0};
  std::uint32_t pool_idle_ = 0;  // packets in use by the ports alone, before the first
};

/// The CPUs that shards run on: `list` such as "0,2-3", or the last `shards` that this process may use when it is
/// empty. Throws ConfigError.
std::vector<unsigned> choose_cores(const std::string& list, const config::LiveOptions& options);

}  // namespace rocebox
