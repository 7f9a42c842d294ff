// SPDX-License-Identifier: BSD-3-Clause
// Shard: the datapath of one core. Packets in from its queues, through its devices, out by its queues.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/live/clock.h"
#include "runtime/drives/live/exchange.h"
#include "runtime/drives/live/idle.h"
#include "runtime/drives/live/live_port.h"
#include "runtime/drives/live/mailbox.h"
#include "runtime/drives/live/stay.h"
#include "runtime/drives/testbed.h"
#include "runtime/telemetry/histogram.h"

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

class Shard {
 public:
  /// `ports` are set up with a queue for each shard, or with one, whose packets go through `exchange`. Throws
  /// ConfigError.
  Shard(unsigned number, const config::RunConfig& config, Pool& pool, std::vector<std::unique_ptr<LivePort>>& ports,
        Exchange* exchange, const Clock& clock);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Runs until `stop`, then lets go what is held, for at most `drain`. To be called on the core.
  void run(const std::atomic<bool>& stop, Nanos drain);

  /// Gives a kernel new options. To be called on the core, or while it does not run.
  void change(unsigned device, unsigned kernel, Change& change);

  unsigned number() const { return number_; }
  /// Serves between bursts while run() does, until it was told to stop.
  Mailbox& mailbox() { return mailbox_; }
  Testbed& testbed() { return testbed_; }
  const Testbed& testbed() const { return testbed_; }
  const ShardPortCounters& counters(std::size_t port) const { return counters_[port]; }
  /// Time from the burst in which a packet came to the burst in which it went, of a sample of packets.
  const Histogram& latency(std::size_t port) const { return tx_[port].latency; }
  /// How long packets stay in device `number` and its kernels, of the same sample.
  const Stay& stay(unsigned number) const { return stays_[number]; }
  std::uint64_t loops() const { return loops_.read(); }
  std::uint64_t busy_loops() const { return busy_loops_.read(); }
  /// Packets that left by device ports that nothing is bound to.
  std::uint64_t unbound() const { return unbound_.read(); }
  /// Time in loops that found something to do, in nanoseconds, with nothing lost between one loop and the next.
  std::uint64_t busy_nanos() const { return busy_nanos_.read(); }

 private:
  struct RxQueue {
    LivePort* port;
    unsigned queue;
    std::size_t index;  // of the run's ports
    FabricPort to;
    bool owned;             // this shard takes packets from it
    bool fills_metadata;    // or prepare() does
    bool finish_checksums;  // that a host has left unfinished
    bool patient;           // what is not taken from it waits
  };
  // What waits for a port: sent at the end of each loop, or before that when it is enough for a burst.
  struct TxQueue {
    LivePort* port;
    unsigned queue;
    bool owned;
    bool finishes;  // another port brings what a host left to hardware, and this one does not pass it on
    unsigned count = 0;
    Nanos sampled_arrival = 0;  // of the first packet of this loop, in loops that are timed
    std::array<Packet, 4 * kBatchMax> packets;
    Histogram latency;
  };

  // What an empty bump does between two ports of DPDK, one way. Its books are made between rounds.
  struct Wire {
    std::size_t in, out;  // of the run's ports
    Port from, to;        // of the device
    std::uint16_t eth_in, eth_out;
    std::uint64_t packets = 0, bytes = 0, sent = 0;
  };

  bool loop();
  void lay_wires();
  void relay(unsigned loops);
  bool relay(Wire& wire, Packet* room);
  void read_clock();
  bool receive();
  bool receive(RxQueue& rx);
  bool take_over(RxQueue& rx);
  bool can_wait(const RxQueue& rx) const;
  Nanos next_event() const;
  void let_go(Nanos drain);
  void send_rest();
  unsigned prepare(RxQueue& rx, std::span<Packet> packets);
  int wire_from(const RxQueue& rx) const { return alone_ ? testbed_.device(0).wire_from(rx.to.port) : -1; }
  void deliver(const RxQueue& rx, int wire, std::span<Packet> packets);
  void pass(const RxQueue& rx, Port out, std::span<Packet> packets);
  static void free_all(std::span<Packet> packets) {
    rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(packets.data()), static_cast<unsigned>(packets.size()));
  }
  void send(std::size_t port, std::span<Packet> packets, Nanos arrival);
  unsigned finish(std::size_t port, std::span<Packet> packets);
  unsigned hand_over(TxQueue& tx, ShardPortCounters& counters, std::span<Packet> packets);
  void transmit(TxQueue& tx, ShardPortCounters& counters);
  void flush();
  void flush_queues();
  void sample(bool on);
  void sample_latency();
  void step(Nanos now);
  Nanos next_deadline() const {
    return alone_ ? testbed_.fabric().deadline_alone() : testbed_.fabric().next_deadline();
  }

  unsigned number_;
  const Clock& clock_;
  Exchange* exchange_;
  Testbed testbed_;
  bool alone_;  // one device and no link: its packets need not be gathered
  bool wire_;   // no kernels, and no port that knows offload: packets are not looked at
  unsigned burst_;
  std::vector<Wire> wires_;  // empty where packets may have to do more than pass
  std::vector<RxQueue> rx_;
  std::vector<TxQueue> tx_;
  std::vector<std::vector<int>> out_ports_;  // by device, by port: index of tx_; -1: nothing is bound
  std::vector<ShardPortCounters> counters_;
  std::deque<Stay> stays_;                           // by device
  std::vector<std::array<Packet, kBatchMax>> room_;  // of what arrived, by queue
  std::vector<Arrivals> arrivals_;
  Counter loops_, busy_loops_, busy_nanos_, unbound_;
  Nanos now_ = 0;
  bool unsent_ = false;  // something may wait in tx_
  bool busy_since_clock_ = false;
  bool sampled_ = false;
  std::uint64_t next_sampled_loop_ = 0;
  bool patient_ = false;    // packets of some port of the run can wait, and do before they are dropped
  bool congested_ = false;  // the last loop left packets that a port did not take
  Idler idler_;
  Mailbox mailbox_;
};

}  // namespace rocebox
