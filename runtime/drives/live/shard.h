// SPDX-License-Identifier: BSD-3-Clause
// Shard: the datapath of one core. It polls sources, whose packets go through the devices into transmit queues.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/drives/live/idle.h"
#include "runtime/drives/live/mailbox.h"
#include "runtime/drives/live/sources.h"
#include "runtime/drives/live/wire_relay.h"
#include "runtime/drives/virtual/sim_workloads.h"

namespace rocebox {

class Shard {
 public:
  /// `ports` are set up with a queue for each shard, or with one, whose packets go through `rss`. Throws ConfigError.
  Shard(unsigned number, const config::RunConfig& config, Pool& pool,
        const std::vector<std::unique_ptr<LivePort>>& ports, SoftwareRss* rss, const Clock& clock);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Runs until `stop`, then lets go what is held, for at most `drain`. To be called on the core.
  void run(const std::atomic<bool>& stop, Nanos drain);

  /// Gives a kernel new options. To be called on the core, or while it does not run.
  void change(unsigned device, unsigned kernel, Change& change);

  /// Polls one more source, of whoever runs the drive within a program of its own. Before run(); it outlives this.
  void add_source(Source& source) {
    sources_.push_back(&source);
    idler_.watch(source);
  }

  unsigned number() const { return number_; }
  /// Serves between bursts while run() does, until it was told to stop.
  Mailbox& mailbox() { return mailbox_; }
  Testbed& testbed() { return devices_.testbed(); }
  const Testbed& testbed() const { return devices_.testbed(); }
  const ShardPortCounters& counters(std::size_t port) const { return counters_[port]; }
  /// Time from the burst in which a packet came to the burst in which it went, of a sample of packets.
  const Histogram& latency(std::size_t port) const { return sample_.port(port); }
  /// How long packets stay in device `number` and its kernels, of the same sample.
  const SojournTimes& sojourn(unsigned number) const { return sample_.device(number); }
  /// Null: the run has no workloads, or they are another shard's. Of a shard that runs for itself alone.
  const SimWorkloads* workloads() const { return workloads_.get(); }
  /// Whether it has workloads, and all have finished. On any thread.
  bool workloads_finished() const { return workloads_finished_.load(std::memory_order_relaxed); }
  std::uint64_t loops() const { return loops_.read(); }
  std::uint64_t busy_loops() const { return busy_loops_.read(); }
  /// Packets that left by device ports that nothing is bound to.
  std::uint64_t unbound() const { return devices_.unbound(); }
  /// Time in loops that found something to do, in nanoseconds, with nothing lost between one loop and the next.
  std::uint64_t busy_nanos() const { return clock_.busy_nanos(); }

 private:
  void add_sources(const config::RunConfig& config);
  bool run_workloads();
  bool loop();
  Nanos next_event() const;
  void let_go(Nanos drain);
  template <class Done>
  void run_until(Nanos limit, Done done);
  void send_rest();

  unsigned number_;
  SoftwareRss* rss_;
  LoopClock clock_;
  std::vector<ShardPortCounters> counters_;
  LatencySample sample_;
  TransmitQueues queues_;
  ShardDevices devices_;
  Mailbox mailbox_;
  std::vector<std::unique_ptr<Source>> ports_;                // this shard's
  std::vector<std::unique_ptr<HandoverSource>> handed_over_;  // by port, where ports cannot spread packets
  std::vector<std::unique_ptr<HostSource>> hosts_;
  std::vector<Source*> sources_;  // all of them, in the order of polling
  std::unique_ptr<SimWorkloads> workloads_;
  std::atomic<bool> workloads_finished_{false};
  WireRelay relay_;
  Counter loops_, busy_loops_;
  Idler idler_;
};

}  // namespace rocebox
