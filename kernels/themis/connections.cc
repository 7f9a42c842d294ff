// SPDX-License-Identifier: BSD-3-Clause
// What the control plane changes behind the packets of an instant.
#include <cassert>

#include "kernels/themis/control_plane.h"

namespace rocebox::themis {

void ControlPlane::on_timer(Pass& pass, Timer& timer) {
  if (&timer == &age_timer_) return age(pass);
  if (&timer == &stash_timer_) return age_stashes(pass);
  carried_out_.clear();
  for (auto* changes : {&ingress_changes_, &egress_changes_}) {
    carried_out_.insert(carried_out_.end(), changes->begin(), changes->end());
    changes->clear();
  }
  for (const Change& change : carried_out_) carry_out(pass, change);
  send_released(pass);
  if (!stashes_.empty() && !stash_timer_.armed()) pass.arm(stash_timer_, pass.now() + stash_timeout_);
}

void ControlPlane::carry_out(Pass& pass, const Change& change) {
  if (change.what == What::kMake) return make(pass, change.number, change.port);
  Connection& c = connections_[change.number];
  if (!c.used || c.outbound != change.direction) return;  // ended meanwhile, and the number may be another one's
  switch (change.what) {
    case What::kEnd:
      if (c.placed) count_.qps_ended.add();
      return end(change.number, change.sprayed);
    case What::kUndo:
      count_.pairs_undone.add();
      return end(change.number, false);
    case What::kContest:
      return contest(change.number, pass.now());
    case What::kLeft:
      return record(change);
    case What::kBegin:
      // From the next PSN on: whether this packet reaches the NIC, the queues decide. Of several in one instant none
      // has been recorded: from the last one on.
      if (c.begun && (c.begun_at != pass.now() || !roce::psn_after(roce::psn_add(change.value, 1), c.slot.origin)))
        return;
      c.begun_at = pass.now();
      return begin(change.number, roce::psn_add(change.value, 1), change.value);
    case What::kJump:
      return jump(change.number, change.value);
    case What::kPathMtu:
      if (notes_[c.outbound].path_mtu) return;  // several packets of one instant show it
      notes_[c.outbound].path_mtu = static_cast<std::uint16_t>(change.value);
      return set_entries(change.number);
    default:
      return begin_anew(change.number, change.value, change.sprayed);
  }
}

void ControlPlane::make(Pass& pass, std::uint32_t outbound, Port port) {
  const std::uint32_t inbound = pairing_.partner(outbound);
  if (inbound == flows::Pairing::kNone || !pairing_.confirmed(outbound) || notes_[outbound].refused) return;
  if (notes_[outbound].connection != notes_[inbound].connection) return;
  const bool told = notes_[outbound].connection != 0;
  if (told && connections_[notes_[outbound].connection - 1].placed) return;
  if (!make_room(pairing_.source(outbound), info_.pipe_of(port), told)) {
    notes_[outbound].refused = notes_[inbound].refused = true;
    notes_[inbound].first_psn_known = notes_[inbound].first_psn_known && !told;  // it goes on unseen
    return count_.qp_full.add();
  }
  const std::uint32_t made = told ? notes_[outbound].connection - 1 : take_number(outbound, inbound);
  place(made, port, pass.now());
  arm_ageing(pass);
  begin_placed(made, told);
}

// The state that there is goes to pairs of the stronger sources first.
bool ControlPlane::make_room(PairSource source, unsigned pipe, bool numbered) {
  if (free_slots_[pipe].empty() && !displace(source, pipe)) return false;
  return numbered || !free_connections_.empty() || displace(source, kAnyPipe);
}

// A connection of a weaker source loses its state.
bool ControlPlane::displace(PairSource source, unsigned pipe) {
  for (std::size_t weak = static_cast<std::size_t>(PairSource::kLearned); weak < static_cast<std::size_t>(source);
       weak++) {
    std::uint32_t there = 0;
    for (unsigned each = 0; each < info_.pipes; each++)
      if (pipe == kAnyPipe || pipe == each) there += placed_[each][weak];
    for (std::size_t looked = 0; there != 0 && looked < connections_.size(); looked++) {
      const std::uint32_t number = displace_next_;
      displace_next_ = number + 1 == connections_.size() ? 0 : number + 1;
      const Connection& c = connections_[number];
      if (!c.used || !c.placed || static_cast<std::size_t>(c.source) != weak || (pipe != kAnyPipe && c.pipe != pipe))
        continue;
      count_.qps_displaced.add();
      end(number, true);
      return true;
    }
  }
  return false;
}

// The number of a new connection, without a slot yet. There is one.
std::uint32_t ControlPlane::take_number(std::uint32_t outbound, std::uint32_t inbound) {
  const std::uint32_t number = free_connections_.back();
  free_connections_.pop_back();
  Connection& c = connections_[number];
  const bool watched = c.stash_watched;  // of the connection that had the number before: it is on the list still
  c = {};
  c.stash_watched = watched;
  c.used = true;
  c.source = pairing_.source(outbound);
  c.port = switch_model::kNoPort;
  c.outbound = outbound;
  c.inbound = inbound;
  if (++generation_ == 0) generation_ = 1;
  c.generation = generation_;
  for (const std::uint32_t direction : {outbound, inbound}) {
    unlist(direction);
    notes_[direction].connection = number + 1;
  }
  return number;
}

void ControlPlane::place(std::uint32_t number, Port port, Nanos now) {
  Connection& c = connections_[number];
  c.placed = true;
  c.port = port;
  c.pipe = info_.pipe_of(port);
  c.slot = {free_slots_[c.pipe].back(), 0};
  free_slots_[c.pipe].pop_back();
  c.seen = now;
  placed_[c.pipe][static_cast<std::size_t>(c.source)]++;
  for (const std::uint32_t direction : {c.outbound, c.inbound}) {
    notes_[direction].used = true;
    notes_[direction].seen = now;
  }
  state_.source.clear(c.pipe, c.slot.number);
  count_.qps_made.add();
}

// told: of all its packets those that have left are recorded behind this, and those that wait when they leave.
void ControlPlane::begin_placed(std::uint32_t number, bool told) {
  const std::uint32_t inbound = connections_[number].inbound;
  const DirectionNotes& notes = notes_[inbound];
  const std::uint32_t highest = pairing_.highest(inbound);
  if (!pairing_.requested(inbound)) {
    if (notes.first_psn_known) return begin(number, notes.first_psn, roce::psn_add(notes.first_psn, -1));
    return set_entries(number);
  }
  // Of packets that came before there was state no bit is set, so that none of their NACKs is blocked. Where the first
  // PSN is not known they lie before the window, and their NACKs pass at once.
  if (notes.first_psn_known && roce::psn_in_window(highest, notes.first_psn, window_))
    return begin(number, notes.first_psn, told ? roce::psn_add(notes.first_psn, -1) : highest);
  begin(number, roce::psn_add(highest, 1), highest);
}

// A request that has left for the NIC before its connection had a slot.
void ControlPlane::record(const Change& change) {
  const Connection& c = connections_[change.number];
  if (!c.begun || c.port != change.port) return;
  PacketState packet;
  packet.pipe = c.pipe;
  switch_model::Fast registers;
  state_.destination.data(registers, packet, c.slot, change.value, change.sprayed, change.width);
}

void ControlPlane::begin(std::uint32_t number, std::uint32_t first_psn, std::uint32_t highest) {
  Connection& c = connections_[number];
  c.slot.origin = first_psn;
  c.begun = true;
  state_.destination.begin(c.pipe, c.slot, highest);
  set_entries(number);
}

void ControlPlane::begin_anew(std::uint32_t number, std::uint32_t psn, bool sprayed) {
  Connection& c = connections_[number];
  PacketState packet;
  packet.pipe = c.pipe;
  switch_model::Fast registers;
  // Several packets of one instant ask for this; after the first, the others lie in the window.
  if (!state_.destination.data(registers, packet, c.slot, psn, sprayed, 1).begins_anew) return;
  count_.qps_begun_anew.add();
  release_stash(c);
  begin(number, psn, roce::psn_add(psn, -1));
  state_.destination.data(registers, packet, c.slot, psn, sprayed, 1);  // it has left for the NIC
}

void ControlPlane::jump(std::uint32_t number, std::uint32_t to) {
  Connection& c = connections_[number];
  if (!c.begun || !state_.destination.jumps(c.pipe, c.slot, to)) return;
  count_.windows_jumped.add();
  release_stash(c);
  begin(number, to, state_.destination.highest(c.pipe, c.slot));
}

// The table has room: it is as large as there are connections.
void ControlPlane::set_entries(std::uint32_t number) {
  const Connection& c = connections_[number];
  const bool watched = !c.placed || c.contested || c.source == PairSource::kLearned;
  for (const std::uint32_t direction : {c.outbound, c.inbound}) {
    const QpEntry entry{
        number,  c.generation, c.slot, c.port, c.pipe, path_mtu_of_direction(direction), direction == c.outbound,
        c.begun, watched};
    const std::uint32_t row = state_.ingress.insert(QpKey::of(pairing_.key(direction)), entry);
    assert(row != kMiss);
    state_.egress.value(row) = {entry};
  }
}

// forget_pair: the pair is over, too, unless it is a configured one.
void ControlPlane::end(std::uint32_t number, bool forget_pair) {
  Connection& c = connections_[number];
  release_stash(c);
  for (const std::uint32_t direction : {c.outbound, c.inbound}) {
    const QpKey key = QpKey::of(pairing_.key(direction));
    const std::uint32_t row = state_.ingress.lookup(key);
    assert(row != kMiss);
    state_.egress.value(row) = {};
    state_.ingress.erase(key);
    notes_[direction].connection = 0;
    if (forget_pair && !is_configured(c)) continue;
    heard(direction, c.placed ? c.port : Port{0}, notes_[direction].seen);
  }
  if (forget_pair && !is_configured(c)) {
    forget(c.inbound);
    forget(c.outbound);
  }
  if (c.placed) {
    free_slots_[c.pipe].push_back(c.slot.number);
    placed_[c.pipe][static_cast<std::size_t>(c.source)]--;
  }
  free_connections_.push_back(number);
  c.used = false;
}

}  // namespace rocebox::themis
