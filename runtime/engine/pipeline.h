// SPDX-License-Identifier: BSD-3-Clause
// Pipeline: one instance of a chain or graph of kernels. Single-threaded, pure, driven from outside by step() and
// next_deadline(); no clock, port, file or thread.
#pragma once
#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/probe.h"
#include "runtime/engine/trace_sink.h"
#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/packet/pool.h"
#include "runtime/packet/prefetch.h"

namespace rocebox {

/// Where an output leads: input `port` of stage `stage`, or output `port` of the pipeline.
struct Edge {
  static constexpr int kOutside = -1;  ///< an output of the pipeline
  static constexpr int kNowhere = -2;  ///< not connected: what leaves by it is dropped and counted
  int stage = kNowhere;
  Port port = 0;
};

/// One kernel in its place.
struct Stage {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  Shape shape = Shape::kTwoSided;
  std::vector<Edge> outputs;  ///< one for each output port of the kernel
  std::uint64_t seed = 0;     ///< start of the kernel's random stream
};

/// A packet that a kernel emitted, which leaves by `out` right behind packet `behind` of its batch.
struct Emitted {
  unsigned behind;
  Port out;
  PacketPtr packet;
};

/// Packets that arrive together by one input, in order. step() takes them over.
struct Arrivals {
  Port in;
  std::span<Packet> packets;
};

/// Takes over packets that leave by `out`, in order.
using Sink = std::function<void(Port out, std::span<Packet> packets, Nanos now)>;

/// Takes over a packet that leaves by `out` at `at`, later than `now`; false: it wants it then, and nothing has
/// happened.
struct AheadSink {
  void* owner = nullptr;
  bool (*take)(void* owner, Port out, Packet packet, Nanos now, Nanos at) = nullptr;
};

/// The packets and bytes of one device port.
struct PortCounters {
  Counter rx_packets, rx_bytes, tx_packets, tx_bytes;
  void came(std::uint64_t packets, std::uint64_t bytes) {
    rx_packets.add(packets);
    rx_bytes.add(bytes);
  }
  void sent(std::uint64_t packets, std::uint64_t bytes) {
    tx_packets.add(packets);
    tx_bytes.add(bytes);
  }
};

/// in + made == out + dropped + held, whenever no packet is on its way.
struct Conservation {
  std::uint64_t in = 0, made = 0, out = 0, dropped = 0;
  std::uint64_t held() const { return in + made - out - dropped; }
};

/// Parsed RoCEv2 with its identity: what devices of a fabric hand to each other, nearly always.
inline bool is_known(Packet packet) {
  const PacketMeta& meta = packet.meta();
  return meta.status == ParseStatus::kRoce && meta.identity != 0;
}

/// Broken invariants end the run with the values that show it, in release too.
[[noreturn]] void broken(const char* what, std::string_view who, std::uint64_t value);

class Pipeline {
 public:
  /// `inputs[p]` is where packets of input p enter. `stats` receives the engine's own counters.
  Pipeline(std::vector<Stage> stages, std::vector<Edge> inputs, Pool& pool, Stats& stats);

  void set_sink(Sink sink) { sink_ = std::move(sink); }
  /// What leaves is counted in `ports`, one for each output, from now on.
  void count_sent(PortCounters* ports) { ports_ = ports; }
  /// From now on kernels may say ahead that a packet leaves (Context::emit_at).
  void set_ahead_sink(AheadSink sink) { ahead_sink_ = sink; }
  /// Counts what was said ahead and has left before `before`.
  void settle(Nanos before);
  /// Where packets that kernels make get their identity from; its own, until set before the first step().
  PacketIdentities& identities() { return *identities_; }
  void set_identities(PacketIdentities& identities) { identities_ = &identities; }
  /// One kernel, whose ports are the device's, in their order.
  bool is_one_kernel() const { return is_one_kernel_; }
  /// Whether other devices hand packets to this one: they have parsed and numbered them.
  bool shares_identities() const { return identities_ != &own_identities_; }

  /// One instant: timers due by `now`, then what hosts have posted, then the arrivals, then timers set for this very
  /// instant; equal times go by stage, part (Context::arm), then arming order. `now` never goes back. Packets are
  /// parsed and have their metadata filled. A drive may call again with the same `now` when another device hands over
  /// without delay.
  void step(Nanos now, std::span<const Arrivals> arrivals);

  /// Whether it is one kernel, whose ports are its own, and nobody looks on.
  bool is_alone() const { return is_one_kernel_ && !trace_ && !probe_; }
  /// step() with one packet, where is_alone().
  void step_alone(Nanos now, Port in, Packet packet);

  /// Books packets that went from an input straight to an output without step().
  void count_wire(std::uint64_t packets) {
    books_.in.add(packets);
    books_.out.add(packets);
  }

  /// Books packets that stage 0's DelayLine carried: they are held until they are counted out.
  void count_line(std::uint64_t in, std::uint64_t out) {
    books_.in.add(in);
    packets_in_[0].add(in);
    books_.out.add(out);
  }
  /// A probe's sample is timed on this way, too.
  void time_line_in(Packet packet) {
    if (probe_ && probe_->sampling) packet.meta().entered = probe_->now();
  }
  void time_line_out(Packet packet) {
    if (probe_ && probe_->sampling) probe_->device_left(probe_->now() - packet.meta().arrival);
    if (packet.meta().entered == 0) return;
    if (probe_) probe_->kernel_left(0, probe_->now() - packet.meta().entered);
    packet.meta().entered = 0;
  }

