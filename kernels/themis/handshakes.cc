// SPDX-License-Identifier: BSD-3-Clause
// What the control plane makes of the connection manager's messages, which anyone may write: who has a pair of QPs.
#include "kernels/themis/control_plane.h"
#include "runtime/roce/icrc.h"

namespace rocebox::themis {

// The port of the NIC in this rack; of what it sends to all, too.
Port ControlPlane::management_port(const PacketState& p) const {
  if (p.multicast_group == 0) return local_port(p);
  return state_.is_host[p.ingress_port] ? p.ingress_port : switch_model::kNoPort;
}

// A pair that is alive is not begun anew or taken apart by what anyone may write into a handshake; but it must go on
// answering from then on.
bool ControlPlane::believed(Pass& pass, const Claim& claim) {
  bool believed = true;
  for (const std::uint32_t half : pairing_.halves_of(claim.told)) {
    if (half == flows::Pairing::kNone || notes_[half].connection == 0) continue;
    const std::uint32_t number = notes_[half].connection - 1;
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

// Room for the halves of what was told; not in place of one of them.
bool ControlPlane::make_room(const Claim& claim, Nanos now) {
  std::uint32_t missing = 0;
  for (const std::uint32_t half : pairing_.halves_of(claim.told))
    if (half == flows::Pairing::kNone)
      missing++;
    else
      heard(half, claim.port, now);
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
  const flows::Pairing::News news = pairing_.observe_mad(p.packet, port);
  if (!news.begins && !news.ends) return;
  for (unsigned i = 0; i < 2; i++) {
    if (news.halves[i] == flows::Pairing::kNone) continue;
    HalfNotes& notes = notes_[news.halves[i]];
    const std::uint32_t connection = notes.connection;
    // What another port says of a connection is another's.
    if (news.ends && connection && connections_[connection - 1].placed && connections_[connection - 1].port != port)
      return count_.cm_refused.add();
    heard(news.halves[i], port, pass.now());
    notes.refused = false;
    if (connection) ask(pass, ingress_changes_, {What::kEnd, 0, news.ends, connection - 1, 0});
    notes.first_psn_known = news.begins;
    notes.first_psn = news.psns[i];
    if (news.begins || pairing_.source(news.halves[i]) == PairSource::kConfig) pairing_.restart(news.halves[i]);
  }
  arm_ageing(pass);
  if (news.begins) ask(pass, ingress_changes_, {What::kMake, port, false, news.halves[claim.outbound()], 0});
}

void ControlPlane::contest(std::uint32_t number, Nanos now) {
  Connection& c = connections_[number];
  if (c.contested) return;
  c.contested = true;
  c.contested_at = c.answered_at = now;
  pairing_.contest(c.outbound);
  pairing_.silent(c.outbound);  // from now on
  set_entries(number);
}

// Who answers keeps the pair that a handshake contests, and who is silent for `qp_timeout` loses it to the handshake's:
// its own requests keep a connection from ageing whoever they come from.
void ControlPlane::settle(Pass& pass, std::uint32_t number) {
  Connection& c = connections_[number];
  if (!pairing_.silent(c.outbound)) {
    c.answered_at = pass.now();
    if (c.contested_at + qp_timeout_ > pass.now()) return;
    c.contested = false;
    pairing_.settle(c.outbound);
    return set_entries(number);
  }
  if (c.answered_at + qp_timeout_ > pass.now()) return;
  const Claim claim = c.claim;
  count_.pairs_undone.add();
  end(number, true);
  take_up(pass, claim);
}

// The handshake that was not believed was right. Where its requests begin is not known any more.
void ControlPlane::take_up(Pass& pass, const Claim& claim) {
  for (const std::uint32_t half : pairing_.halves_of(claim.told))
    if (half != flows::Pairing::kNone && notes_[half].connection) return;  // another's by now
  if (!make_room(claim, pass.now())) return;
  const flows::Pairing::News news = pairing_.pair(claim.told);
  if (!news.begins) return;
  for (const std::uint32_t half : news.halves) {
    heard(half, claim.port, pass.now());
    notes_[half].refused = notes_[half].first_psn_known = false;
  }
  ask(pass, ingress_changes_, {What::kMake, claim.port, false, news.halves[claim.outbound()], 0});
}

}  // namespace rocebox::themis
