// SPDX-License-Identifier: BSD-3-Clause
// All that a kernel's author needs. No DPDK call, no clock, no global, no thread: a kernel is called with
// packets and the time, gives each packet a verdict, and says when it wants to be woken.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/component/component.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/counter.h"
#include "runtime/kernel/report.h"
#include "runtime/kernel/splitmix64.h"
#include "runtime/kernel/timer.h"
#include "runtime/packet/batch.h"
#include "runtime/packet/packet.h"

namespace rocebox {

class DelayLine;
class Pipeline;
struct Stimulus;

/// How a kernel is wired.
enum class Shape : std::uint8_t {
  kTwoSided,  ///< ports 0 (left) and 1 (right), each in and out; *pass* goes to the other side
  kOneWay,    ///< numbered inputs and outputs of their own; *pass* goes to output 0
};

/// The whole outside world of a kernel, valid during one call.
class Context {
 public:
  /// The time; one value for the whole call.
  Nanos now() const { return now_; }

  /// The next number of this kernel's own stream, seeded by (run seed, device, kernel). Draw in packet order.
  std::uint64_t random() { return splitmix64::next(*random_state_); }

  /// A new packet of `bytes` uninitialised bytes with fresh metadata, to be given to emit().
  /// Empty when the pool is dry or `bytes` exceeds kPacketBytesMax: count it and carry on.
  PacketPtr allocate(std::uint32_t bytes);

  /// A copy of a packet, bytes and metadata. Empty when the pool is dry.
  PacketPtr copy(Packet packet);

  /// The same without copying the bytes: both packets have them, and none may write them before own(). `packet` and
  /// what is made must be the kernel's (Batch::take), and leave by emit(). Empty when the pool is dry.
  PacketPtr share(Packet packet);
  /// Puts a copy in the place of a packet of the kernel that shares its bytes: then they may be written. False, and
  /// nothing is changed, when the pool is dry.
  bool own(Packet& packet);

  /// `packet`, which the kernel made (allocate, copy, share) or held (Batch::take), leaves by `out`. From process() it
  /// leaves right behind packet `behind` of the batch, in its place when that one is dropped or taken; `behind` never
  /// goes down within a call, and those behind one packet keep their order. Tying each to its cause is what makes the
  /// answer independent of how the input was cut into batches. From on_timer() and on_host() packets leave in the order
  /// of the calls, whatever `behind` says.
  void emit(PacketPtr packet, Port out, unsigned behind = 0);

  /// Says ahead that `packet`, which the kernel made or holds, leaves by `out` at `at`, later than now, as a port does
  /// when it begins to send: nothing else leaves there before. It may be told so only where nothing that comes
  /// meanwhile can change it. False, and nothing has happened: the kernel has to keep it till then, and to emit() it.
  bool emit_at(Packet packet, Port out, Nanos at);

  /// Lets go of a packet that the kernel holds; `reason` is counted by one and named in traces.
  void drop(PacketPtr packet, Counter& reason);

  /// Tells the packet trace what was done to a packet that goes on: `what` is a fixed text of a word or two, such as
  /// "trim". While no trace follows the packet this is one test.
  void note(Packet packet, std::string_view what);

  /// on_timer(timer) will be called at `at`, or in this instant when `at` is not later, and no more when it was armed
  /// for before. Of equal times those of a lower `part` come first (a kernel that runs parts inside itself numbers them
  /// from 1), then the one that was armed first.
  void arm(Timer& timer, Nanos at, std::uint8_t part = 0);
  /// The same where the timer is not armed, or for later; else nothing.
  void arm_by(Timer& timer, Nanos at, std::uint8_t part = 0) {
    if (at < timer.at()) arm(timer, at, part);
  }
  void cancel(Timer& timer);
  /// From start() only: room for so many armed timers of this kernel. More are no mistake, but then arming the most
  /// that there ever were may allocate.
  void reserve_timers(std::size_t timers);

