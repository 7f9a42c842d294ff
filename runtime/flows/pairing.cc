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
      table_(limits.halves),
      halves_(limits.halves),
      identifiers_(limits.halves),
      direction_table_(2 * limits.halves),
      directions_(std::size_t{2} * limits.halves),
      handshakes_(std::bit_ceil(std::size_t{limits.handshakes} + kWays)) {}

std::uint32_t Pairing::direction_of(const roce::Addresses& addresses) {
  const std::uint32_t before = direction_table_.size();
  const std::uint32_t direction = direction_table_.insert(addresses);
  if (direction_table_.size() == before) return direction;
  // Both ways at once. There is room: each half brings at most two.
  const std::uint32_t reverse = direction_table_.insert({addresses.destination, addresses.source});
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
    halves_[half].unanswered = 0;
    halves_[half].answered = false;
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
    halves_[each].contested = false;
    identifiers_[each].known = false;
    if (halves_[each].requested) list(each);
  }
}

// A half to learn from stands first in its list: where it is bounded, the last one is looked at no more.

void Pairing::list(std::uint32_t half) {
  Half& h = halves_[half];
  if (h.listed || h.direction == 0) return;
  Direction& direction = directions_[h.direction - 1];
  h.listed = true;
  h.previous = 0;
  h.next = direction.head;
  (h.next ? halves_[h.next - 1].previous : direction.tail) = half + 1;
  direction.head = half + 1;
  if (direction.listed++ < limits_.candidates || !limits_.keep_recent) return;
  unlist(direction.tail - 1);
  counts_.displaced++;
}

void Pairing::unlist(std::uint32_t half) {
  Half& h = halves_[half];
  if (!h.listed) return;
  Direction& direction = directions_[h.direction - 1];
  (h.previous ? halves_[h.previous - 1].next : direction.head) = h.next;
  (h.next ? halves_[h.next - 1].previous : direction.tail) = h.previous;
  h.listed = false;
  direction.listed--;
}

void Pairing::request(std::uint32_t half, std::uint32_t first, std::uint32_t last) {
  Half& h = halves_[half];
  const auto far = static_cast<std::int32_t>(limits_.old_psns);
  const std::int32_t ahead = roce::psn_distance(first, h.highest);
  if (!h.requested || ahead > far || ahead < -far) {
    h.oldest = first;  // the first one, or the QP began anew elsewhere
    h.highest = last;
    h.wide = false;
    if (!h.requested && h.partner == 0) list(half);
    h.requested = true;
  } else if (roce::psn_after(last, h.highest)) {
    h.highest = last;
  }
  h.wide = h.wide || first != last;
  if (h.partner == 0) return requested_unpaired(half);
  // The QP that answered may be gone, and its responder another one's: then others' answers are looked at, too.
  if (h.source != PairSource::kLearned && !h.contested) return;
  if (h.unanswered < limits_.silence) h.unanswered++;
  // Where the list is not kept short, they would crowd out those that have no partner.
  if (limits_.keep_recent && h.unanswered == limits_.silence && !h.listed) list(half);
}

// Of more halves than are looked at, those that go on sending remain.
void Pairing::requested_unpaired(std::uint32_t half) {
  const Half& h = halves_[half];
  if (!limits_.keep_recent || h.direction == 0) return;
  const Direction& direction = directions_[h.direction - 1];
  if (direction.head == half + 1 || (h.listed && direction.listed <= limits_.candidates / 2)) return;
  unlist(half);
  list(half);
}

bool Pairing::contradicts(const Half& requester, std::uint32_t psn) const {
  // Answers to requests from before the first packet that was seen tell nothing.
  if (!requester.requested) return false;
  const std::int32_t ahead = roce::psn_distance(psn, requester.oldest);
  if (ahead < 0) return -ahead > static_cast<std::int32_t>(limits_.old_psns);
  return roce::psn_after(psn, requester.highest);
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
    if (halves_[found].partner != 0) {
      unbind(found);
      counts_.undone++;
    }
    bind(half, found, PairSource::kLearned);
    counts_.learned++;
  }
  Half& requester = halves_[h.partner - 1];
  if (!requester.requested || !in_window(psn, requester.oldest, requester.highest)) return h.partner - 1;
  requester.oldest = kind == AnswerKind::kReceived ? roce::psn_add(psn, 1) : psn;
  requester.answered = true;
  if (requester.unanswered != 0) {
    requester.unanswered = 0;
    unlist(h.partner - 1);
  }
  if (h.source == PairSource::kLearned && h.agreed < limits_.confirmations) {
    requester.agreed = ++h.agreed;
    if (h.agreed == limits_.confirmations) counts_.confirmed++;
  }
  return h.partner - 1;
}

// Whether the last requests of `candidate` explain an answer.
bool Pairing::may_answer(const Half& candidate, std::uint32_t psn) const {
  if (!candidate.requested || !in_window(psn, candidate.oldest, candidate.highest)) return false;
  return limits_.window == 0 || candidate.wide ||
         roce::psn_distance(candidate.highest, psn) < static_cast<std::int32_t>(limits_.window);
}

// The only half without a partner that explains the answer; if there is none, the only one whose partner is silent.
std::uint32_t Pairing::learn(std::uint32_t half, std::uint32_t psn) {
  const Half& h = halves_[half];
  if (h.direction == 0) return kNone;
  const Direction& back = directions_[directions_[h.direction - 1].reverse];
  if (back.listed > limits_.candidates) {
    counts_.crowded++;
    return kNone;
  }
  std::uint32_t found[2] = {kNone, kNone};
  bool several[2] = {};
  for (std::uint32_t at = back.head; at != 0 && !several[0]; at = halves_[at - 1].next) {
    const Half& candidate = halves_[at - 1];
    if (at - 1 == half || !may_answer(candidate, psn)) continue;
    const bool taken = candidate.partner != 0;
    several[taken] = found[taken] != kNone;
    found[taken] = at - 1;
  }
  const bool taken = found[0] == kNone;
  if (!several[taken]) return found[taken];
  counts_.ambiguous++;
  return kNone;
}

void Pairing::contest(std::uint32_t half) {
  if (halves_[half].source != PairSource::kCm) return;
  for (const std::uint32_t each : {half, partner(half)}) halves_[each].contested = true;
}

void Pairing::settle(std::uint32_t half) {
  if (halves_[half].partner == 0) return;
  for (const std::uint32_t each : {half, partner(half)}) {
    halves_[each].contested = false;
    halves_[each].unanswered = 0;
    unlist(each);
  }
}

bool Pairing::silent(std::uint32_t half) {
  bool answered = halves_[half].answered;
  halves_[half].answered = false;
  if (const std::uint32_t other = partner(half); other != kNone) {
    answered = answered || halves_[other].answered;
    halves_[other].answered = false;
  }
  return !answered;
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

}  // namespace rocebox::flows
