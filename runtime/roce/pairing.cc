// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/pairing.h"

#include <bit>
#include <utility>

#include "runtime/roce/mad.h"
#include "runtime/roce/psn.h"

namespace rocebox::roce {
namespace {

bool in_window(std::uint32_t psn, std::uint32_t oldest, std::uint32_t highest) {
  return psn_in_window(psn, oldest, static_cast<std::uint32_t>(psn_distance(highest, oldest) + 1));
}

Addresses reversed(const Addresses& addresses) { return {addresses.destination, addresses.source}; }

}  // namespace

Pairing::Pairing(const Limits& limits)
    : limits_(limits),
      table_(limits.halves),
      halves_(limits.halves),
      direction_table_(2 * limits.halves),
      directions_(std::size_t{2} * limits.halves),
      handshakes_(std::bit_ceil(std::size_t{limits.handshakes} + kWays)) {}

std::uint32_t Pairing::direction_of(const Addresses& addresses) {
  const std::uint32_t before = direction_table_.size();
  const std::uint32_t direction = direction_table_.insert(addresses);
  if (direction_table_.size() == before) return direction;
  // Both ways at once. There is room: each half brings at most two.
  const std::uint32_t reverse = direction_table_.insert(reversed(addresses));
  if (reverse == kNone) return kNone;
  directions_[direction].reverse = reverse;
  directions_[reverse].reverse = direction;
  return direction;
}

std::uint32_t Pairing::add(const HalfKey& key, std::uint32_t flow) {
  const std::uint32_t half = table_.insert(key);
  if (half == kNone) {
    counts_.refused++;
    return kNone;
  }
  if (halves_[half].direction == 0) {
    halves_[half].direction = direction_of(key.addresses) + 1;
    if (halves_[half].direction) directions_[halves_[half].direction - 1].halves++;
  }
  if (flow != kNone) halves_[half].flow = flow + 1;
  return half;
}

bool Pairing::connect(const std::array<std::uint8_t, 16>& a, std::uint32_t a_qpn, const std::array<std::uint8_t, 16>& b,
                      std::uint32_t b_qpn, PairSource source) {
  const HalfKey keys[2] = {{{a, b}, b_qpn}, {{b, a}, a_qpn}};
  const bool known[2] = {find(keys[0]) != kNone, find(keys[1]) != kNone};
  const std::uint32_t halves[2] = {add(keys[0]), add(keys[1])};
  if (halves[0] != kNone && halves[1] != kNone && halves[0] != halves[1] && bind(halves[1], halves[0], source))
    return true;
  for (unsigned i = 0; i < 2; i++)
    if (!known[i] && find(keys[i]) != kNone) forget(halves[i]);  // nobody would ever
  return false;
}

bool Pairing::bind(std::uint32_t a, std::uint32_t b, PairSource source) {
  if (halves_[a].partner == b + 1 && halves_[a].source >= source) return true;
  if (halves_[a].source > source || halves_[b].source > source) return false;
  unbind(a);
  unbind(b);
  for (const auto& [half, other] : {std::pair(a, b), std::pair(b, a)}) {
    unlist(half);
    halves_[half].partner = other + 1;
    halves_[half].source = source;
    halves_[half].agreed = 0;
  }
  return true;
}

void Pairing::unbind(std::uint32_t half) {
  const std::uint32_t other = halves_[half].partner;
  if (other == 0) return;
  for (const std::uint32_t each : {half, other - 1}) {
    halves_[each].partner = 0;
    halves_[each].source = PairSource::kNone;
    halves_[each].agreed = 0;
    if (halves_[each].requested) list(each);
  }
}

void Pairing::list(std::uint32_t half) {
  Half& h = halves_[half];
  if (h.listed || h.direction == 0) return;
  Direction& direction = directions_[h.direction - 1];
  h.listed = true;
  h.previous = 0;
  h.next = direction.head;
  if (h.next) halves_[h.next - 1].previous = half + 1;
  direction.head = half + 1;
  direction.listed++;
}

void Pairing::unlist(std::uint32_t half) {
  Half& h = halves_[half];
  if (!h.listed) return;
  Direction& direction = directions_[h.direction - 1];
  (h.previous ? halves_[h.previous - 1].next : direction.head) = h.next;
  if (h.next) halves_[h.next - 1].previous = h.previous;
  h.listed = false;
  direction.listed--;
}

void Pairing::request(std::uint32_t half, std::uint32_t first, std::uint32_t last) {
  Half& h = halves_[half];
  const auto far = static_cast<std::int32_t>(limits_.old_psns);
  const std::int32_t ahead = psn_distance(first, h.highest);
  if (!h.requested || ahead > far || ahead < -far) {
    h.oldest = first;  // the first one, or the QP began anew elsewhere
    h.highest = last;
    if (!h.requested && h.partner == 0) list(half);
    h.requested = true;
  } else if (psn_after(last, h.highest)) {
    h.highest = last;
  }
}

bool Pairing::contradicts(const Half& requester, std::uint32_t psn) const {
  // Answers to requests from before the first packet that was seen tell nothing.
  if (!requester.requested) return false;
  const std::int32_t ahead = psn_distance(psn, requester.oldest);
  if (ahead < 0) return -ahead > static_cast<std::int32_t>(limits_.old_psns);
  return psn_after(psn, requester.highest);
}

std::uint32_t Pairing::answer(std::uint32_t half, std::uint32_t psn, AnswerKind kind) {
  Half& h = halves_[half];
  if (h.source == PairSource::kLearned && contradicts(halves_[h.partner - 1], psn)) {
    unbind(half);
    counts_.undone++;
  }
  if (h.partner == 0) {
    const std::uint32_t found = learn(half, psn);
    if (found == kNone) return kNone;
    bind(half, found, PairSource::kLearned);
    counts_.learned++;
  }
  Half& requester = halves_[h.partner - 1];
  if (!requester.requested || !in_window(psn, requester.oldest, requester.highest)) return h.partner - 1;
  requester.oldest = kind == AnswerKind::kReceived ? psn_add(psn, 1) : psn;
  if (h.source == PairSource::kLearned && h.agreed < limits_.confirmations) {
    requester.agreed = ++h.agreed;
    if (h.agreed == limits_.confirmations) counts_.confirmed++;
  }
  return h.partner - 1;
}

std::uint32_t Pairing::learn(std::uint32_t half, std::uint32_t psn) {
  const Half& h = halves_[half];
  if (h.direction == 0) return kNone;
  const Direction& back = directions_[directions_[h.direction - 1].reverse];
  if (back.listed > limits_.candidates) {
    counts_.crowded++;
    return kNone;
  }
  std::uint32_t found = kNone;
  for (std::uint32_t at = back.head; at != 0; at = halves_[at - 1].next) {
    const Half& candidate = halves_[at - 1];
    if (at - 1 == half || !in_window(psn, candidate.oldest, candidate.highest)) continue;
    if (found != kNone) {
      counts_.ambiguous++;
      return kNone;
    }
    found = at - 1;
  }
  return found;
}

Pairing::Handshake* Pairing::handshake(const HandshakeKey& key, bool make) {
  const std::size_t sets = handshakes_.size() / kWays;
  Handshake* set = &handshakes_[hash_bytes<sizeof(key)>(&key) % sets * kWays];
  Handshake* oldest = set;
  for (Handshake* entry = set; entry != set + kWays; entry++) {
    if (entry->age != 0 && entry->key == key) return entry;
    if (entry->age < oldest->age) oldest = entry;
  }
  if (!make) return nullptr;
  oldest->key = key;
  oldest->answered = false;
  oldest->age = ++handshake_serial_;
  return oldest;
}

Pairing::News Pairing::observe_mad(Packet packet) {
  const MadHeader* header = mad(packet);
  if (!header) return {};
  const Addresses way = addresses(packet);
  if (const auto* req = cm_message<CmReq>(packet)) {
    if (req->transport_service() != 0) return {};  // RC only
    const auto id = static_cast<std::uint32_t>(req->local_communication_id);
    const auto qpn = static_cast<std::uint32_t>(req->local_qpn), psn = static_cast<std::uint32_t>(req->starting_psn);
    Handshake* begun = handshake({way, id}, true);
    begun->answered = begun->answered && begun->qpn == qpn && begun->psn == psn;  // a REQ may be repeated
    begun->qpn = qpn;
    begun->psn = psn;
  } else if (const auto* rep = cm_message<CmRep>(packet)) {
    return connected(way, *rep);
  } else if (const auto* rej = cm_message<CmRej>(packet)) {
    const auto id = static_cast<std::uint32_t>(rej->remote_communication_id);
    if (Handshake* begun = handshake({reversed(way), id}, false)) begun->age = 0;
  } else if (const auto* dreq = cm_message<CmDreq>(packet)) {
    const std::uint32_t half = find({way, static_cast<std::uint32_t>(dreq->remote_qpn)});
    if (half != kNone) return {.ends = true, .halves = {half, partner(half)}};
  }
  return {};
}

Pairing::News Pairing::connected(const Addresses& way, const CmRep& rep) {
  const auto id = static_cast<std::uint32_t>(rep.remote_communication_id);
  Handshake* begun = handshake({reversed(way), id}, false);
  if (!begun) return {};
  const auto qpn = static_cast<std::uint32_t>(rep.local_qpn);
  // The REQ is kept: a REP may be repeated, and then tells nothing new. One with another QP is not the same QP's.
  if (begun->answered || !connect(way.destination, begun->qpn, way.source, qpn, PairSource::kCm)) return {};
  begun->answered = true;
  return {.begins = true,
          .halves = {find({way, begun->qpn}), find({reversed(way), qpn})},
          .psns = {begun->psn, static_cast<std::uint32_t>(rep.starting_psn)}};
}

void Pairing::forget(std::uint32_t half) {
  unbind(half);
  unlist(half);
  if (halves_[half].direction) leave(halves_[half].direction - 1);
  halves_[half] = {};
  table_.erase(half);
}

// The last half between two hosts makes room for those of others.
void Pairing::leave(std::uint32_t direction) {
  const std::uint32_t reverse = directions_[direction].reverse;
  if (--directions_[direction].halves != 0 || directions_[reverse].halves != 0) return;
  for (const std::uint32_t each : {direction, reverse}) directions_[each] = {};
  direction_table_.erase(direction);
  if (reverse != direction) direction_table_.erase(reverse);
}

void Pairing::restart(std::uint32_t half) {
  if (halves_[half].source == PairSource::kLearned) unbind(half);
  halves_[half].requested = false;
}

}  // namespace rocebox::roce
