// SPDX-License-Identifier: BSD-3-Clause
// WireRelay: an empty bump between ports of DPDK, which must cost no more than a wire.
#pragma once
#include <vector>

#include "runtime/drives/live/shard_devices.h"

namespace rocebox {

class WireRelay {
 public:
  struct Loops {
    unsigned done, busy;
  };

  /// Lays a wire from each of the ports to where its packets leave; none when packets of some port have to do more than
  /// pass. `queue`: of each port, each way.
  WireRelay(unsigned queue, unsigned burst, const std::vector<bool>& can_pass, ShardDevices& devices,
            TransmitQueues& queues, std::vector<ShardPortCounters>& counters);

  /// Whether packets can pass now: no trace and no capture looks at them.
  bool is_open() const { return !wires_.empty() && devices_.wire_path()->out(wires_[0].from) >= 0; }
  /// Loops, `most` or until one finds nothing, in which packets pass and nothing else happens: what else a loop does,
  /// reading the time too, its caller has done before.
  Loops run(unsigned most);

 private:
  // One way between two ports. Its books are made behind the loops.
  struct Wire {
    std::size_t in, out;  // of the run's ports
    Port from, to;        // of the device
    std::uint16_t eth_in, eth_out;
    std::uint64_t packets = 0, bytes = 0, sent = 0;
  };
  bool pass_burst(Wire& wire, Packet* room);

  const std::uint16_t queue_, burst_;
  ShardDevices& devices_;
  TransmitQueues& queues_;
  std::vector<ShardPortCounters>& counters_;
  std::vector<Wire> wires_;
};

}  // namespace rocebox
