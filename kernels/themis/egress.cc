// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/egress.h"

#include <algorithm>

namespace rocebox::themis {

Egress::Egress(const switch_model::Build& build, Shared& shared, ControlPlane& control, Counters& count)
    : shared_(shared), control_(control), count_(count), next_hops_(build.next_hops) {}

void Egress::judged(Pass& pass, PacketState& p, const QpEntry& entry, const TaskWord& task, const Decision& decision) {
  if (!decision) return go_on(pass, p, task);
  switch (decision.action) {
    case Action::kBlock:
      return pass.drop(p, count_.of(decision.reason));
    case Action::kStash:
      control_.stashed(pass, entry, p.packet);
      return pass.drop(p, count_.of(decision.reason));
    case Action::kForward:
      count_.of(decision.reason).add();
      if (decision.ends_stash) count_.undetermined_acknowledged.add();
      pass.note(p, reason_name(decision.reason));
      return go_on(pass, p, task);
    default:  // an ACK that ends the stash
      count_.of_stash(decision.reason).add();
      return go_on(pass, p, task);
  }
}

// What was turned back goes its real way as a mirror.
void Egress::go_on(Pass& pass, PacketState& p, const TaskWord& task) {
  if (task.task != Task::kTurned) return;
  p.traffic_class = task.traffic_class;
  pass.mirror(p, task.exit);
  pass.drop(p, count_.drop_turned);
}

void Egress::generate(Pass& pass, PacketState& p, const Decision& decision) {
  const StashedNack& stash = decision.stash;
  TaskWord{Task::kGenerate, decision.avoid, 0, static_cast<Port>(stash.exit)}.store(p, shared_.word);
  p.metadata[shared_.word + 1] = stash.epsn;
  p.metadata[shared_.word + 2] = stash.qpn;
  p.metadata[shared_.word + 3] = stash.aeth;
  pass.mirror(p, static_cast<Port>(stash.exit), nack_bytes(p.packet));
  pass.note(p, "resolves a NACK");
}

void Egress::mirror(Pass& pass, PacketState& p) {
  const TaskWord task = TaskWord::of(p, shared_.word);
  if (task.task != Task::kGenerate) return;  // one that was turned back, or another program's
  auto* ethernet = p.packet.header<roce::Ethernet>(0);
  const std::uint32_t hop = next_hops_.filled ? p.metadata[next_hops_.hop_word] : 0;
  const bool routed = hop != 0 && next_hops_.hops[hop - 1].routed;
  switch_model::Mac own{};
  if (routed) std::copy_n(ethernet->source, own.size(), own.begin());
  const StashedNack nack{p.metadata[shared_.word + 1], p.metadata[shared_.word + 2], p.metadata[shared_.word + 3],
                         task.exit};
  if (!make_nack(p.packet, nack, task.avoid ? shared_.avoidance_mask : std::uint8_t{0}))
    return pass.drop(p, count_.drop_mirror);
  if (!routed) return;
  std::copy(own.begin(), own.end(), ethernet->source);
  std::ranges::copy(next_hops_.port_macs[task.exit], ethernet->destination);
}

void Egress::recirculate(Pass& pass, PacketState& p) {
  TaskWord{}.store(p, shared_.word);
  count_.nack_recirculated.add();
  pass.recirculate(p);
}

}  // namespace rocebox::themis
