// SPDX-License-Identifier: BSD-3-Clause
// Fabric: devices joined by wires, and the event queue. Shared by all drives.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/device.h"
#include "runtime/engine/device_set.h"
#include "runtime/engine/event_queue.h"
#include "runtime/kernel/delay_way.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {

/// A device port in a fabric.
struct FabricPort {
  unsigned device;
  Port port;
};

/// Runs devices against a common virtual time. All that happens in one instant happens in rounds: in a round every
/// device with arrivals or due timers is stepped once, in the order in which devices were added; what a wire carries
/// over arrives in the next round of the same instant. The order is a function of the inputs alone. A device that only
/// delays (LinePath) is not stepped for the packets that it carries.
class Fabric {
 public:
  /// Takes over packets that leave by a port that no wire joins, in order.
  using Output = std::function<void(FabricPort from, std::span<Packet> packets, Nanos now)>;

  /// Looks at packets that leave by a port that a wire joins, in order.
  using Tap = std::function<void(FabricPort from, std::span<const Packet> packets, Nanos now)>;

  explicit Fabric(Output output) : output_(std::move(output)) {}
  ~Fabric();

  /// The device must outlive the fabric. Returns its number.
  unsigned add(Device& device);
  /// Joins two ports in both directions, without delay: a device in between delays.
  void join(FabricPort a, FabricPort b);

  /// After join() of that port.
  void tap(FabricPort port, Tap tap);

  /// Output only reads packets' bytes: they may be other packets', too (Device::allow_shared). After all join()s.
  void let_output_share();

  /// Runs every instant before `now` in which a timer is due. Nothing may be injected and not yet run.
  void advance_to(Nanos now);
  /// `packet` arrives at `to` in the instant that the next run() runs; no timer before it may be left to run.
  void inject(FabricPort to, Packet packet) { deliver(member(to.device), to.port, {&packet, 1}); }
  void inject(FabricPort to, std::span<Packet> packets) { deliver(member(to.device), to.port, packets); }
  /// Runs the instant `now`: timers that are due, what was injected, and what these set off in the same instant.
  /// Throws std::runtime_error when devices hand a packet round within one instant without end.
  void run(Nanos now);
  /// The same for `packets`, which arrive at `to` in this instant, and whatever was injected. They need not be gathered
  /// where a device is alone: a step then costs no more than the device's.
  void run(Nanos now, FabricPort to, std::span<Packet> packets);
  /// Steps the device in the instant that the next run() runs: its host has posted something.
  void wake(unsigned device);
  /// The earliest armed timer; kNever when there is none.
  Nanos next_deadline() const {
    return alone_ ? member(0).device->next_deadline() : std::min(wake_ups_.next(), next_inner());
  }

  /// Devices that wait for a time, and directions of lines with packets: what the event queue holds, whatever the
  /// number of timers and packets.
  std::size_t wake_ups() const {
    return alone_ ? next_deadline() != kNever : wake_ups_.size() + inner_[0].size() + inner_[1].size();
  }

  /// What run() has done: devices stepped, and packets handed to them.
  std::uint64_t work() const { return work_; }
  /// Packets inside the devices.
  std::uint64_t held();

  /// Devices may hand over what they send as they begin to send it (Context::emit_at), where a line takes it. For
  /// drives in which no option changes while they run. After all join()s and tap()s.
  void let_send_ahead();

  /// From the next run() on devices of which each port is joined to a line that delays are run through the shortest of
  /// these delays at a time, one after the other, before all others: what they get in it is on its way already, and
  /// each of them stays in the cache for it. Through twice that where none of them has a neighbour that is none, and
  /// they can take turns: every second one on each path, and then those between. All that they do is the same and comes
  /// at the same times; only who looks at them or counts in between sees them ahead. Counts late, see below. Devices
  /// with a host are only if `hosts` says so: then what runs on a host acts on that host alone, and nobody else calls
  /// wake() before what ran ahead is caught up.
  void let_run_ahead(bool hosts);
  /// From the next run() on all devices take their turns by time again. What ran ahead is ahead by three delays at
  /// most.
  void run_in_time();
  /// The latest of the times before which a device has been run ahead.
  Nanos ran_ahead_to() const { return ran_ahead_to_; }
  /// Nothing is run ahead to `until` or farther, from the next run() on.
  void limit_ahead(Nanos until) { ahead_limit_ = until; }

