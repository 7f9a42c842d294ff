// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/pipeline.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/engine/by_output.h"
#include "runtime/roce/parse.h"

namespace rocebox {
void broken(const char* what, std::string_view who, std::uint64_t value) {
  std::fprintf(stderr, "rocebox: internal error: %s (%.*s, %llu)\n", what, static_cast<int>(who.size()), who.data(),
               static_cast<unsigned long long>(value));
  std::abort();
}

namespace {

bool are_one_kernel(const std::vector<Stage>& stages, const std::vector<Edge>& inputs) {
  if (stages.size() != 1) return false;
  const auto is_own = [](const std::vector<Edge>& edges, int stage) {
    for (std::size_t port = 0; port < edges.size(); port++)
      if (edges[port].stage != stage || edges[port].port != port) return false;
    return true;
  };
  return is_own(inputs, 0) && is_own(stages[0].outputs, Edge::kOutside);
}

}  // namespace

Pipeline::Pipeline(std::vector<Stage> stages, std::vector<Edge> inputs, Pool& pool, Stats& stats)
    : stages_(std::move(stages)),
      inputs_(std::move(inputs)),
      packets_in_(std::make_unique<Counter[]>(stages_.size())),
      emitted_(stages_.size()),
      pool_(pool),
      drop_hop_limit_(stats.counter("drop_hop_limit", "reflected between kernels more often than kHopsMax")),
      drop_no_packet_(stats.counter("drop_no_packet", "had its bytes together with others, and the pool was dry")),
      drop_not_connected_(stats.counter("drop_not_connected", "left by an output that leads nowhere")) {
  for (unsigned i = 0; i < stages_.size(); i++) {
    Stage& stage = stages_[i];
    if (HostSide* host = stage.kernel->host_side()) hosts_.push_back({host, i});
    if (stage.outputs.empty()) stage.outputs.emplace_back();  // a sink: what it lets pass leads nowhere, and is counted
    pass_.push_back(stage.shape == Shape::kTwoSided ? std::array<Port, 2>{1, 0} : std::array<Port, 2>{0, 0});
  }
  for (auto& list : emitted_) list.reserve(kEmittedReserved);
  is_one_kernel_ = are_one_kernel(stages_, inputs_);
  ahead_.resize(is_one_kernel_ ? stages_[0].outputs.size() : 0);
  if (is_one_kernel_) {
    Stage& only = stages_[0];
    alone_ = {only.kernel.get(), host_side(),  &only.seed,
              &packets_in_[0],   &emitted_[0], static_cast<unsigned>(only.outputs.size()),
              pass_[0]};
  }
  timers_.reserve(kTimersReserved);
  for (unsigned i = 0; i < stages_.size(); i++) {
    Context context(*this, i, now_, &stages_[i].seed);
    stages_[i].kernel->start(context);
  }
}

void Pipeline::step(Nanos now, std::span<const Arrivals> arrivals) {
  if (now < now_) broken("time went back", "step", static_cast<std::uint64_t>(now_ - now));
  now_ = now;
  if (next_deadline() <= now_) fire_timers();
  for (const Host& host : hosts_) look_at(host);
  for (const Arrivals& arrival : arrivals) {
    books_.in.add(arrival.packets.size());
    if (arrival.packets.size() == 1 && is_alone()) {
      run_alone(arrival.in, arrival.packets[0]);
      continue;
    }
    if (inputs_[arrival.in].stage == Edge::kOutside && !trace_) {  // a wire: nothing is to be decided
      books_.out.add(arrival.packets.size());
      if (!arrival.packets.empty()) hand_over(inputs_[arrival.in].port, arrival.packets);
      continue;
    }
    for (std::size_t first = 0; first < arrival.packets.size(); first += batch_max_) {
      Batch batch;
      const std::size_t count = std::min<std::size_t>(batch_max_, arrival.packets.size() - first);
      batch.packets_[0] = arrival.packets[first];  // nearly all there is in virtual time
      if (count > 1) std::copy_n(arrival.packets.data() + first, count, batch.packets_.data());
      batch.size_ = static_cast<unsigned>(count);
      run(inputs_[arrival.in], batch, 0);
    }
  }
  if (next_deadline() <= now_) fire_timers();
}

void Pipeline::step_alone(Nanos now, Port in, Packet packet) {
  if (now < now_) broken("time went back", "step", static_cast<std::uint64_t>(now_ - now));
  now_ = now;
  if (next_deadline() <= now_) [[unlikely]]
    fire_timers();
  if (alone_.host && alone_.host->has_posted()) [[unlikely]]
    look_at(hosts_[0]);
  books_.in.add();
  run_alone(in, packet);
  if (next_deadline() <= now_) [[unlikely]]
    fire_timers();
}

void Pipeline::look_at(const Host& host) {
  if (!host.side->has_posted()) return;
  Stage& stage = stages_[host.stage];
  Context context(*this, host.stage, now_, &stage.seed);
  stage.kernel->on_host(context);
  send_emitted(host.stage);
}

void Pipeline::fire_timers() {
  const std::size_t most = timers_.size() + kTimersPerInstantMax;
  for (std::size_t fired = 0; timers_.next() <= now_; fired++) {
    Timer& timer = static_cast<Timer&>(timers_.take_first());
    const unsigned number = timer.stage_;
    Stage& stage = stages_[number];
    if (fired == most) broken("a kernel re-arms for now without end", stage.name, fired);
    Context context(*this, number, now_, &stage.seed);
    stage.kernel->on_timer(context, timer);
    timers_.close();
    send_emitted(number);
  }
}

// The straight path: while every packet passes, the same batch goes on and nothing is copied.
void Pipeline::run(Edge at, Batch& batch, unsigned hops) {
  for (;; hops++) {
    if (at.stage == Edge::kOutside) return leave(at.port, {batch.packets_.data(), batch.size_});
    if (at.stage == Edge::kNowhere) return discard(batch, drop_not_connected_);
    if (hops >= kHopsMax) return discard(batch, drop_hop_limit_);
    const auto index = static_cast<unsigned>(at.stage);
    batch.start(pass_[index][at.port & 1]);
    call(index, at.port, batch);
    if (batch.mixed_) return distribute(index, batch, hops + 1);
    at = stages_[index].outputs[batch.pass_];
  }
}

// What run() does for one packet where one kernel is all there is and nobody looks on: the switches and NICs of a
// fabric.
void Pipeline::run_alone(Port in, Packet packet) {
  Batch batch;
  batch.packets_[0] = packet;
  batch.size_ = 1;
  batch.start(alone_.pass[in & 1]);
  alone_.packets_in->add();
  Context context(*this, 0, now_, alone_.seed, &batch);
  alone_.kernel->process(context, in, batch);
  const Port verdict = batch.verdicts_[0];
  if (!alone_.emitted->empty() || verdict == Batch::kDropped) [[unlikely]]
    return distribute(0, batch, 1);
  if (verdict == Batch::kTaken) return;
  if (verdict >= alone_.outputs) broken("a kernel sent to an output that it does not have", stages_[0].name, verdict);
  books_.out.add();
  hand_over(verdict, {&packet, 1});
}

void Pipeline::call(unsigned stage, Port in, Batch& batch) {
  packets_in_[stage].add(batch.size_);
  Context context(*this, stage, now_, &stages_[stage].seed, &batch);
  const Packet first = batch.packets_[0];
  const bool probed = probe_ && probe_->sampling;
  if (probed) [[unlikely]]
    first.meta().entered = probe_->now();
  if (trace_) [[unlikely]]
    trace_process(stage, in, context, batch);
  else
    stages_[stage].kernel->process(context, in, batch);
  // What the kernel took is timed when it comes back: enter_made().
  if (probed && batch.verdicts_[0] != Batch::kTaken) [[unlikely]]
    probe_->kernel_left(stage, probe_->now() - std::exchange(first.meta().entered, 0));
}

// The whole of it where there is one packet, as in virtual time and replay.
void Pipeline::send_one(unsigned stage, const Batch& batch, unsigned hops) {
  const Port verdict = batch.verdicts_[0];
  Packet packet = batch.packets_[0];
  if (verdict == Batch::kTaken) return;
  if (verdict == Batch::kDropped) {
    books_.dropped.add();
    return rte_pktmbuf_free(packet.mbuf());
  }
  if (verdict >= stages_[stage].outputs.size())
    broken("a kernel sent to an output that it does not have", stages_[stage].name, verdict);
  send_output(stage, verdict, {&packet, 1}, hops);
}

// What a timer or a host has led to.
void Pipeline::send_emitted(unsigned stage) {
  const std::size_t count = emitted_[stage].size();
  if (count == 1) return emit_one(stage);
  if (count != 0) flush_outputs(stage, Batch(), 0);
}

void Pipeline::emit_one(unsigned stage) {
  Emitted one = std::move(emitted_[stage].front());
  emitted_[stage].clear();
  if (one.out >= stages_[stage].outputs.size())
    broken("a kernel sent to an output that it does not have", stages_[stage].name, one.out);
  if (Packet packet = enter_made(stage, one)) send_output(stage, one.out, {&packet, 1}, 0);
}

void Pipeline::distribute(unsigned stage, Batch& batch, unsigned hops) {
  if (batch.size_ == 1 && emitted_[stage].empty()) return send_one(stage, batch, hops);
  const std::size_t outputs = stages_[stage].outputs.size();
  Port highest = 0;
  for (unsigned i = 0; i < batch.written(); i++) highest = std::max(highest, batch.verdicts_[i]);
  for (unsigned i = 0; i < batch.size_ && highest >= outputs; i++) {
    const Port verdict = batch.verdicts_[i];
    if (verdict == Batch::kDropped) {
      books_.dropped.add();
      rte_pktmbuf_free(batch.packets_[i].mbuf());
    } else if (verdict != Batch::kTaken && verdict >= outputs) {
      broken("a kernel sent to an output that it does not have", stages_[stage].name, verdict);
    }
  }
  flush_outputs(stage, batch, hops);
}

// Hands on what a call left behind: for each output in turn, the batch's packets with those emitted behind each.
void Pipeline::flush_outputs(unsigned stage, const Batch& batch, unsigned hops) {
  const std::size_t outputs = stages_[stage].outputs.size();
  ByOutput packets(batch.verdicts_.data(), batch.packets_.data(), batch.size_);
  if (emitted_[stage].empty()) {
    packets.for_each(outputs, [&](Port port) { send_output(stage, port, packets.of(port), hops); });
    return;
  }
  std::vector<Emitted> emitted = std::move(emitted_[stage]);  // the stage may be entered again below
  emitted_[stage].clear();
  for (const Emitted& one : emitted) {
    if (one.out >= outputs) broken("a kernel sent to an output that it does not have", stages_[stage].name, one.out);
    packets.use(one.out);
  }
  packets.for_each(outputs, [&](Port port) { gather_output(stage, port, batch, emitted, hops); });
  emitted.clear();
  if (emitted_[stage].empty()) emitted_[stage].swap(emitted);  // keeps the reserved room
}

void Pipeline::send_output(unsigned stage, Port port, std::span<Packet> packets, unsigned hops) {
  const Edge edge = stages_[stage].outputs[port];
  if (edge.stage == Edge::kOutside) return leave(edge.port, packets);
  for (std::size_t first = 0; first < packets.size(); first += batch_max_) {
    Batch next;
    const std::span<Packet> some = packets.subspan(first, std::min<std::size_t>(batch_max_, packets.size() - first));
    std::copy(some.begin(), some.end(), next.packets_.begin());
    next.size_ = static_cast<unsigned>(some.size());
    run(edge, next, hops);
  }
}

void Pipeline::gather_output(unsigned stage, Port port, const Batch& batch, std::vector<Emitted>& emitted,
                             unsigned hops) {
  const Edge edge = stages_[stage].outputs[port];
  Batch next;
  auto put = [&](Packet packet) {
    next.packets_[next.size_++] = packet;
    if (next.size_ < batch_max_) return;
    run(edge, next, hops);
    next.size_ = 0;
  };
  std::size_t made = 0;
  auto put_emitted = [&](unsigned behind) {
    for (; made < emitted.size() && emitted[made].behind <= behind; made++)
      if (emitted[made].out == port)
        if (const Packet packet = enter_made(stage, emitted[made])) put(packet);
  };
  for (unsigned i = 0; i < batch.size_; i++) {
    if (batch.verdicts_[i] == port) put(batch.packets_[i]);
    put_emitted(i);
  }
  put_emitted(kBatchMax);  // what a timer emitted follows no packet
  if (next.size_) run(edge, next, hops);
}

// A packet that a kernel made is parsed when it first goes on; one that shares its bytes gets its own, where the next
// one may write them. Empty when that could not be, and the packet was dropped.
Packet Pipeline::enter_made(unsigned stage, Emitted& one) {
  Packet packet = one.packet.release();
  if (packet.meta().shared) [[unlikely]] {
    const Edge edge = stages_[stage].outputs[one.out];
    if (edge.stage != Edge::kOutside || !shared_outputs_[edge.port]) {
      if (!pool_.own(packet)) {
        Context(*this, stage, now_, nullptr).drop(PacketPtr(packet), drop_no_packet_);
        return {};
      }
      packet.meta().shared = 0;
    }
  }
  PacketMeta& meta = packet.meta();
  if (meta.status == ParseStatus::kUnparsed) roce::parse(packet);
  if (meta.entered != 0) [[unlikely]] {
    if (probe_) probe_->kernel_left(stage, probe_->now() - meta.entered);
    meta.entered = 0;
  }
  if (trace_) [[unlikely]] {
    if (meta.made) trace_made(packet);
    if (meta.traced)
      trace_->record({now_, stages_[stage].name, TraceVerdict::kEmit, one.out, nullptr, trace_info(packet), packet});
  }
  return packet;
}

void Pipeline::leave(Port out, std::span<Packet> packets) {
  books_.out.add(packets.size());
  if (trace_) [[unlikely]]
    for (const Packet packet : packets)
      if (trace_->every_port || packet.meta().traced)
        trace_->record({now_, {}, TraceVerdict::kLeave, out, nullptr, trace_info(packet), packet});
  if (probe_ && probe_->sampling) [[unlikely]]
    probe_->device_left(probe_->now() - packets[0].meta().arrival);
  hand_over(out, packets);
}

void Pipeline::hand_over(Port out, std::span<Packet> packets) {
  if (ports_) {
    std::uint64_t bytes = 0;
    for (const Packet packet : packets) bytes += packet.wire_bytes();
    ports_[out].sent(packets.size(), bytes);
  }
  sink_(out, packets, now_);
}

void Pipeline::discard(Batch& batch, Counter& reason) {
  reason.add(batch.size_);
  books_.dropped.add(batch.size_);
  for (unsigned i = 0; i < batch.size_; i++) {
    Packet packet = batch.packets_[i];
    if (traces_drop(packet)) [[unlikely]]
      trace_->record({now_, {}, TraceVerdict::kDrop, 0, &reason, trace_info(packet), packet});
    rte_pktmbuf_free(packet.mbuf());
  }
}

}  // namespace rocebox
