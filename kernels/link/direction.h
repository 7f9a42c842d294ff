// SPDX-License-Identifier: BSD-3-Clause
// One direction of a link, with state of its own. README.md gives the order of work.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "kernels/link/config.h"
#include "kernels/link/counters.h"
#include "kernels/link/event_table.h"
#include "kernels/link/held_back.h"
#include "kernels/link/hold_queue.h"
#include "kernels/link/match.h"
#include "kernels/link/random.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::link {

/// Gilbert-Elliott loss.
class BurstLossState {
 public:
  explicit BurstLossState(const BurstLoss& config)
      : enter_(config.enter), leave_(config.leave), good_(config.loss_good), bad_(config.loss_bad) {}
  bool on() const { return enter_.possible(); }
  /// Other probabilities from the next packet on; the state stays.
  void change(const BurstLoss& config) {
    const bool in_bad = in_bad_;
    *this = BurstLossState(config);
    in_bad_ = in_bad;
  }
  /// Moves to the next packet's state; whether that packet is lost.
  bool next(std::uint64_t move_draw, std::uint64_t loss_draw) {
    if ((in_bad_ ? leave_ : enter_).hits(move_draw)) in_bad_ = !in_bad_;
    return (in_bad_ ? bad_ : good_).hits(loss_draw);
  }

 private:
  Chance enter_, leave_, good_, bad_;
  bool in_bad_ = false;
};

/// What a direction's options say, and what is made of them once.
struct Policy {
  explicit Policy(const DirectionConfig& written);
  DirectionConfig config;
  Chance loss, corrupt, mark, trim, duplicate, reorder;
  Matcher match;     ///< packets that these and burst_loss may befall
  Nanos only_delay;  ///< of all packets, where there is nothing else to decide; else 0
};

class Direction {
 public:
  /// `out` is the port by which packets leave, and the tag of the timers.
  Direction(const DirectionConfig& config, Stats& stats, const std::string& prefix, Port out);

  /// Draws the streams' seeds; before the first packet.
  void seed(Context& context);
  void process(Context& context, Batch& batch);
  /// Where packets are put while there is nothing to decide but when: see DelayLine. They are taken there as long as
  /// the timer is not armed, which else lets them leave.
  DelayWay& way() { return on_their_way_.way(); }
  /// Counts what has gone there before `before` and was not yet counted; and says what that was.
  DelayWay::Counted settle(Nanos before);
  /// New options for this direction, and room for packets where it has none yet. Throws ConfigError naming what cannot
  /// be changed: `events`, `packets`.
  struct Replacement {
    Policy policy;
    HoldQueue room;
  };
  std::unique_ptr<Replacement> prepare(const DirectionConfig& config, std::string_view name) const;
  /// Takes them over. Packets on their way keep the times that they were given.
  void apply(Replacement& replacement, Nanos now);
  void on_timer(Context& context);
  /// Nothing when the direction has no events.
  void report(Report& report, std::string_view name) const {
    if (!events_.empty()) report.object(name, [&](Report& nested) { events_.report(nested); });
  }

 private:
  // One for each decision, in the order in which seeds are drawn: append only, or patterns change.
  enum Draw {
    kBurstMove,
    kBurstLoss,
    kLoss,
    kCorrupt,
    kCorruptPlace,
    kMark,
    kTrim,
    kDuplicate,
    kEcn,
    kReorder,
    kJitter,
    kEventPlace,
    kDraws
  };

  /// What was decided for a packet; its copies share it.
  struct Impairments {
    bool dropped = false;
    std::uint32_t copies = 0, reorder_by = 0;
    Nanos delay = 0;  ///< by events
  };
  /// One call of process() or on_timer(): where packets leave that need not wait.
  struct Call {
    Context& context;
    Batch* batch;  ///< null in on_timer()
    unsigned slot;
  };
  /// A packet of the batch, or a copy.
  struct Item {
    Packet packet;
    PacketPtr copy;  ///< empty: the packet is the one in call.slot
  };
  struct Plan {
    bool accepted = true, trims = false;
    std::uint64_t occupancy = 0, bytes = 0;
    RateQueue::Free free;
  };

  std::uint64_t draw(Draw which) const { return streams_[which].at(index_); }
  bool hits(const Chance& chance, Draw which) const { return chance.possible() && chance.hits(draw(which)); }

  void one(Call& call);
  void explicit_events(Context& context, Packet packet, Impairments& impairments);
  bool apply(Context& context, const Event& event, std::uint32_t number, Packet packet, Impairments& impairments);
  bool corrupt_by(Context& context, const Event& event, std::uint32_t number, Packet packet);
  void impair(Context& context, Packet packet, Impairments& impairments);
  void duplicate_and_pass(Call& call, Packet packet, const Impairments& impairments);
  void pass(Call& call, Item item, const Impairments& impairments);
  Plan plan(Packet packet, Nanos now) const;
  void enqueue(Context& context, Packet packet, const Plan& plan);
  void hold_back(Call& call, Item item, const Impairments& impairments, Nanos at);
  void send_on(Call& call, HeldBackPacket held, Nanos at);
  void passed_on(Call& call, std::uint64_t sequence, Nanos at);
  void leave(Call& call, PacketPtr packet);
  void drop(Call& call, Item item, Counter& reason);
  PacketPtr take(Call& call, Item item);
  bool cut(Context& context, Packet packet);
  bool mark(Context& context, Packet packet);
  void corrupted(Context& context, Packet packet, Icrc icrc);
  bool ecn_wants(std::uint64_t occupancy) const;
  std::uint32_t held() const { return on_their_way_.size() + held_back_.size(); }
  void arm(Context& context);
  void open_way();

  HoldQueue on_their_way_;  // it numbers what reached the far side of the queue, copies counted
  Timer timer_;
  std::uint64_t index_ = 0;    // of the packet at work, from 1
  std::uint64_t stepped_ = 0;  // packets that did not take the short cut
  Counters count_;
  Policy policy_;
  const Port out_;
  std::array<Stream, kDraws> streams_;
  BurstLossState burst_loss_;
  RateQueue transmitter_;
  EventTable events_;
  HeldBack held_back_;
};

}  // namespace rocebox::link
