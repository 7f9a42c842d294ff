// SPDX-License-Identifier: BSD-3-Clause
// ShardDevices: the devices and links of one shard, between the sources of packets and the queues that they leave by.
#pragma once
#include <vector>

#include "runtime/drives/live/loop_clock.h"
#include "runtime/drives/live/transmit_queues.h"
#include "runtime/drives/testbed.h"

namespace rocebox {

/// What the devices of a shard draw by. Shard 0 draws as a replay does, the others draw numbers of their own; and
/// where a device makes packets itself, as a host does, by its options, too: hosts that differ in their addresses alone
/// draw unlike each other.
std::uint64_t shard_seed(const config::RunConfig& config, unsigned shard);

class ShardDevices {
 public:
  /// Of shard `number`. Device ports that no port of `queues` is bound to drop and count. Throws ConfigError.
  ShardDevices(unsigned number, const config::RunConfig& config, Pool& pool, LoopClock& clock, TransmitQueues& queues,
               LatencySample& sample);

  /// The device port behind port `number` of the run.
  FabricPort port(std::size_t number) const { return ports_[number]; }

  /// To be called once, at the beginning: what was armed for time 0 is due now.
  void start() { testbed_.fabric().run(clock_.now()); }
  /// Takes over packets that have arrived at `to` by now.
  void deliver(FabricPort to, std::span<Packet> packets) {
    const Nanos now = clock_.read_again();
    if (several_) testbed_.fabric().advance_to(now);
    testbed_.fabric().run(now, to, packets);
  }
  /// The host of device `number` has posted something.
  void wake(unsigned number) {
    const Nanos now = clock_.read_again();
    if (several_) testbed_.fabric().advance_to(now);
    testbed_.fabric().wake(number);
    testbed_.fabric().run(now);
  }
  /// What is due by now. Returns whether something was.
  bool run_timers() {
    if (next_deadline() > clock_.now()) return false;
    if (several_) testbed_.fabric().advance_to(clock_.now());
    testbed_.fabric().run(clock_.now());
    return true;
  }
  Nanos next_deadline() const { return testbed_.fabric().next_deadline(); }

  /// The device port by which packets that arrive at `in` leave when nothing looks at them on their way now; -1: there
  /// is none.
  int wire_out(FabricPort in) const { return wire_path_ ? wire_path_->out(in.port) : -1; }
  /// Passes packets on by wire_out(in), `out`.
  void pass(FabricPort in, Port out, std::span<Packet> packets);
  /// Null unless packets may pass the one device of the run.
  WirePath* wire_path() { return wire_path_; }
  /// The run's port that device port `out` of the one device is bound to; -1: none is.
  int bound_to(Port out) const { return out_ports_[0][out]; }

  Testbed& testbed() { return testbed_; }
  const Testbed& testbed() const { return testbed_; }
  /// Packets that left by device ports that nothing is bound to.
  std::uint64_t unbound() const { return unbound_.read(); }

 private:
  void leave(FabricPort from, std::span<Packet> packets, Nanos arrival);

  LoopClock& clock_;
  TransmitQueues& queues_;
  Testbed testbed_;
  // Of several devices each has its timers in their own instants, as in virtual time: what one hands to another in one
  // instant must be there before the other's next. A device alone has all that is due at once.
  const bool several_;
  WirePath* const wire_path_;
  std::vector<FabricPort> ports_;            // by port of the run
  std::vector<std::vector<int>> out_ports_;  // by device, by port: the port of the run; -1: nothing is bound
  Counter unbound_;
};

/// The bytes on the wire of packets that nobody has parsed.
std::uint32_t bytes_of(std::span<const Packet> packets);

}  // namespace rocebox
