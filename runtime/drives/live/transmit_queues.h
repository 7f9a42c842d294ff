// SPDX-License-Identifier: BSD-3-Clause
// TransmitQueues: what leaves a shard, until the ports have taken it.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "runtime/drives/live/latency_sample.h"
#include "runtime/drives/live/live_port.h"
#include "runtime/drives/live/software_rss.h"
#include "runtime/limits.h"

namespace rocebox {

/// What one shard did at one port.
struct ShardPortCounters {
  Counter rx_packets, tx_packets;
  Counter tx_errors;    ///< taken by the port and not sent, as far as it can tell
  Counter tx_full;      ///< dropped: the port did not take packets for as long as the buffer lasted
  Counter rx_too_long;  ///< dropped: in more segments than fit into one
  Counter tx_too_long;  ///< dropped: a super-packet (TSO) on its way to a port that cannot segment
  Counter rx_checksums_finished;
};

/// Packets wait for the end of the loop, or until they are enough for a burst; what a port does not take waits for the
/// next loop, and for no longer than the buffer lasts.
class TransmitQueues {
 public:
  /// Of shard `number`; all but `ports` outlive this. `rss` may be null.
  TransmitQueues(unsigned number, const std::vector<std::unique_ptr<LivePort>>& ports, SoftwareRss* rss, unsigned burst,
                 LatencySample& sample, std::vector<ShardPortCounters>& counters);
  ~TransmitQueues();
  TransmitQueues(const TransmitQueues&) = delete;
  TransmitQueues& operator=(const TransmitQueues&) = delete;

  /// Takes over what leaves by `port` and came at `arrival`.
  void send(std::size_t port, std::span<Packet> packets, Nanos arrival);
  /// The end of a loop.
  void flush() {
    if (waiting_ || rss_) flush_all();
  }
  /// Whether the last flush() left packets that a port, or the shard that owns it, did not take.
  bool congested() const { return congested_; }
  /// Whether packets of some port of the run lose nothing by waiting: then they wait before they are dropped.
  bool some_port_waits() const { return some_port_waits_; }
  bool is_empty(std::size_t port) const { return queues_[port].count == 0; }
  /// The end of a run: what waits is dropped and counted.
  void drop_all();

  /// The ports of the run.
  std::size_t ports() const { return queues_.size(); }
  LivePort& port(std::size_t number) const { return *queues_[number].port; }
  /// Whether packets that leave by it may share their bytes.
  bool takes_shared(std::size_t number) const {
    return queues_[number].port->takes_shared() && !queues_[number].finishes_offloads;
  }

 private:
  struct Queue {
    LivePort* port;
    unsigned number;         // of the port's queues
    bool owned;              // by this shard; else the owner sends
    bool finishes_offloads;  // another port brings what a host left to hardware, and this one does not pass it on
    unsigned count = 0;
    std::array<Packet, 4 * kBatchMax> packets;
  };

  void flush_all();
  unsigned finish_offloads(std::size_t port, std::span<Packet> packets);
  unsigned hand_over(std::size_t port, std::span<Packet> packets);
  void transmit(std::size_t port);

  unsigned shard_;
  SoftwareRss* rss_;
  unsigned burst_;
  LatencySample& sample_;
  std::vector<ShardPortCounters>& counters_;
  std::vector<Queue> queues_;  // by port of the run
  bool waiting_ = false;       // something may wait in queues_
  bool congested_ = false;
  bool some_port_waits_ = false;
};

inline void free_packets(std::span<Packet> packets) {
  rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(packets.data()), static_cast<unsigned>(packets.size()));
}

}  // namespace rocebox
