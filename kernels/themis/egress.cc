// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/egress.h"

#include <algorithm>

namespace rocebox::themis {
namespace {

// A bridge takes no room for what routers need.
template <class Rows>
const Rows& routed_only(const switch_model::NextHops& next_hops, const Rows& rows) {
  static const Rows none;
  return next_hops.routes ? rows : none;
}

}  // namespace

Egress::Egress(const switch_model::Build& build, Shared& shared, ControlPlane& control, Counters& count)
    : shared_(shared),
      control_(control),
      count_(count),
      next_hops_(build.next_hops),
      hops_(build.layout, "routed_again", {Gress::kEgress, EgressStage::kQp},
            routed_only(build.next_hops, build.next_hops.hops), 1),
      neighbours_(build.layout, "neighbour", {Gress::kEgress, EgressStage::kHighest},
                  routed_only(build.next_hops, build.next_hops.port_macs), 48) {
  if (next_hops_.routes && std::ranges::none_of(next_hops_.hops, &switch_model::NextHop::routed)) {
    build.layout.unused(hops_, "there are no routes");
    build.layout.unused(neighbours_, "there are no routes");
  }
}

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

// `neighbour`: of its way out, where the data were routed; null: addresses are swapped.
void Egress::make(Pass& pass, PacketState& p, const TaskWord& task, const switch_model::Mac* neighbour) {
  auto* ethernet = p.packet.header<roce::Ethernet>(0);
  switch_model::Mac own{};
  if (neighbour) std::copy_n(ethernet->source, own.size(), own.begin());
  const StashedNack nack{p.metadata[shared_.word + 1], p.metadata[shared_.word + 2], p.metadata[shared_.word + 3],
                         task.exit};
  if (!make_nack(p.packet, nack, task.avoid ? shared_.avoidance_mask : std::uint8_t{0}))
    return pass.drop(p, count_.drop_mirror);
  if (!neighbour) return;
  std::copy(own.begin(), own.end(), ethernet->source);
  std::ranges::copy(*neighbour, ethernet->destination);
}

void Egress::recirculate(Pass& pass, PacketState& p) {
  TaskWord{}.store(p, shared_.word);
  count_.nack_recirculated.add();
  pass.recirculate(p);
}

}  // namespace rocebox::themis
