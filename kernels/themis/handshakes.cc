// SPDX-License-Identifier: BSD-3-Clause
// What the control plane makes of the connection manager's messages, which anyone may write: pairs of QPs.
#include "kernels/themis/control_plane.h"
#include "runtime/roce/icrc.h"

namespace rocebox::themis {

// The port of the NIC in this rack; of what it sends to all, too.
Port ControlPlane::management_port(const PacketState& p) const {
  if (p.multicast_group == 0) return local_port(p);
  return state_.is_host[p.ingress_port] ? p.ingress_port : switch_model::kNoPort;
}

// A pair that is alive is not begun anew or taken apart by what anyone may write into a handshake; but its QPs
// must go on responding from then on.
bool ControlPlane::believed(Pass& pass, const Claim& claim) {
  bool believed = true;
  for (const std::uint32_t direction : pairing_.directions_of(claim.told)) {
    if (direction == flows::Pairing::kNone || notes_[direction].connection == 0) continue;
    const std::uint32_t number = notes_[direction].connection - 1;
    Connection& c = connections_[number];
    if (c.source < PairSource::kCm || !is_alive(number, pass.now())) continue;
    believed = false;
    if (c.source != PairSource::kCm) continue;
    c.claim = claim;
    ask(pass, ingress_changes_, {What::kContest, 0, false, number, 0});
  }
  if (!believed) count_.cm_refused.add();
  return believed;
}

// Room for the directions of what was told; not in place of one of them.
bool ControlPlane::make_room(const Claim& claim, Nanos now) {
  std::uint32_t missing = 0;
  for (const std::uint32_t direction : pairing_.directions_of(claim.told))
    if (direction == flows::Pairing::kNone)
      missing++;
    else
      heard(direction, claim.port, now);
  if (make_room(missing, now)) return true;
  count_.pairing_full.add();
  return false;
}

void ControlPlane::management(Pass& pass, const PacketState& p) {
  if (roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return;
  const Port port = management_port(p);
  if (port == switch_model::kNoPort) return;
  const Claim claim{pairing_.would_pair(p.packet, port), port, state_.is_host[p.ingress_port]};
  if (claim.told.any && (!believed(pass, claim) || !make_room(claim, pass.now()))) return;
  const flows::Pairing::ConnectionEvent event = pairing_.observe_mad(p.packet, port);
  if (!event.begins && !event.ends) return;
  for (unsigned i = 0; i < 2; i++) {
    if (event.directions[i] == flows::Pairing::kNone) continue;
    DirectionNotes& notes = notes_[event.directions[i]];
    const std::uint32_t connection = notes.connection;
    // What another port says of a connection is another's.
    if (event.ends && connection && connections_[connection - 1].placed && connections_[connection - 1].port != port)
      return count_.cm_refused.add();
    heard(event.directions[i], port, pass.now());
    notes.refused = false;
    if (connection) ask(pass, ingress_changes_, {What::kEnd, 0, event.ends, connection - 1, 0});
    notes.first_psn_known = event.begins;
    notes.first_psn = event.psns[i];
    if (event.begins || pairing_.source(event.directions[i]) == PairSource::kConfig)
      pairing_.restart(event.directions[i]);
  }
  arm_ageing(pass);
  if (event.begins) ask(pass, ingress_changes_, {What::kMake, port, false, event.directions[claim.outbound()], 0});
}

void ControlPlane::contest(std::uint32_t number, Nanos now) {
  Connection& c = connections_[number];
  if (c.contested) return;
  c.contested = true;
  c.contested_at = c.responded_at = now;
  pairing_.contest(c.outbound);
  pairing_.watch_silence(c.outbound);
  set_entries(number);
}

// QPs that respond keep the pair that a handshake contests; those that are silent for `qp_timeout` lose it to the
// handshake's. Ageing would not end it: requests keep a connection, whoever sends them.
void ControlPlane::settle(Pass& pass, std::uint32_t number) {
  Connection& c = connections_[number];
  const bool silent = pairing_.is_silent(c.outbound);
  pairing_.watch_silence(c.outbound);
  if (!silent) {
    c.responded_at = pass.now();
    if (c.contested_at + qp_timeout_ > pass.now()) return;
    c.contested = false;
    pairing_.settle(c.outbound);
    return set_entries(number);
  }
  if (c.responded_at + qp_timeout_ > pass.now()) return;
  const Claim claim = c.claim;
  count_.pairs_undone.add();
  end(number, true);
  take_up(pass, claim);
}

// The handshake that was not believed was right. Where its requests begin is not known any more.
void ControlPlane::take_up(Pass& pass, const Claim& claim) {
  for (const std::uint32_t direction : pairing_.directions_of(claim.told))
    if (direction != flows::Pairing::kNone && notes_[direction].connection) return;  // another's by now
  if (!make_room(claim, pass.now())) return;
  const flows::Pairing::ConnectionEvent event = pairing_.pair(claim.told);
  if (!event.begins) return;
  for (const std::uint32_t direction : event.directions) {
    heard(direction, claim.port, pass.now());
    notes_[direction].refused = notes_[direction].first_psn_known = false;
  }
  ask(pass, ingress_changes_, {What::kMake, claim.port, false, event.directions[claim.outbound()], 0});
}

}  // namespace rocebox::themis
