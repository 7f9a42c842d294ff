// SPDX-License-Identifier: BSD-3-Clause
// Fabric: devices joined by wires, and the event queue. Shared by all drives.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/engine/device.h"
#include "runtime/engine/device_set.h"
#include "runtime/engine/event_queue.h"

namespace rocebox {

/// A device port in a fabric.
struct FabricPort {
  unsigned device;
  Port port;
};

/// Runs devices against a common virtual time. All that happens in one instant happens in rounds: in a round every
/// device with arrivals or due timers is stepped once, in the order in which devices were added; what a wire carries
/// over arrives in the next round of the same instant. The order is a function of the inputs alone.
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
  Nanos next_deadline() const { return alone_ ? member(0).device->next_deadline() : wake_ups_.next(); }

  /// Devices that wait for a time: what the event queue holds, whatever their number of timers.
  std::size_t wake_ups() const { return alone_ ? next_deadline() != kNever : wake_ups_.size(); }

  /// What run() has done: devices stepped, and packets handed to them.
  std::uint64_t work() const { return work_; }
  /// Packets inside the devices.
  std::uint64_t held() const;

 private:
  // What arrives in one round, in order: a run of packets for each change of port.
  struct Inbox {
    struct Run {
      Port port;
      std::size_t end;  // of its packets: where the next run begins
    };
    std::vector<Packet> packets;
    std::vector<Run> runs;
    void add(Port port, std::span<const Packet> more);
    void clear();
  };
  struct Member;
  struct Wire {
    Member* to = nullptr;  // null: no wire
    Port port = 0;
  };
  struct Member : Event {
    Device* device = nullptr;
    DelayLine* line = nullptr;  // of the device; packets that it carries cost no step
    unsigned number = 0;
    std::vector<Wire> wires;       // by port
    std::array<Inbox, 2> inboxes;  // of this round and the next, by turns
    std::vector<Tap> taps;         // by port; empty where none of the device's ports has one
  };

  void run_rounds(Nanos now);
  void step(Member& stepped, Inbox& inbox, Nanos now);
  Nanos release(Member& carrier, Nanos now);
  void leave(Member& from, Port out, std::span<Packet> packets, Nanos now);
  void carry(Member& line, Port in, std::span<Packet> packets, Nanos now);
  void deliver(Member& to, Port in, std::span<const Packet> packets);
  void end_alone();
  void schedule(Member& due, Nanos at);

  Member& member(unsigned device) { return *members_[device]; }
  const Member& member(unsigned device) const { return *members_[device]; }

  std::vector<std::unique_ptr<Member>> members_;
  bool alone_ = false;  // one device, and no wire from it to itself: it keeps its deadline, and needs no rounds
  PacketIdentities identities_;
  EventQueue wake_ups_;              // one of each device at most: its next deadline
  std::array<DeviceSet, 2> rounds_;  // devices with something to do, in this round and the next, by turns
  unsigned turn_ = 0;                // of the round that comes next
  std::vector<Arrivals> arrivals_;   // of the device that is stepped
  std::uint64_t work_ = 0;
  Output output_;
};

}  // namespace rocebox
