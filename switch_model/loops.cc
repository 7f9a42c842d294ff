// SPDX-License-Identifier: BSD-3-Clause
// Packets that pass a control again. They wait for a timer behind all packets of the instant: were they run at once,
// the order in which registers are touched would depend on how the input was cut into batches.
#include <algorithm>
#include <cstring>

#include "runtime/roce/parse.h"
#include "switch_model/datapath.h"

namespace rocebox::switch_model {

void Datapath::mirror(Context& context, PacketState& p) {
  const std::uint32_t bytes = p.mirror_bytes;
  PacketState made = p;
  p.mirror_port = kNoPort;
  if (p.passes == kPassesMax || waiting_.full() || made.mirror_port >= pipe_of_.size()) return count_.copy_failed.add();
  PacketPtr copy;
  if (bytes >= p.packet.size()) {
    copy = context.copy(p.packet);
  } else if ((copy = context.allocate(bytes))) {
    std::memcpy(copy->data(), p.packet.data(), bytes);
    copy->meta() = p.packet.meta();
    copy->meta().wire_bytes = bytes;
    copy->meta().entered = 0;
    copy->meta().shared = copy->meta().watched = 0;
    roce::parse(*copy);
  }
  if (!copy) return count_.copy_failed.add();
  count_.mirrored.add();
  made.packet = copy.release();
  made.egress_port = made.mirror_port;
  made.mirror_port = kNoPort;
  made.instance = Instance::kMirror;
  wait(mirrors_, made, context.now());
}

void Datapath::recirculate(Leaving& leaving, PacketState& p, Cause cause) {
  if (p.passes == kPassesMax) return end(leaving, p, cause, count_.drop_passes);
  if (waiting_.full()) return end(leaving, p, cause, count_.drop_loop_full);
  if (!leaving.context.own(p.packet)) return end(leaving, p, cause, count_.drop_no_copy);
  count_.recirculated.add();
  PacketState again;
  again.packet = cause.owned ? p.packet : leaving.batch->take(cause.after).release();
  again.metadata = p.metadata;
  again.ingress_port = p.ingress_port;
  again.pipe = p.pipe;
  again.traffic_class = p.traffic_class;
  again.passes = p.passes;
  again.instance = Instance::kRecirculated;
  wait(recirculated_, again, leaving.context.now() + recirculation_delay_);
}

void Datapath::wait(StateQueue& queue, PacketState& p, Nanos until) {
  p.passes++;
  p.drop_reason = nullptr;
  p.recirculate = false;
  waiting_.push(queue, p, until);
}

bool Datapath::recirculated_due(Nanos now) const {
  return !recirculated_.empty() && waiting_.front(recirculated_).entered <= now;
}

// At the end of each call.
void Datapath::arm_loops(Context& context) {
  if (!mirrors_.empty() || !due_ports_.empty()) context.arm_by(instant_timer_, context.now());
  if (!recirculated_.empty()) context.arm_by(recirculation_timer_, waiting_.front(recirculated_).entered);
}

// What was put off to the end of the instant; programs' timers come behind it.
void Datapath::run_instant(Context& context) {
  std::sort(due_ports_.begin(), due_ports_.end());
  for (const Port port : due_ports_) serve(context, port);
  due_ports_.clear();
  Leaving leaving{context, nullptr};
  for (std::uint32_t left = mirrors_.size; left > 0; left--) {
    PacketState p = waiting_.pop(mirrors_).state;
    put(leaving, p, {0, true});
  }
  finish(leaving);
}

void Datapath::release_recirculated(Context& context) {
  Leaving leaving{context, nullptr};
  for (std::uint32_t left = recirculated_.size; left > 0 && recirculated_due(context.now());) {
    unsigned size = 0;
    for (; size < kBatchMax && left > 0 && recirculated_due(context.now()); size++, left--)
      ingress_[size] = waiting_.pop(recirculated_).state;
    run(context, Gress::kIngress, {ingress_.data(), size});
    for (unsigned i = 0; i < size; i++) manage(leaving, ingress_[i], {0, true});
    egress(leaving);
  }
  finish(leaving);
}

}  // namespace rocebox::switch_model
