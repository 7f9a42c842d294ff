// SPDX-License-Identifier: BSD-3-Clause
// What the control plane changes behind the packets of an instant.
#include <cassert>

#include "kernels/themis/control_plane.h"

namespace rocebox::themis {

void ControlPlane::on_timer(Pass& pass, std::uint64_t tag) {
  if (tag == kAgeTimer) return age(pass);
  if (tag == kStashTimer) return age_stashes(pass);
  work_armed_ = false;
  carried_out_.clear();
  for (auto* changes : {&ingress_changes_, &egress_changes_}) {
    carried_out_.insert(carried_out_.end(), changes->begin(), changes->end());
    changes->clear();
  }
  for (const Change& change : carried_out_) carry_out(pass, change);
  if (stashes_.empty() || stashes_armed_) return;
  stashes_armed_ = true;
  pass.arm(pass.now() + stash_timeout_, kStashTimer);
}

void ControlPlane::carry_out(Pass& pass, const Change& change) {
  if (change.what == What::kMake) return make(pass, change.number, change.port);
  Connection& c = connections_[change.number];
  if (!c.used || c.outbound != change.half) return;  // ended meanwhile, and the number may be another one's
  switch (change.what) {
    case What::kEnd:
      count_.qps_ended.add();
      return end(pass, change.number, change.sprayed);
    case What::kUndo:
      count_.pairs_undone.add();
      return end(pass, change.number, false);
    case What::kBegin:
      // From the next PSN on: whether this packet reaches the NIC, the queues decide. Of several in one instant none
      // has been recorded: from the last one on.
      if (c.begun && (c.begun_at != pass.now() || !roce::psn_after(roce::psn_add(change.value, 1), c.slot.origin)))
        return;
      c.begun_at = pass.now();
      return begin(change.number, roce::psn_add(change.value, 1), change.value);
    case What::kJump:
      return jump(pass, change.number, change.value);
    case What::kPathMtu:
      if (notes_[c.outbound].path_mtu) return;  // several packets of one instant show it
      notes_[c.outbound].path_mtu = static_cast<std::uint16_t>(change.value);
      return set_entries(change.number);
    default:
      return begin_anew(pass, change.number, change.value, change.sprayed);
  }
}

void ControlPlane::make(Pass& pass, std::uint32_t outbound, Port port) {
  const std::uint32_t inbound = pairing_.partner(outbound);
  if (inbound == roce::Pairing::kNone || notes_[outbound].refused) return;
  if (notes_[outbound].connection || notes_[inbound].connection) return;
  auto& free = free_slots_[info_.pipe_of(port)];
  if (free.empty() || free_connections_.empty()) {
    notes_[outbound].refused = notes_[inbound].refused = true;
    return count_.qp_full.add();
  }
  const std::uint32_t number = free_connections_.back();
  free_connections_.pop_back();
  Connection& c = connections_[number];
  const bool watched = c.stash_watched;  // of who had the number before: it is on the list still
  c = {};
  c.stash_watched = watched;
  c.used = true;
  c.port = port;
  c.pipe = info_.pipe_of(port);
  c.outbound = outbound;
  c.inbound = inbound;
  c.slot = {free.back(), 0};
  if (++generation_ == 0) generation_ = 1;
  c.generation = generation_;
  c.seen = pass.now();
  free.pop_back();
  for (const std::uint32_t half : {outbound, inbound}) {
    notes_[half].connection = number + 1;
    notes_[half].used = true;
    notes_[half].seen = pass.now();
  }
  state_.source.clear(c.pipe, c.slot.number);
  count_.qps_made.add();
  arm_ageing(pass);
  const HalfNotes& notes = notes_[inbound];
  const std::uint32_t highest = pairing_.highest(inbound);
  if (!pairing_.requested(inbound)) {
    if (notes.first_psn_known) return begin(number, notes.first_psn, roce::psn_add(notes.first_psn, -1));
    return set_entries(number);
  }
  // Of packets that came before there was state no bit is set, so that none of their NACKs is blocked. Where the first
  // PSN is not known they lie before the window, and their NACKs pass at once.
  if (notes.first_psn_known && roce::psn_in_window(highest, notes.first_psn, window_))
    return begin(number, notes.first_psn, highest);
  begin(number, roce::psn_add(highest, 1), highest);
}

void ControlPlane::begin(std::uint32_t number, std::uint32_t first_psn, std::uint32_t highest) {
  Connection& c = connections_[number];
  c.slot.origin = first_psn;
  c.begun = true;
  state_.destination.begin(c.pipe, c.slot, highest);
  set_entries(number);
}

void ControlPlane::begin_anew(Pass& pass, std::uint32_t number, std::uint32_t psn, bool sprayed) {
  Connection& c = connections_[number];
  PacketState packet;
  packet.pipe = c.pipe;
  switch_model::Fast registers;
  // Several packets of one instant ask for this; after the first, the others lie in the window.
  if (!state_.destination.data(registers, packet, c.slot, psn, sprayed, 1).begins_anew) return;
  count_.qps_begun_anew.add();
  release_stash(pass, c);
  begin(number, psn, roce::psn_add(psn, -1));
  state_.destination.data(registers, packet, c.slot, psn, sprayed, 1);  // it has left for the NIC
}

void ControlPlane::jump(Pass& pass, std::uint32_t number, std::uint32_t to) {
  Connection& c = connections_[number];
  if (!c.begun || !state_.destination.jumps(c.pipe, c.slot, to)) return;
  count_.windows_jumped.add();
  release_stash(pass, c);
  begin(number, to, state_.destination.highest(c.pipe, c.slot));
}

// The table has room: it is as large as there are connections.
void ControlPlane::set_entries(std::uint32_t number) {
  const Connection& c = connections_[number];
  const bool learnt = pairing_.source(c.outbound) == roce::PairSource::kLearned;
  for (const std::uint32_t half : {c.outbound, c.inbound}) {
    const QpEntry entry{number,  c.generation, c.slot, c.port, c.pipe, path_mtu_of_half(half), half == c.outbound,
                        c.begun, learnt};
    const std::uint32_t row = state_.ingress.insert(QpKey::of(pairing_.key(half)), entry);
    assert(row != kMiss);
    state_.egress.value(row) = {entry};
  }
}

// forget: the pair is over, too, unless it is a configured one.
void ControlPlane::end(Pass& pass, std::uint32_t number, bool forget) {
  Connection& c = connections_[number];
  release_stash(pass, c);
  for (const std::uint32_t half : {c.outbound, c.inbound}) {
    const QpKey key = QpKey::of(pairing_.key(half));
    const std::uint32_t row = state_.ingress.lookup(key);
    assert(row != kMiss);
    state_.egress.value(row) = {};
    state_.ingress.erase(key);
    notes_[half].connection = 0;
  }
  forget = forget && !is_configured(c);
  if (forget)
    for (const std::uint32_t half : {c.outbound, c.inbound}) {
      notes_[half] = {};
      pairing_.forget(half);
    }
  free_slots_[c.pipe].push_back(c.slot.number);
  free_connections_.push_back(number);
  c.used = false;
}

}  // namespace rocebox::themis
