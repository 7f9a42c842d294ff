// SPDX-License-Identifier: BSD-3-Clause
// TrafficManager: the queues between ingress and egress. Each port has one for each traffic class; all share one
// buffer. It decides what is admitted, marked and sent next; it emits nothing itself.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kernel/rate_queue.h"
#include "switch_model/state_queue.h"
#include "switch_model/traffic_manager/config.h"

namespace rocebox::switch_model {

/// A pause frame to be sent: to whoever sends by `port`.
struct PauseRequest {
  Port port;
  std::uint8_t traffic_class;
  std::uint16_t quanta;  ///< of 512 bit times; 0: go on
  Nanos repeat_in;       ///< when it must be said again; 0 with quanta 0
};

class TrafficManager {
 public:
  TrafficManager(const TrafficManagerConfig& config, const SwitchInfo& info, Stats& stats);

  /// Nothing is to be decided between ingress and egress: no rates, no PFC.
  bool idle() const { return idle_; }

  /// What a port's next packets leave at; one in transmission ends as it has begun. Of one that is idle() they
  /// stay without a rate.
  void set_rate(Port port, std::uint64_t bits_per_second);

  /// Whether pause frames may leave between packets.
  bool sends_pauses() const { return lossless_ != 0; }

  /// The class of a packet that comes in.
  std::uint8_t class_of(Packet packet) const;

  enum class Admission : std::uint8_t { kSendNow, kQueued, kDropped };
  /// Packet `p` wants to leave by its egress_port. kSendNow: its transmission begins now, and ends at ends_at(port).
  /// kQueued: the queue has it (the caller has given up its ownership). kDropped: for `*reason`.
  Admission admit(PacketState& p, Context& context, RandomStream& random, Counter*& reason);

  /// The place of one of these whose port has the least bytes in all its queues, with the frame in transmission, at
  /// `now`; of several `draw` chooses, a random number of 32 bits.
  std::uint32_t least_queue(std::span<const NextHop> hops, std::uint32_t draw, Nanos now) const;

  /// When the transmission that began last at a port ends; at `now` when the port has no rate.
  Nanos ends_at(Port port, Nanos now) const;
  /// The packet whose transmission begins now, and how it has waited; false when the port is busy, or nothing may be
  /// sent.
  bool next(Port port, Nanos now, PacketState& p, Queueing& queueing);
  /// Brings what next() needs nearer.
  void prefetch(Port port) const;
  void prefetch_turn(bool is_near) const;
  /// When next() is to be called again for a port although nothing comes: kNever when nothing waits.
  Nanos wake_at(Port port, Nanos now) const;

  /// Reads a pause frame (802.3x, 802.1Qbb) that came in by `port`; it ends here, for rx_pause_frames(). False: it is
  /// none.
  bool pause(Port port, Packet packet, Nanos now);
  Counter& rx_pause_frames() { return rx_pause_; }
  /// What admit() and next() have led to since; up to `count` are written.
  std::span<const PauseRequest> pauses() const { return {pauses_.data(), pauses_.size()}; }
  void clear_pauses() { pauses_.clear(); }
  /// Repeats the pauses of what is still above `xon`.
  void refresh();

  void report(Report& report) const;
  /// Of each port `queue_bytes.PORT`: what waits in its queues.
  void for_each_level(const std::function<void(const std::string&, const Level&)>& each) const;

 private:
  // In the order in which packets need it: what each of them does is the first line of the cache of a port, and the
  // first of class 0.
  struct Queue {
    StateQueue packets;
    std::uint64_t bytes = 0, bytes_max = 0, sent = 0;
    Nanos paused_until = 0, paused_from = 0;
    std::uint64_t deficit = 0, dropped = 0, marked = 0;
  };
  struct alignas(RTE_CACHE_LINE_SIZE) PortState {
    PortState(std::uint64_t rate, std::uint64_t wire) : transmitter(rate), rate_bps(rate), wire_bps(wire) {}
    RateQueue transmitter;
    Nanos free_at = 0;
    std::uint32_t waiting = 0;
    std::uint8_t backlog = 0;         // classes of which packets wait
    std::uint8_t pausing = 0;         // classes that the neighbour was told to pause
    std::uint64_t sending_bytes = 0;  // until free_at
    alignas(RTE_CACHE_LINE_SIZE) std::array<Queue, kQueuesPerPort> queues;
    unsigned turn = 0;                 // of the round robin
    std::uint64_t rate_bps, wire_bps;  // now, and for pauses, which the neighbour counts at its own rate
    std::array<std::uint64_t, kQueuesPerPort> from{};  // bytes buffered that came in by this port, by class
  };

  std::uint64_t wire_bytes(const PacketState& p) const { return p.packet.wire_bytes() + overhead_; }
  bool fits(const Queue& queue, const PacketState& p) const;
  void mark(Queue& queue, PacketState& p, Context& context, RandomStream& random);
  void begin(PortState& port, const PacketState& p, Nanos now);
  static bool may_send(const PortState& port, unsigned number, Nanos now);
  int choose(PortState& port, Nanos now);
  void account(const PacketState& p, bool enters);
  void tell(Port port, std::uint8_t traffic_class, std::uint16_t quanta);
  Nanos pause_time(const PortState& port, std::uint64_t quanta) const;

  const SwitchInfo& info_;
  bool idle_;
  std::uint64_t overhead_, buffer_, used_ = 0, ecn_min_, ecn_max_, xoff_, xon_;
  double alpha_, ecn_probability_;
  ClassOf class_of_;
  Scheduler scheduler_;
  std::uint8_t lossless_;
  std::vector<PortState> ports_;
  std::vector<Level> queue_bytes_;  // by port: what waits
  StateSlab slab_;
  std::vector<PauseRequest> pauses_;
  Counter &drop_buffer_full_, &ecn_not_marked_, &ecn_marked_;
  Level& buffer_bytes_;
  Peak& buffer_bytes_max_;
  Counter &rx_pause_, &rx_paused_ns_, &tx_pause_;
};

}  // namespace rocebox::switch_model
