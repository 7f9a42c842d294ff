// SPDX-License-Identifier: BSD-3-Clause
// Pass: one call of a program's control, and what it can ask of the switch.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "runtime/kernel/kernel.h"
#include "runtime/kernel/splitmix64.h"
#include "switch_model/packet_state.h"

namespace rocebox::switch_model {

/// A stream of random numbers of one control: ingress and egress of a program draw apart, so that batching changes
/// nothing. Draw in packet order.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t state = 0) : state_(state) {}
  std::uint64_t operator()() { return splitmix64::next(state_); }

 private:
  std::uint64_t state_;
};

/// What a program's on_timer made, to enter egress behind it.
inline constexpr std::size_t kGeneratedMax = 64;
using Generated = std::vector<PacketState>;

/// One call of a control: the packets, the time, and what can be asked of the switch.
class Pass {
 public:
  Pass(Context& context, std::span<PacketState> packets, Gress gress, unsigned program, RandomStream& random,
       Generated& generated, Counter& drop_no_copy, const Queueing* queueing = nullptr)
      : context_(context),
        packets_(packets),
        random_(random),
        generated_(generated),
        drop_no_copy_(drop_no_copy),
        queueing_(queueing),
        gress_(gress),
        program_(program) {}

  std::span<PacketState> packets() const { return packets_; }
  PacketState* begin() const { return packets_.data(); }
  PacketState* end() const { return packets_.data() + packets_.size(); }
  std::size_t size() const { return packets_.size(); }
  PacketState& operator[](std::size_t i) const { return packets_[i]; }
  Gress gress() const { return gress_; }

  Nanos now() const { return context_.now(); }
  /// A random number. Draw in packet order; how often may depend on the packet and on what earlier ones left in state.
  std::uint64_t random() { return random_(); }

  /// Times, queue depths and ports of a packet of this pass. Costs a few instructions when called, and nothing else.
  Intrinsic intrinsic(const PacketState& p) const {
    Intrinsic all{};
    all.ingress_port = p.ingress_port;
    all.ingress_mac_tstamp = p.packet.meta().arrival;
    all.global_tstamp = now();
    all.egress_port = kNoPort;
    if (gress_ == Gress::kIngress) return all;
    const Queueing passed = queueing_ ? queueing_[&p - packets_.data()] : Queueing{now(), 0, 0};
    all.egress_port = p.egress_port;
    all.enq_tstamp = passed.enq_tstamp;
    all.enq_qdepth = passed.enq_qdepth;
    all.deq_qdepth = passed.deq_qdepth;
    all.deq_timedelta = now() - passed.enq_tstamp;
    all.egress_rid_first = p.instance == Instance::kReplica && p.replica == 0;
    all.egress_rid = p.instance == Instance::kReplica ? p.replica : std::uint16_t{0};
    all.egress_qid = all.egress_cos = p.traffic_class;
    all.pkt_length = p.packet.wire_bytes();
    return all;
  }

  /// The packet ends behind this control; `reason` is counted then. Mirrors that were asked for are made nevertheless.
  void drop(PacketState& p, Counter& reason) { p.drop_reason = &reason; }
  /// Egress, before bytes of the packet are written: replicas may have them together, and then this one gets a copy.
  /// False, and the packet is dropped, when the pool is dry. A program that does so says kOwnsWhatItWrites.
  bool own(PacketState& p) {
    if (context_.own(p.packet)) return true;
    drop(p, drop_no_copy_);
    return false;
  }
  /// A copy of the packet as this control leaves it, cut to `truncate_bytes`, enters egress at `port` as
  /// Instance::kMirror with the packet's metadata, behind all packets of this instant. One a control; the last counts.
  void mirror(PacketState& p, Port port, std::uint16_t truncate_bytes = 0xFFFF) {
    p.mirror_port = port;
    p.mirror_bytes = truncate_bytes;
  }
  /// Egress: the packet enters ingress again by the port it came in by, as Instance::kRecirculated, after the loopback
  /// port's delay, in the pipe of the port that it was leaving by. At most kPassesMax times.
  void recirculate(PacketState& p) { p.recirculate = true; }
  /// The program's on_timer(timer) is called at `at`, or behind all packets of this instant when that is not later;
  /// equal times go by program, then in the order of arming. Arm a timer from one of the two controls only: which of
  /// them comes first depends on how the input was cut into batches.
  void arm(Timer& timer, Nanos at) { context_.arm(timer, at, static_cast<std::uint8_t>(program_ + 1)); }
  void cancel(Timer& timer) { context_.cancel(timer); }
  /// A new packet of `bytes` bytes, uninitialised, for generate(). Empty when the pool is dry.
  PacketPtr allocate(std::uint32_t bytes) { return context_.allocate(bytes); }
  /// From on_timer: a packet that the program made enters egress at `port` as Instance::kGenerated. At most
  /// kGeneratedMax in one call; false, and the packet is freed, beyond.
  bool generate(PacketPtr packet, Port port) {
    if (generated_.size() == kGeneratedMax) return false;
    PacketState& p = generated_.emplace_back();
    p.packet = packet.release();
    p.instance = Instance::kGenerated;
    p.ingress_port = p.egress_port = port;
    return true;
  }
  /// Tells the packet trace what was done to a packet that goes on, in a word or two.
  void note(const PacketState& p, std::string_view what) { context_.note(p.packet, what); }

 private:
  Context& context_;
  std::span<PacketState> packets_;
  RandomStream& random_;
  Generated& generated_;
  Counter& drop_no_copy_;
  const Queueing* queueing_;  // of each packet; null: none has waited
  Gress gress_;
  unsigned program_;
};

}  // namespace rocebox::switch_model