  /// When step() must be called next although nothing arrives; kNever when no timer is armed.
  Nanos next_deadline() const { return timers_.next(); }
  /// Brings what the timer that is due next needs nearer.
  void prefetch() const {
    if (timers_.empty()) return;
    const auto& timer = static_cast<const Timer&>(timers_.first());
    prefetch_line(&timer);
    stages_[timers_.first_order() >> kStageShift].kernel->prefetch(timer);
  }
  /// The same for a packet that is about to come in by `in`.
  void prefetch_arrival(Port in, Packet packet) const {
    if (is_one_kernel_ && is_known(packet)) alone_.kernel->prefetch_arrival(in, packet);
  }
  /// The same for a turn of many packets: Kernel::prefetch_turn.
  void prefetch_turn(bool is_near) const {
    if (is_one_kernel_) alone_.kernel->prefetch_turn(is_near);
  }
  /// Of this object, what each step_alone() uses.
  std::span<const std::byte> hot() const {
    const auto* start = reinterpret_cast<const std::byte*>(this);
    return {start, reinterpret_cast<const std::byte*>(&stages_)};
  }

  /// May be asked for on any thread.
  Conservation conservation() const {
    return {books_.in.read(), books_.made.read(), books_.out.read(), books_.dropped.read()};
  }
  const std::vector<Stage>& stages() const { return stages_; }
  /// Of the kernel that hosts use; null when none does. A device has one host at most.
  HostSide* host_side() const { return hosts_.empty() ? nullptr : hosts_[0].side; }
  /// Packets that came to a kernel, by any of its inputs. May be asked for on any thread.
  std::uint64_t packets_in(std::size_t stage) const { return packets_in_[stage].read(); }

  /// Tells of packets as the sink wants it (PacketMeta::traced, TraceSink::every_drop) from now on; null switches off.
  void set_trace(TraceSink* trace) { trace_ = trace; }

  /// Times a sample of packets from now on; null switches off.
  void set_probe(Probe* probe) { probe_ = probe; }

  /// What leaves by output `out` may share its bytes with other packets (Packet::is_shared): the sink only reads them.
  void allow_shared(Port out) { shared_outputs_.set(out); }

  /// Cuts arrivals into batches of at most `packets`. 1 in virtual time and replay, where one packet at a time is
  /// the meaning of a pipeline that forks and merges; kBatchMax on ports.
  void set_batch_max(unsigned packets) { batch_max_ = std::clamp(packets, 1u, kBatchMax); }

 private:
  friend class Context;
  static constexpr unsigned kStageShift = 56, kPartShift = 48;  // of a timer's order
  struct Host {
    HostSide* side;
    unsigned stage;
  };
  void look_at(const Host& host);
  void fire_timers();
  void run(Edge at, Batch& batch, unsigned hops);
  void run_alone(Port in, Packet packet);
  bool leave_ahead(unsigned stage, Packet packet, Port out, Nanos at);
  void count_ahead(Port out);
  void distribute(unsigned stage, Batch& batch, unsigned hops);
  void send_one(unsigned stage, const Batch& batch, unsigned hops);
  void emit_one(unsigned stage);
  void send_emitted(unsigned stage);
  void flush_outputs(unsigned stage, const Batch& batch, unsigned hops);
  void send_output(unsigned stage, Port port, std::span<Packet> packets, unsigned hops);
  void gather_output(unsigned stage, Port port, const Batch& batch, std::vector<Emitted>& emitted, unsigned hops);
  void leave(Port out, std::span<Packet> packets);
  void hand_over(Port out, std::span<Packet> packets);
  void discard(Batch& batch, Counter& reason);
  Packet enter_made(unsigned stage, Emitted& one);
  void call(unsigned stage, Port in, Batch& batch);
  void trace_process(unsigned stage, Port in, Context& context, Batch& batch);
  void trace_made(Packet packet) const;
  bool traces_drop(Packet packet) const { return trace_ && (trace_->every_drop || packet.meta().traced); }
  void trace_verdict(unsigned stage, const Batch& batch, unsigned i, const TraceInfo& info, Packet packet);

  // Of the only kernel, where there is one and its ports are the device's: what stands in several places else.
  struct Alone {
    Kernel* kernel = nullptr;
    HostSide* host = nullptr;  // null: it has none
    std::uint64_t* seed = nullptr;
    Counter* packets_in = nullptr;
    std::vector<Emitted>* emitted = nullptr;
    unsigned outputs = 0;
    std::array<Port, 2> pass{};
  } alone_;
  Nanos now_ = 0;
  struct {
    Counter in, made, out, dropped;
  } books_;
  bool is_one_kernel_ = false;
  PortCounters* ports_ = nullptr;  // null: nobody counts what leaves
  TraceSink* trace_ = nullptr;
  Probe* probe_ = nullptr;
  DeadlineHeap timers_;
  std::uint64_t timer_sequence_ = 0;
  AheadSink ahead_sink_;
  // What an output sends, said ahead, until it has left and is counted.
  struct Ahead {
    Nanos at = 0;
    std::uint32_t bytes = 0;  // 0: nothing
  };
  std::vector<Ahead> ahead_;  // by output
  std::vector<Stage> stages_;
  std::vector<std::array<Port, 2>> pass_;  // by stage: the pass port for inputs 0 and 1 (others: 0)
  std::vector<Edge> inputs_;
  std::unique_ptr<Counter[]> packets_in_;      // by stage
  std::vector<std::vector<Emitted>> emitted_;  // one free list a stage, kept for its capacity
  std::vector<Host> hosts_;
  Pool& pool_;
  PacketIdentities own_identities_;
  PacketIdentities* identities_ = &own_identities_;
  Sink sink_;
  std::size_t timers_reserved_ = kTimersReserved;
  unsigned batch_max_ = kBatchMax;
  std::bitset<256> shared_outputs_;
  Counter& drop_hop_limit_;
  Counter& drop_no_packet_;
  Counter& drop_not_connected_;
};

}  // namespace rocebox
