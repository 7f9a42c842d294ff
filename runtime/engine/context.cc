// SPDX-License-Identifier: BSD-3-Clause
// What a kernel asks of its pipeline.
#include "runtime/engine/pipeline.h"
#include "runtime/roce/parse.h"

namespace rocebox {

PacketPtr Context::allocate(std::uint32_t bytes) {
  PacketPtr packet = pipeline_.pool_.allocate(bytes);
  if (packet) {
    packet->meta().arrival = now_;
    packet->meta().identity = ++pipeline_.identities_->last;
    packet->meta().made = 1;
    pipeline_.books_.made.add();
  }
  return packet;
}

PacketPtr Context::copy(Packet packet) {
  PacketPtr made = pipeline_.pool_.copy(packet);
  if (made) {
    made->meta().entered = 0;  // of the original
    pipeline_.books_.made.add();
  }
  return made;
}

PacketPtr Context::share(Packet packet) {
  PacketPtr made = pipeline_.pool_.share(packet);
  if (made) {
    made->meta().entered = 0;
    pipeline_.books_.made.add();
  }
  return made;
}

bool Context::own(Packet& packet) { return pipeline_.pool_.own(packet); }

void Context::emit(PacketPtr packet, Port out, unsigned behind) {
  auto& emitted = pipeline_.emitted_[stage_];
  if (!packet) broken("a kernel emitted no packet", pipeline_.stages_[stage_].name, out);
  if (!batch_) {
    emitted.push_back({0, out, std::move(packet)});
    return;
  }
  if (behind >= batch_->size_ || (!emitted.empty() && emitted.back().behind > behind))
    broken("a kernel emitted behind a packet that its batch does not have, or not in order",
           pipeline_.stages_[stage_].name, behind);
  batch_->mixed_ = true;
  emitted.push_back({behind, out, std::move(packet)});
}

bool Context::emit_at(Packet packet, Port out, Nanos at) { return pipeline_.leave_ahead(stage_, packet, out, at); }

// A packet of which it is known when it leaves is handed over at once where that changes nothing else.
bool Pipeline::leave_ahead(unsigned stage, Packet packet, Port out, Nanos at) {
  if (!is_one_kernel_ || !ahead_sink_.take || trace_ || probe_ || !emitted_[stage].empty() || packet.meta().shared)
    return false;
  if (packet.meta().status == ParseStatus::kUnparsed) roce::parse(packet);
  const std::uint32_t bytes = packet.wire_bytes();
  if (!ahead_sink_.take(ahead_sink_.owner, out, packet, now_, at)) return false;
  Ahead& ahead = ahead_[out];
  if (ahead.bytes) count_ahead(out);
  ahead = {at, bytes};
  return true;
}

void Pipeline::count_ahead(Port out) {
  books_.out.add();
  if (ports_) ports_[out].sent(1, ahead_[out].bytes);
}

void Pipeline::settle(Nanos before) {
  for (std::size_t out = 0; out < ahead_.size(); out++) {
    if (ahead_[out].bytes == 0 || ahead_[out].at >= before) continue;
    count_ahead(static_cast<Port>(out));
    ahead_[out].bytes = 0;
  }
}

void Context::drop(PacketPtr packet, Counter& reason) {
  if (!packet) return;
  reason.add();
  pipeline_.books_.dropped.add();
  if (pipeline_.trace_ && packet->meta().made) [[unlikely]]
    pipeline_.trace_made(*packet);
  if (pipeline_.traces_drop(*packet)) [[unlikely]]
    pipeline_.trace_->record(
        {now_, pipeline_.stages_[stage_].name, TraceVerdict::kDrop, 0, &reason, trace_info(*packet), *packet});
}

void Context::note(Packet packet, std::string_view what) {
  if (!pipeline_.trace_ || !packet.meta().traced) [[likely]]
    return;
  pipeline_.trace_->record(
      {now_, pipeline_.stages_[stage_].name, TraceVerdict::kNote, 0, nullptr, trace_info(packet), packet, what});
}

void Context::arm(Timer& timer, Nanos at, std::uint8_t part) {
  timer.at_ = at;
  timer.stage_ = static_cast<std::uint8_t>(stage_);
  timer.part_ = part;
  const std::uint64_t order = std::uint64_t{stage_} << Pipeline::kStageShift |
                              std::uint64_t{part} << Pipeline::kPartShift | pipeline_.timer_sequence_++;
  pipeline_.timers_.arm(timer, at, order);
}

void Context::cancel(Timer& timer) { pipeline_.timers_.cancel(timer); }

void Context::reserve_timers(std::size_t timers) {
  pipeline_.timers_reserved_ += timers;
  pipeline_.timers_.reserve(pipeline_.timers_reserved_);
}

}  // namespace rocebox
