// SPDX-License-Identifier: BSD-3-Clause
// What Pairing overhears of the connection manager.
#include <algorithm>

#include "runtime/flows/pairing.h"
#include "runtime/roce/mad.h"

namespace rocebox::flows {
namespace {

roce::Addresses reversed(const roce::Addresses& addresses) { return {addresses.destination, addresses.source}; }

}  // namespace

Pairing::Handshake* Pairing::handshake_set(const HandshakeKey& key) {
  const std::size_t sets = handshakes_.size() / kWays;
  return &handshakes_[hash_bytes<sizeof(key)>(&key) % sets * kWays];
}

Pairing::Handshake* Pairing::find_handshake(const HandshakeKey& key) {
  Handshake* set = handshake_set(key);
  for (Handshake* entry = set; entry != set + kWays; entry++)
    if (entry->age != 0 && entry->key == key) return entry;
  return nullptr;
}

// In a full set the place that has most gives the oldest of its own, the newcomer's place counted with it.
Pairing::Handshake* Pairing::make_handshake(const HandshakeKey& key) {
  Handshake* set = handshake_set(key);
  Handshake* victim = nullptr;
  std::ptrdiff_t most = 0;
  for (Handshake* entry = set; entry != set + kWays; entry++) {
    const auto of_place = [entry](const Handshake& other) { return other.key.place == entry->key.place; };
    const std::ptrdiff_t many =
        entry->age == 0 ? kWays + 2 : std::count_if(set, set + kWays, of_place) + (entry->key.place == key.place);
    if (victim && (many < most || (many == most && entry->age >= victim->age))) continue;
    victim = entry;
    most = many;
  }
  *victim = {.key = key, .qpn = 0, .psn = 0, .age = ++handshake_serial_, .replied = false};
  return victim;
}

// Of the REQ that a REP is for.
Pairing::Handshake* Pairing::handshake_of(const roce::Addresses& way, const roce::CmRep& rep, std::uint32_t place) {
  return find_handshake({reversed(way), static_cast<std::uint32_t>(rep.remote_communication_id), place});
}

Pairing::Told Pairing::told(const roce::Addresses& way, const roce::CmRep& rep, const Handshake& begun) {
  return {.any = true,
          .way = way,
          .qpns = {begun.qpn, static_cast<std::uint32_t>(rep.local_qpn)},
          .ids = {static_cast<std::uint32_t>(rep.local_communication_id), begun.key.communication_id},
          .psns = {begun.psn, static_cast<std::uint32_t>(rep.starting_psn)}};
}

Pairing::Told Pairing::would_pair(Packet packet, std::uint32_t place) {
  const auto* rep = roce::cm_message<roce::CmRep>(packet);
  if (!rep) return {};
  const roce::Addresses way = roce::addresses(packet);
  const Handshake* begun = handshake_of(way, *rep, place);
  return begun && !begun->replied ? told(way, *rep, *begun) : Told{};
}

std::array<std::uint32_t, 2> Pairing::directions_of(const Told& told) const {
  return {find({told.way, told.qpns[0]}), find({reversed(told.way), told.qpns[1]})};
}

Pairing::ConnectionEvent Pairing::pair(const Told& told) {
  if (!connect(told.way.destination, told.qpns[0], told.way.source, told.qpns[1], PairSource::kCm)) return {};
  const auto [there, back] = directions_of(told);
  identifiers_[there] = {told.ids[0], true};
  identifiers_[back] = {told.ids[1], true};
  return {.begins = true, .directions = {there, back}, .psns = {told.psns[0], told.psns[1]}};
}

Pairing::ConnectionEvent Pairing::observe_mad(Packet packet, std::uint32_t place) {
  const roce::MadHeader* header = roce::mad(packet);
  if (!header) return {};
  const roce::Addresses way = roce::addresses(packet);
  if (const auto* req = roce::cm_message<roce::CmReq>(packet)) {
    if (req->transport_service() != 0) return {};  // RC only
    const HandshakeKey key{way, static_cast<std::uint32_t>(req->local_communication_id), place};
    const auto qpn = static_cast<std::uint32_t>(req->local_qpn), psn = static_cast<std::uint32_t>(req->starting_psn);
    Handshake* begun = find_handshake(key);
    if (!begun) begun = make_handshake(key);
    begun->replied = begun->replied && begun->qpn == qpn && begun->psn == psn;  // a REQ may be repeated
    begun->qpn = qpn;
    begun->psn = psn;
  } else if (const auto* rep = roce::cm_message<roce::CmRep>(packet)) {
    return connected(way, *rep, place);
  } else if (const auto* rej = roce::cm_message<roce::CmRej>(packet)) {
    const auto id = static_cast<std::uint32_t>(rej->remote_communication_id);
    if (Handshake* begun = find_handshake({reversed(way), id, place})) begun->age = 0;
  } else if (const auto* dreq = roce::cm_message<roce::CmDreq>(packet)) {
    return ended(way, *dreq);
  }
  return {};
}

Pairing::ConnectionEvent Pairing::connected(const roce::Addresses& way, const roce::CmRep& rep, std::uint32_t place) {
  Handshake* begun = handshake_of(way, rep, place);
  if (!begun) {
    counts_.disbelieved++;
    return {};
  }
  // The REQ is kept: a REP may be repeated, and then tells nothing new. One with another QP is not the same QP's.
  if (begun->replied) return {};
  const ConnectionEvent event = pair(told(way, rep, *begun));
  begun->replied = event.begins;
  return event;
}

Pairing::ConnectionEvent Pairing::ended(const roce::Addresses& way, const roce::CmDreq& dreq) {
  const std::uint32_t direction = find({way, static_cast<std::uint32_t>(dreq.remote_qpn)});
  if (direction == kNone) return {};
  const std::uint32_t other = partner(direction);
  if (other != kNone && identifiers_[direction].known &&
      (identifiers_[direction].value != dreq.local_communication_id ||
       identifiers_[other].value != dreq.remote_communication_id)) {
    counts_.disbelieved++;
    return {};
  }
  return {.ends = true, .directions = {direction, other}};
}

}  // namespace rocebox::flows
