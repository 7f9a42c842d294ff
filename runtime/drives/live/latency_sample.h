// SPDX-License-Identifier: BSD-3-Clause
// LatencySample: how long a sample of packets is in one shard, in its devices and in their kernels.
#pragma once
#include <deque>
#include <utility>
#include <vector>

#include "runtime/drives/live/sojourn_times.h"

namespace rocebox {

/// In some loops the first packet that leaves by each port is timed, by a second reading of the clock behind sending;
/// in these loops the devices time packets, too.
class LatencySample {
 public:
  LatencySample(const Clock& clock, std::size_t ports) : clock_(clock), ports_(ports) {}

  /// Histograms of one more device, in the order of their numbers, to be given to Device::set_probe.
  SojournTimes& add_device(std::size_t kernels) { return devices_.emplace_back(clock_, kernels); }

  /// Whether loop `number` is one of those is settled here.
  void begin_loop(std::uint64_t number) {
    const bool on = number >= next_loop_;
    if (on != on_) set_on(on);
    if (on) next_loop_ = number + kEveryLoops;
  }
  void stop() { set_on(false); }
  /// A packet that came at `arrival` waits to be sent by `port`.
  void packet_leaves(std::size_t port, Nanos arrival) {
    if (on_ && ports_[port].arrival == 0) ports_[port].arrival = arrival;
  }
  /// All that left in this loop has been sent.
  void end_loop() {
    if (on_) read_times();
  }

  const Histogram& port(std::size_t number) const { return ports_[number].latency; }
  const SojournTimes& device(unsigned number) const { return devices_[number]; }

 private:
  // One loop in so many, or the next one.
  static constexpr std::uint64_t kEveryLoops = 64;
  struct PortSample {
    Nanos arrival = 0;  // of the first packet that left in this loop
    Histogram latency;
  };

  void set_on(bool on) {
    on_ = on;
    for (SojournTimes& times : devices_) times.sampling = on;
  }
  void read_times() {
    Nanos sent = 0;
    for (PortSample& port : ports_) {
      if (port.arrival == 0) continue;
      if (sent == 0) sent = clock_.now();
      port.latency.add(sent - std::exchange(port.arrival, 0));
    }
  }

  const Clock& clock_;
  bool on_ = false;
  std::uint64_t next_loop_ = 0;
  std::vector<PortSample> ports_;
  std::deque<SojournTimes> devices_;
};

}  // namespace rocebox