  /// What packets that take short cuts would have counted is only noted, until settle() is called: for drives in which
  /// nobody reads counters while it runs.
  void count_late() { counts_late_ = true; }
  /// Counts what has happened before `before` and was only noted.
  void settle(Nanos before);

 private:
  static constexpr std::size_t kCacheLine = 64;
  // Packets that a line must have room for, for each delay by which devices run ahead: a device may put on it before
  // the one behind it has taken what was due.
  static constexpr std::uint32_t kAheadRoom = 4096;
  // What arrives in one round, in order: a run of packets for each change of port. One packet, as nearly always, stands
  // in the inbox itself.
  struct Inbox {
    struct Run {
      Port port;
      std::size_t end;  // of its packets: where the next run begins
    };
    struct Many {
      std::vector<Packet> packets;
      std::vector<Run> runs;
    };
    Packet one;  // empty: none, or they are below
    Port one_port = 0;
    bool has_more = false;
    std::unique_ptr<Many> many = std::make_unique<Many>();
    bool empty() const { return !one && !has_more; }
    void add(Port port, std::span<const Packet> more) {
      if (more.size() == 1 && empty()) {
        one = more[0];
        one_port = port;
      } else {
        add_more(port, more);
      }
    }
    void add_more(Port port, std::span<const Packet> more);
    void clear();
  };
  struct Member;
  struct Way;
  struct Wire {
    Member* to = nullptr;       // null: no wire
    Way* way = nullptr;         // of `to`, where that is a line
    DelayWay* delay = nullptr;  // of that
    Member* inner = nullptr;    // to whom that leads, where he runs ahead
    Port port = 0;
  };
  // What can be due, by its number in a round.
  struct Part : Event {
    unsigned number = 0;
    bool is_way = false;
    std::uint8_t phase = 0;  // of a device that runs ahead; kNoPhase while phases are given
  };
  // One direction of a line: packets that it carries cost no step. What each of them needs is one line of the cache.
  struct alignas(kCacheLine) Way : Part {
    Port in = 0;
    Port to_port = 0;  // of `to`
    DelayWay* way = nullptr;
    Member* to = nullptr;  // to whom they are handed; null: the wire leads to another line or nowhere, or it has a tap
    Member* line = nullptr;
    Wire wire;  // by which they leave
    // What taking the first packet needs, and then what the device that gets it does.
    void prefetch() const {
      way->prefetch_itself();
      if (!to) return;
      prefetch_line(to);
      prefetch_line(reinterpret_cast<const std::byte*>(to) + kCacheLine);
    }
    void prefetch_first() const;
  };
  // What a device that runs ahead needs of a way to it, without a look at the way.
  struct WayHere {
    DelayWay* delay;
    Port to_port;
    Way* way;
  };
  struct alignas(kCacheLine) Member : Part {
    Device* device = nullptr;
    LinePath* line = nullptr;        // of the device
    std::array<Inbox, 2> inboxes;    // of this round and the next, by turns
    std::span<const std::byte> hot;  // of the device, see Device::hot()
    std::vector<Wire> wires;         // by port
    std::vector<Tap> taps;           // by port; empty where none of the device's ports has one
    Fabric* fabric = nullptr;
    unsigned device_number = 0;
    bool is_inner = false;           // it runs ahead
    bool follows = false;            // then: it is of the second phase, and its only neighbour's turn is before its own
    bool has_posted = false;         // then: its host has
    unsigned turn = 0;               // then: its place in turns_
    std::vector<WayHere> ways_here;  // then: those that lead here, by their numbers
    std::array<Way, 2> ways;         // of a line, by input
    void prefetch() const {
      prefetch_far_line(device);
      prefetch_far_lines(hot.data(), hot.data() + hot.size());
    }
    bool is_leaf() const { return wires.size() == 1; }
    // Whether something is in an inbox of the line.
    void set_waits(bool waits) {
      for (Way& way : ways) way.way->set_waits(waits);
    }
    void look_for_short_cuts() {
      for (Way& way : ways) {
        way.to = way.wire.way || !taps.empty() ? nullptr : way.wire.to;
        way.to_port = way.wire.port;
      }
    }
  };

