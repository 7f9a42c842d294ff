// SPDX-License-Identifier: BSD-3-Clause
// What time does: connections that are silent are forgotten, and a stash that has waited for too long is sent.
#include <algorithm>

#include "kernels/themis/control_plane.h"
#include "kernels/themis/nack_packet.h"
#include "runtime/kernel/report.h"
#include "runtime/roce/address.h"

namespace rocebox::themis {
namespace {

// Ageing looks at all connections: so often in the life of a silent one.
constexpr Nanos kLooksPerTimeout = 4;

}  // namespace

void ControlPlane::arm_ageing(Pass& pass) {
  if (!age_timer_.armed()) pass.arm(age_timer_, pass.now() + qp_timeout_ / kLooksPerTimeout);
}

void ControlPlane::age(Pass& pass) {
  bool more = false;
  for (std::uint32_t number = 0; number < connections_.size(); number++) {
    Connection& c = connections_[number];
    if (!c.used || !c.placed) continue;
    for (unsigned pipe = 0; pipe < info_.pipes; pipe++)
      if (state_.hits.operate(pipe, number, [](bool& hit) { return std::exchange(hit, false); })) c.seen = pass.now();
    const bool stashed = c.begun && state_.destination.has_stash(c.pipe, c.slot.number);
    if (c.seen + qp_timeout_ > pass.now() || (stashed && c.stash_watched)) {
      more = true;
      if (c.contested) settle(pass, number);
      continue;
    }
    count_.qps_aged.add();
    // Whoever is configured may begin anew at any PSN.
    if (is_configured(c))
      for (const std::uint32_t direction : {c.outbound, c.inbound}) {
        pairing_.restart(direction);
        notes_[direction].first_psn_known = false;
      }
    end(number, true);
  }
  for (std::uint32_t direction = 0; direction < notes_.size(); direction++) {
    DirectionNotes& notes = notes_[direction];
    if (notes.connection && !connections_[notes.connection - 1].placed) notes.refused = false;
    if (!notes.used || notes.connection || pairing_.source(direction) == PairSource::kConfig) continue;
    if (notes.seen + qp_timeout_ > pass.now()) {
      notes.refused = false;  // there may be room meanwhile
      more = true;
      continue;
    }
    forget(direction);
  }
  send_released(pass);
  if (more) arm_ageing(pass);
}

// Whether a packet of the connection has come in the last quarter of `qp_timeout`, or since ageing looked.
bool ControlPlane::is_alive(std::uint32_t number, Nanos now) {
  const Connection& c = connections_[number];
  if (!c.placed) return false;
  bool alive = c.seen + qp_timeout_ / kLooksPerTimeout > now;
  for (unsigned pipe = 0; pipe < info_.pipes; pipe++)
    alive = state_.hits.operate(pipe, number, [](bool& hit) { return hit; }) || alive;
  return alive;
}

void ControlPlane::age_stashes(Pass& pass) {
  if (stash_timeout_ == 0) {  // from now on none ages
    for (const std::uint32_t number : stashes_) connections_[number].stash_watched = false;
    return stashes_.clear();
  }
  const std::uint32_t since = ticks(pass.now() - stash_timeout_);
  std::size_t sent = 0;
  std::erase_if(stashes_, [&](std::uint32_t number) {
    Connection& c = connections_[number];
    const bool waits = c.used && c.begun && state_.destination.has_stash(c.pipe, c.slot.number);
    if (waits && sent == switch_model::kGeneratedMax) return false;
    if (waits) {
      const Decision decision = state_.destination.age(c.pipe, c.slot, since);
      if (!decision) return false;
      sent++;
      const bool made = send(pass, c.nack_headers, decision.stash);
      (made ? count_.undetermined_aged : count_.stash_lost).add();
    }
    c.stash_watched = false;
    return true;
  });
  if (stashes_.empty()) return;
  const bool more_now = sent == switch_model::kGeneratedMax;
  pass.arm(stash_timer_, pass.now() + (more_now ? 0 : std::max<Nanos>(stash_timeout_ / kLooksPerTimeout, 1)));
}

// A connection loses its state: what its stash would have been is not known any more, so it passes.
void ControlPlane::release_stash(Connection& c) {
  if (!c.begun) return;
  const Decision decision = state_.destination.take_stash(c.pipe, c.slot.number);
  if (!decision) return;
  if (released_.size() == released_.capacity()) return count_.stash_lost.add();
  released_.push_back({c.nack_headers, decision.stash});
}

// As many as one call can send; the others in the same instant.
void ControlPlane::send_released(Pass& pass) {
  for (std::size_t sent = 0; sent < switch_model::kGeneratedMax && has_released(); sent++) {
    const Released& next = released_[released_sent_++];
    const bool made = send(pass, next.headers, next.nack);
    (made ? count_.undetermined_released : count_.stash_lost).add();
  }
  if (has_released()) return arm_work(pass);
  released_.clear();
  released_sent_ = 0;
}

bool ControlPlane::send(Pass& pass, const NackHeaders& headers, const StashedNack& nack) {
  roce::PacketSpec spec;
  spec.underlay = headers.underlay;
  spec.underlay.ttl = 64;
  spec.mig_req = headers.mig_req;
  spec.pkey = headers.pkey;
  set_nack(spec, nack);
  PacketPtr packet = pass.allocate(roce::built_bytes(spec));
  if (!packet) return false;
  roce::build(*packet, spec);
  return pass.generate(std::move(packet), static_cast<Port>(nack.exit));
}

void ControlPlane::report(Report& report) const {
  report_connections(report);
  report_unpaired(report);
  report.object("pairing", [&](Report& object) {
    const flows::Pairing::Counts& counts = pairing_.counts();
    const auto count = [&object](std::string_view name, std::uint64_t value) {
      object.count(name, static_cast<std::int64_t>(value));
    };
    count("learned", counts.learned);
    count("confirmed", counts.confirmed);
    count("undone", counts.undone);
    count("ambiguous", counts.ambiguous);
    count("displaced", counts.displaced);
    count("disbelieved", counts.disbelieved);
  });
}

// What Themis leaves alone, and why.
void ControlPlane::report_unpaired(Report& report) const {
  std::vector<std::uint32_t> alone;
  for (std::uint32_t direction = 0; direction < notes_.size(); direction++)
    if (notes_[direction].used &&
        (notes_[direction].connection == 0 || !connections_[notes_[direction].connection - 1].placed))
      alone.push_back(direction);
  report.table("unpaired", alone.size(), [&](Report& row, std::size_t i) {
    const std::uint32_t direction = alone[i];
    const flows::DirectionKey& key = pairing_.key(direction);
    row.text("source", roce::address_text(key.addresses.source));
    row.text("destination", roce::address_text(key.addresses.destination));
    row.count("destination_qpn", key.destination_qp);
    row.text("because", notes_[direction].refused                              ? "no state is free"
                        : pairing_.partner(direction) == flows::Pairing::kNone ? "its other direction is not known"
                        : pairing_.confirmed(direction) ? "no packet has come since it was paired or has ended"
                                                        : "its pair is a guess yet");
  });
}

void ControlPlane::report_connections(Report& report) const {
  std::vector<std::uint32_t> used;
  for (std::uint32_t number = 0; number < connections_.size(); number++)
    if (connections_[number].used && connections_[number].placed) used.push_back(number);
  report.table("connections", used.size(), [&](Report& row, std::size_t i) {
    const Connection& c = connections_[used[i]];
    constexpr std::string_view kSources[] = {"none", "learnt", "cm", "configuration"};
    row.text("port", info_.ports[c.port]);
    row.count("local_qpn", pairing_.key(c.inbound).destination_qp);
    row.count("remote_qpn", pairing_.key(c.outbound).destination_qp);
    row.text("paired_by", kSources[static_cast<std::size_t>(pairing_.source(c.outbound))]);
  });
}

}  // namespace rocebox::themis
