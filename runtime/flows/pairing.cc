// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/flows/pairing.h"

#include <bit>
#include <utility>

#include "runtime/roce/psn.h"

namespace rocebox::flows {
namespace {

bool in_window(std::uint32_t psn, std::uint32_t oldest, std::uint32_t highest) {
  return roce::psn_in_window(psn, oldest, static_cast<std::uint32_t>(roce::psn_distance(highest, oldest) + 1));
}

}  // namespace

Pairing::Pairing(const Limits& limits)
    : limits_(limits),
      table_(limits.directions),
      directions_(limits.directions),
      identifiers_(limits.directions),
      host_pair_table_(2 * limits.directions),
      host_pairs_(std::size_t{2} * limits.directions),
      handshakes_(std::bit_ceil(std::size_t{limits.handshakes} + kWays)) {}

std::uint32_t Pairing::host_pair_of(const roce::Addresses& addresses) {
  const std::uint32_t before = host_pair_table_.size();
  const std::uint32_t host_pair = host_pair_table_.insert(addresses);
  if (host_pair_table_.size() == before) return host_pair;
  // Both ways at once. There is room: each direction brings at most two.
  const std::uint32_t reverse = host_pair_table_.insert({addresses.destination, addresses.source});
  if (reverse == kNone) return kNone;
  host_pairs_[host_pair].reverse = reverse;
  host_pairs_[reverse].reverse = host_pair;
  return host_pair;
}

std::uint32_t Pairing::add(const DirectionKey& key, std::uint32_t flow) {
  const std::uint32_t direction = table_.insert(key);
  if (direction == kNone) {
    counts_.refused++;
    return kNone;
  }
  if (directions_[direction].host_pair == 0) {
    directions_[direction].host_pair = host_pair_of(key.addresses) + 1;
    if (directions_[direction].host_pair) host_pairs_[directions_[direction].host_pair - 1].directions++;
  }
  if (flow != kNone) directions_[direction].flow = flow + 1;
  return direction;
}

bool Pairing::connect(const std::array<std::uint8_t, 16>& a, std::uint32_t a_qpn, const std::array<std::uint8_t, 16>& b,
                      std::uint32_t b_qpn, PairSource source) {
  const DirectionKey keys[2] = {{{a, b}, b_qpn}, {{b, a}, a_qpn}};
  const bool known[2] = {find(keys[0]) != kNone, find(keys[1]) != kNone};
  const std::uint32_t directions[2] = {add(keys[0]), add(keys[1])};
  if (directions[0] != kNone && directions[1] != kNone && directions[0] != directions[1] &&
      bind(directions[1], directions[0], source))
    return true;
  for (unsigned i = 0; i < 2; i++)
    if (!known[i] && find(keys[i]) != kNone) forget(directions[i]);  // nobody would ever
  return false;
}

bool Pairing::bind(std::uint32_t a, std::uint32_t b, PairSource source) {
  if (directions_[a].partner == b + 1 && directions_[a].source >= source) return true;
  if (directions_[a].source > source || directions_[b].source > source) return false;
  unbind(a);
  unbind(b);
  for (const auto& [direction, other] : {std::pair(a, b), std::pair(b, a)}) {
    unlist(direction);
    directions_[direction].partner = other + 1;
    directions_[direction].source = source;
    directions_[direction].agreed = 0;
    directions_[direction].unacknowledged = 0;
    directions_[direction].acknowledged = false;
  }
  return true;
}

void Pairing::unbind(std::uint32_t direction) {
  const std::uint32_t other = directions_[direction].partner;
  if (other == 0) return;
  for (const std::uint32_t each : {direction, other - 1}) {
    directions_[each].partner = 0;
    directions_[each].source = PairSource::kNone;
    directions_[each].agreed = 0;
    directions_[each].contested = false;
    identifiers_[each].known = false;
    if (directions_[each].requested) list(each);
  }
}

// A direction to learn from stands first in its list: where it is bounded, the last one is looked at no more.

void Pairing::list(std::uint32_t direction) {
  Direction& h = directions_[direction];
  if (h.listed || h.host_pair == 0) return;
  HostPair& host_pair = host_pairs_[h.host_pair - 1];
  h.listed = true;
  h.previous = 0;
  h.next = host_pair.head;
  (h.next ? directions_[h.next - 1].previous : host_pair.tail) = direction + 1;
  host_pair.head = direction + 1;
  if (host_pair.listed++ < limits_.candidates || !limits_.keep_recent) return;
  unlist(host_pair.tail - 1);
  counts_.displaced++;
}

void Pairing::unlist(std::uint32_t direction) {
  Direction& h = directions_[direction];
  if (!h.listed) return;
  HostPair& host_pair = host_pairs_[h.host_pair - 1];
  (h.previous ? directions_[h.previous - 1].next : host_pair.head) = h.next;
  (h.next ? directions_[h.next - 1].previous : host_pair.tail) = h.previous;
  h.listed = false;
  host_pair.listed--;
}

void Pairing::request(std::uint32_t direction, std::uint32_t first, std::uint32_t last) {
  Direction& h = directions_[direction];
  const auto far = static_cast<std::int32_t>(limits_.old_psns);
  const std::int32_t ahead = roce::psn_distance(first, h.highest);
  if (!h.requested || ahead > far || ahead < -far) {
    h.oldest = first;  // the first one, or the QP began anew elsewhere
    h.highest = last;
    h.wide = false;
    if (!h.requested && h.partner == 0) list(direction);
    h.requested = true;
  } else if (roce::psn_after(last, h.highest)) {
    h.highest = last;
  }
  h.wide = h.wide || first != last;
  if (h.partner == 0) return requested_unpaired(direction);
  // The partner may be gone, and its responder another one's: then others' responses are looked at, too.
  if (h.source != PairSource::kLearned && !h.contested) return;
  if (h.unacknowledged < limits_.silence) h.unacknowledged++;
  // Where the list is not kept short, they would crowd out those that have no partner.
  if (limits_.keep_recent && h.unacknowledged == limits_.silence && !h.listed) list(direction);
}

// Of more directions than are looked at, those that go on sending remain.
void Pairing::requested_unpaired(std::uint32_t direction) {
  const Direction& h = directions_[direction];
  if (!limits_.keep_recent || h.host_pair == 0) return;
  const HostPair& host_pair = host_pairs_[h.host_pair - 1];
  if (host_pair.head == direction + 1 || (h.listed && host_pair.listed <= limits_.candidates / 2)) return;
  unlist(direction);
  list(direction);
}

bool Pairing::contradicts(const Direction& requester, std::uint32_t psn) const {
  // Responses to requests from before the first packet that was seen tell nothing.
  if (!requester.requested) return false;
  const std::int32_t ahead = roce::psn_distance(psn, requester.oldest);
  if (ahead < 0) return -ahead > static_cast<std::int32_t>(limits_.old_psns);
  return roce::psn_after(psn, requester.highest);
}

std::uint32_t Pairing::response(std::uint32_t direction, std::uint32_t psn, ResponseKind kind) {
  Direction& h = directions_[direction];
  if (h.source == PairSource::kLearned && contradicts(directions_[h.partner - 1], psn)) {
    unbind(direction);
    counts_.undone++;
  }
  if (h.partner == 0) {
    const std::uint32_t found = learn(direction, psn);
    if (found == kNone) return kNone;
    if (directions_[found].partner != 0) {
      unbind(found);
      counts_.undone++;
    }
    bind(direction, found, PairSource::kLearned);
    counts_.learned++;
  }
  Direction& requester = directions_[h.partner - 1];
  if (!requester.requested || !in_window(psn, requester.oldest, requester.highest)) return h.partner - 1;
  requester.oldest = kind == ResponseKind::kReceived ? roce::psn_add(psn, 1) : psn;
  requester.acknowledged = true;
  if (requester.unacknowledged != 0) {
    requester.unacknowledged = 0;
    unlist(h.partner - 1);
  }
  if (h.source == PairSource::kLearned && h.agreed < limits_.confirmations) {
    requester.agreed = ++h.agreed;
    if (h.agreed == limits_.confirmations) counts_.confirmed++;
  }
  return h.partner - 1;
}

// Whether the last requests of `candidate` explain a response.
bool Pairing::may_respond(const Direction& candidate, std::uint32_t psn) const {
  if (!candidate.requested || !in_window(psn, candidate.oldest, candidate.highest)) return false;
  return limits_.window == 0 || candidate.wide ||
         roce::psn_distance(candidate.highest, psn) < static_cast<std::int32_t>(limits_.window);
}

// The only direction without a partner that explains the response; if there is none, the only one whose partner is
// silent.
std::uint32_t Pairing::learn(std::uint32_t direction, std::uint32_t psn) {
  const Direction& h = directions_[direction];
  if (h.host_pair == 0) return kNone;
  const HostPair& back = host_pairs_[host_pairs_[h.host_pair - 1].reverse];
  if (back.listed > limits_.candidates) {
    counts_.crowded++;
    return kNone;
  }
  std::uint32_t found[2] = {kNone, kNone};
  bool several[2] = {};
  for (std::uint32_t at = back.head; at != 0 && !several[0]; at = directions_[at - 1].next) {
    const Direction& candidate = directions_[at - 1];
    if (at - 1 == direction || !may_respond(candidate, psn)) continue;
    const bool taken = candidate.partner != 0;
    several[taken] = found[taken] != kNone;
    found[taken] = at - 1;
  }
  const bool taken = found[0] == kNone;
  if (!several[taken]) return found[taken];
  counts_.ambiguous++;
  return kNone;
}

void Pairing::contest(std::uint32_t direction) {
  if (directions_[direction].source != PairSource::kCm) return;
  for (const std::uint32_t each : {direction, partner(direction)}) directions_[each].contested = true;
}

void Pairing::settle(std::uint32_t direction) {
  if (directions_[direction].partner == 0) return;
  for (const std::uint32_t each : {direction, partner(direction)}) {
    directions_[each].contested = false;
    directions_[each].unacknowledged = 0;
    unlist(each);
  }
}

bool Pairing::is_silent(std::uint32_t direction) const {
  const std::uint32_t other = partner(direction);
  return !directions_[direction].acknowledged && (other == kNone || !directions_[other].acknowledged);
}

void Pairing::watch_silence(std::uint32_t direction) {
  directions_[direction].acknowledged = false;
  if (const std::uint32_t other = partner(direction); other != kNone) directions_[other].acknowledged = false;
}

void Pairing::forget(std::uint32_t direction) {
  unbind(direction);
  unlist(direction);
  if (directions_[direction].host_pair) leave(directions_[direction].host_pair - 1);
  directions_[direction] = {};
  table_.erase(direction);
}

// The last direction between two hosts makes room for those of others.
void Pairing::leave(std::uint32_t host_pair) {
  const std::uint32_t reverse = host_pairs_[host_pair].reverse;
  if (--host_pairs_[host_pair].directions != 0 || host_pairs_[reverse].directions != 0) return;
  for (const std::uint32_t each : {host_pair, reverse}) host_pairs_[each] = {};
  host_pair_table_.erase(host_pair);
  if (reverse != host_pair) host_pair_table_.erase(reverse);
}

void Pairing::restart(std::uint32_t direction) {
  if (directions_[direction].source == PairSource::kLearned) unbind(direction);
  directions_[direction].requested = false;
}

}  // namespace rocebox::flows
