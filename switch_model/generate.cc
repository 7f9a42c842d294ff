// SPDX-License-Identifier: BSD-3-Clause
// Datapath: packets of the packet generator, which enter ingress as others do.
#include "switch_model/datapath.h"

namespace rocebox::switch_model {

void Datapath::start(Context& context) {
  if (!generator_.idle()) context.arm(generator_timer_, 0);
}

// In virtual time each packet is made at its very time. A live run comes late: then it makes one batch, and goes on
// when the ports have been served.
void Datapath::generate(Context& context) {
  const Nanos now = context.now();
  if (!generator_.begun()) generator_.begin(now);
  const bool late = generator_.next() < now;
  Leaving leaving{context, nullptr};
  for (unsigned batch = 0; batch < (late ? 1 : kGeneratedBatchesMax) && generator_.next() <= now; batch++) {
    const unsigned size = generator_.make(context, ingress_);
    for (unsigned i = 0; i < size; i++) {
      PacketState& p = ingress_[i];
      p.pipe = pipe_of_[p.ingress_port];
      if (!traffic_.idle()) p.traffic_class = traffic_.class_of(p.packet);
    }
    run(context, Gress::kIngress, {ingress_.data(), size});
    for (unsigned i = 0; i < size; i++) manage(leaving, ingress_[i], {0, true});
    egress(leaving);
  }
  finish(leaving);
  const Nanos next = generator_.next();
  if (next != kNever) context.arm(generator_timer_, late && next <= now ? now + 1 : next);
}

}  // namespace rocebox::switch_model