  void run_rounds(Nanos now);
  void run_only(Part& part, Nanos now);
  void look_ahead();
  void step(Member& stepped, Inbox& inbox, Nanos now);
  void step_many(Member& stepped, Inbox& inbox, Nanos now);
  void step_with(Member& stepped, Inbox& inbox, Nanos now);
  void enter(Member& entered, Port in, Packet packet, Nanos now);
  void release(Way& way, Nanos now);
  void leave(Member& from, Port out, std::span<Packet> packets, Nanos now);
  void carry(const Wire& wire, std::span<Packet> packets, Nanos now);
  bool leave_ahead(Member& from, Port out, Packet packet, Nanos now, Nanos at);
  void put(const Wire& into, Packet packet, Nanos comes);
  void deliver(Member& to, Port in, std::span<const Packet> packets);
  void number(Part& part, bool is_way);
  void set_wire(FabricPort from, FabricPort to);
  void end_alone();
  void schedule(Member& due, Nanos at);

  // fabric_ahead.cc
  static constexpr std::uint8_t kNoPhase = 2;
  // A packet that comes to a device which runs ahead.
  struct Coming {
    Nanos at;
    Port in;
    Packet packet;
  };
  bool may_run_ahead(const Member& one, bool hosts) const;
  static Member* inner_neighbour(const Wire& wire) {
    return wire.way->to && wire.way->to->is_inner ? wire.way->to : nullptr;
  }
  static bool is_edge(const Member& one);
  void set_inner(Way& way, Member* inner);
  bool give_phases();
  bool give_phases_from(Member& start);
  void give_turns();
  void wake_ahead(Member& woken);
  void schedule_inner(Member& one);
  Nanos next_inner() const { return std::min(inner_[0].next(), inner_[1].next()); }
  void run_ahead(Nanos now);
  void run_phase(unsigned phase, const std::array<Nanos, 2>& until);
  void run_ahead(Member& one, Nanos until);
  static void prefetch_turns(std::span<Member* const> due, const std::array<Nanos, 2>& until);
  void gather(Member& one, Nanos until);
  void step_with(Member& one, Nanos now, std::span<const Coming> coming);

  Member& member(unsigned device) { return *members_[device]; }
  const Member& member(unsigned device) const { return *members_[device]; }

  std::vector<std::unique_ptr<Member>> members_;
  bool alone_ = false;  // one device, and no wire from it to itself: it keeps its deadline, and needs no rounds
  PacketIdentities identities_;
  std::vector<Part*> parts_;  // by number: in the order of devices, a line's ways before the line
  Nanos now_ = 0, settled_ = 0;
  bool counts_late_ = false;
  EventQueue wake_ups_;  // one of each part at most: its next deadline
  // Of those that run ahead, by phase: when something comes to one next, or its deadline.
  std::array<EventQueue, 2> inner_;
  bool has_phases_ = false;        // who is of one has neighbours of the other alone
  std::array<Nanos, 2> ran_to_{};  // by phase: what they had to do before this time they have done
  Nanos ahead_ = 0;                // the shortest delay of a line to one of these; 0: there is none
  Nanos ahead_limit_ = kNever;     // none of them is run to this time
  Nanos ran_ahead_to_ = 0;         // the latest of the times to which any of them has run
  bool no_room_ = false;           // a line was stepped for a packet
  std::vector<Member*> turns_;     // of those that run ahead: who shares lines with whom lies near him
  DeviceSet due_turns_;            // of these, those that run ahead now
  std::vector<Member*> due_;
  std::vector<Member*> woken_;          // of those that run ahead, since the last run()
  Member* at_work_ = nullptr;           // of those that run ahead
  std::vector<Coming> coming_;          // to the one at work
  std::vector<Coming> gathered_;        // the same by way, which becomes the order of those of one time
  std::vector<std::uint64_t> by_time_;  // of these: the time since now, and the place
  const Event* next_ = nullptr;         // of those that are due behind this instant, the next one to be looked at
  std::array<DeviceSet, 2> rounds_;     // parts with something to do, in this round and the next, by turns
  unsigned turn_ = 0;                   // of the round that comes next
  std::vector<Arrivals> arrivals_;      // of the device that is stepped
  std::uint64_t work_ = 0;
  Output output_;
};

}  // namespace rocebox