 private:
  friend class Pipeline;
  Context(Pipeline& pipeline, unsigned stage, Nanos now, std::uint64_t* random_state, Batch* batch = nullptr)
      : pipeline_(pipeline), batch_(batch), random_state_(random_state), now_(now), stage_(stage) {}
  Pipeline& pipeline_;
  Batch* batch_;  // that process() is called with; null in on_timer() and on_host()
  std::uint64_t* random_state_;
  Nanos now_;
  unsigned stage_;
};

/// The host's side of a kernel that has one: what a host does to a device otherwise than by packets, such as ringing a
/// doorbell. Its calls are for one thread, the device's; a host on another thread is the implementation's matter.
class HostSide {
 public:
  /// Whether the kernel has to look at something that it has not seen yet. Cheap: one load while there is nothing.
  virtual bool has_posted() const = 0;
  /// A descriptor that becomes readable when has_posted() turns true while wake_on() holds; -1: there is none.
  virtual int wake_descriptor() { return -1; }
  virtual void wake_on(bool /*on*/) {}
  /// `waker` is called when has_posted() turns true outside of the device's own calls, on the device's thread: where
  /// devices share a queue of events, this one is stepped in the present instant.
  virtual void set_waker(std::function<void()> /*waker*/) {}

 protected:
  ~HostSide() = default;
};

/// A pluggable packet function: one instance per place in a pipeline and shard.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Called once, before everything else, at time 0, which may be long before the first packet's: of the context only
  /// arm() and random() may be used. For kernels that do something although nothing comes.
  virtual void start(Context& /*context*/) {}
  /// Called with 1 to kBatchMax packets that came in by `in` at context.now(). Never throws, never blocks, never
  /// allocates; cutting the same packets into other batches must change nothing.
  virtual void process(Context& context, Port in, Batch& batch) = 0;
  virtual void on_timer(Context& /*context*/, Timer& /*timer*/) {}
  /// Brings what on_timer(timer) needs nearer: it is soon to be called. Changes nothing. Where hundreds of devices take
  /// turns, nothing of one is in the cache any more when its turn comes.
  virtual void prefetch(const Timer& /*timer*/) const {}
  /// The same for process() with a packet that is about to come in by `in`, and is parsed.
  virtual void prefetch_arrival(Port /*in*/, Packet /*packet*/) const {}
  /// The same for all that it does in a turn of many packets, which is soon to begin: first what lies in the kernel
  /// itself, then, when that is near, what that leads to.
  virtual void prefetch_turn(bool /*is_near*/) const {}
  /// What is behind a device that hosts use: null for all others. Asked for once, before start().
  virtual HostSide* host_side() { return nullptr; }
  /// Called when its host_side() has posted; what is posted before it returns must be seen by it or lead to another
  /// call.
  virtual void on_host(Context& /*context*/) {}
  /// Null for kernels that always look at packets. Asked for once, before start().
  virtual DelayLine* delay_line() { return nullptr; }
  /// Called with each level of which there is one for each of many alike, as for a port's queue: what samples over time
  /// reads them. They stay where they are.
  virtual void for_each_level(const std::function<void(const std::string& name, const Level& level)>& /*each*/) const {}
  /// Adds to the report what counters do not say. Called between packets or after the run, not in the datapath.
  virtual void report(Report& /*report*/) const {}
  /// Reasons given for packets that end here as they should: to the engine they are dropped, in the books of the device
  /// they are delivered. Nothing else may count by these.
  virtual std::span<const Counter* const> delivered() const { return {}; }
  /// Adds headers of packets that its options make it act upon; `rocebox check` sends packets of every kind under each.
  virtual void stimuli(std::vector<Stimulus>& /*all*/) const {}
};

/// New options for a running kernel: checked and made ready beside it, then taken over in no time.
class Change {
 public:
  virtual ~Change() = default;
  /// Called between two batches on the kernel's own thread, at a time not before its last call. Never throws, blocks
  /// or allocates. What it replaces it keeps: the change frees it when it is destroyed, outside the datapath.
  virtual void apply(Kernel& kernel, Nanos now) = 0;
};

}  // namespace rocebox
