// SPDX-License-Identifier: BSD-3-Clause
// The templates of destination.h.
#pragma once
#include <algorithm>
#include <utility>

#include "kernels/themis/destination.h"

namespace rocebox::themis {

namespace detail {
// Doubt reaches up to `until` at least.
inline void raise(PsnCell& doubt, std::uint32_t until) {
  if (doubt.behind(until)) doubt = PsnCell::of(until);
}
}  // namespace detail

template <class Access>
Decision Destination::data(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool sprayed,
                           std::uint32_t width) {
  using roce::psn_add, roce::psn_distance;
  const std::int32_t window = window_packets_;
  const std::uint32_t last = psn_add(psn, std::int64_t{width} - 1);
  access.update(p, highest_psn_, slot.number, [psn, last, window](PsnCell& cell) {
    if (psn_distance(psn, cell.psn()) < 2 * window && psn_distance(last, cell.psn()) > 0) cell = PsnCell::of(last);
  });
  const std::uint32_t base = access.read(p, epsn_array_, slot.number).psn();
  const std::int32_t at = psn_distance(psn, base);
  const bool inside = at >= 0 && at < window;
  // In no order with those that are: what is missing behind it may be lost, and the NIC may have thrown it away.
  if (!sprayed && at >= 0 && at < 4 * window)
    access.update(p, doubt_until_, slot.number,
                  [until = psn_add(last, 1)](PsnCell& cell) { detail::raise(cell, until); });
  const bool late = at < 0 && at >= -window;
  const bool anew = !late && access.update(p, far_count_, slot.number, [inside](std::uint8_t& count) {
    count = inside ? std::uint8_t{0} : static_cast<std::uint8_t>(std::min(count + 1, int{kFarPacketsMax}));
    return count == kFarPacketsMax;
  });
  if (!inside) return {.begins_anew = anew};
  const unsigned half = half_of(slot, psn);
  const bool mark = access.read(p, bases_[half], slot.number) == 0;
  const bool fresh = access.update(p, bitmap_array_, bit_of(slot, psn),
                                   [mark](bool& bit) { return std::exchange(bit, mark) != mark; });
  if (sprayed)
    access.update(p, path_psn_max_array_, path_cell(slot, modulo_(psn)), [psn, window](PsnCell& cell) {
      // What lies a window ahead is from half a round of PSNs ago: N was smaller meanwhile.
      if (cell.behind(psn) || psn_distance(cell.psn(), psn) >= window) cell = PsnCell::of(psn);
    });
  if (fresh) access.update(p, half_counts_, slot.number, [half](HalfCounts& counts) { counts.half[half] += 2; });
  return resolve(access, p, slot, psn, sprayed);
}

// Lazy dropping (4.3) and the OOO degree (4.4).
template <class Access>
Decision Destination::resolve(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool sprayed) {
  const PsnCell stash = access.read(p, stashed_nack_psn_, slot.number);
  if (!stash.valid()) return {};
  const std::int32_t degree = roce::psn_distance(psn, stash.psn());
  const bool same_path = access.read(p, stash_nack_path_id_, slot.number) == modulo_(psn);
  Decision decision;
  if (degree == 0)
    decision = {.action = Action::kDiscard, .reason = Reason::kInvalid};
  else if (!sprayed && degree > 0)
    decision = {.action = Action::kGenerate, .reason = Reason::kDoubt};
  else if (sprayed && degree > 0 && same_path)
    decision = {.action = Action::kGenerate, .reason = Reason::kValid};
  else if (sprayed && ooo_threshold_ != 0 && degree > ooo_threshold_)
    decision = {.action = Action::kGenerate, .reason = Reason::kOooDegree, .avoid = true};
  else
    return {};
  const bool was_valid = access.update(p, stashed_nack_valid_, slot.number,
                                       [](std::uint8_t& valid) { return std::exchange(valid, std::uint8_t{0}) != 0; });
  if (!was_valid) return {};
  decision.stash.epsn = stash.psn();
  if (decision.action == Action::kDiscard) return decision;
  decision.stash.qpn = access.read(p, stash_nack_qpn_, slot.number);
  decision.stash.exit = access.read(p, stash_nack_egress_port_, slot.number);
  decision.stash.aeth = access.read(p, stash_nack_aeth_, slot.number);
  return decision;
}

// `sent`: no more is acknowledged than was sent.
template <class Access>
Destination::Move Destination::move_base(Access& access, const PacketState& p, Slot slot, std::uint32_t to, bool sent) {
  return access.update(p, epsn_array_, slot.number, [to, sent, window = window_packets_](PsnCell& cell) {
    const std::uint32_t before = cell.psn();
    const std::int32_t forward = roce::psn_distance(to, before);
    if (sent && forward > 0 && forward <= window) cell = PsnCell::of(to);
    return Move{before, cell.psn()};
  });
}

// Turns over the base of the half that the window base has left (appendix A); gives the base of the half where it is.
template <class Access>
bool Destination::turn_halves(Access& access, const PacketState& p, Slot slot, Move move) {
  const unsigned left = half_of(slot, move.before), here = half_of(slot, move.after);
  if (left != here) access.update(p, bases_[left], slot.number, [](std::uint8_t& base) { base ^= 1; });
  return access.read(p, bases_[here], slot.number) != 0;
}

// Of the half that the window base has left all is acknowledged. Bits that no packet wrote there say "received" in the
// next round: as many as are missing are counted as set then, and it is known that they prove nothing. Gives whether
// that is so of the half where the base is.
template <class Access>
bool Destination::settle_half(Access& access, const PacketState& p, Slot slot, Move move) {
  const unsigned left = half_of(slot, move.before), here = half_of(slot, move.after);
  return access.update(p, half_counts_, slot.number, [left, here, window = window_](HalfCounts& counts) {
    if (left != here) {
      const std::uint32_t missing = window - (counts.half[left] >> 1);
      counts.half[left] = missing << 1 | (missing != 0);
    }
    return (counts.half[here] & 1) != 0;
  });
}

template <class Access>
Decision Destination::nack(Access& access, const PacketState& p, Slot slot, const StashedNack& nack,
                           std::uint32_t now) {
  const std::uint32_t epsn = nack.epsn;
  const std::uint32_t highest = access.read(p, highest_psn_, slot.number).psn();
  const bool beyond_data = roce::psn_before(highest, epsn);
  const Move move = move_base(access, p, slot, epsn, !beyond_data);
  const std::int32_t ahead = roce::psn_distance(epsn, move.before);
  const auto forward = [&nack](Reason reason) {
    return Decision{.action = Action::kForward, .reason = reason, .stash = nack};
  };
  if (ahead < 0) return forward(move.before == slot.origin ? Reason::kBeforeState : Reason::kBehindWindow);
  if (ahead > window_packets_ || beyond_data) return forward(Reason::kAheadOfData);
  const bool doubted = access.update(p, doubt_until_, slot.number, [epsn, move](PsnCell& cell) {
    if (move.moved() && cell.valid() && !cell.ahead_of(move.after)) cell = {};
    return cell.ahead_of(epsn);
  });
  const bool half_base = turn_halves(access, p, slot, move);
  const bool received = access.read(p, bitmap_array_, bit_of(slot, epsn)) != half_base;
  const std::uint32_t path = modulo_(epsn);
  const PsnCell path_max = access.read(p, path_psn_max_array_, path_cell(slot, path));
  const bool unproven = settle_half(access, p, slot, move);
  if (doubted || (received && unproven)) return forward(Reason::kDoubt);
  if (received) return {.action = Action::kBlock, .reason = Reason::kInvalid, .stash = nack};
  if (!path_check_ || (path_max.ahead_of(epsn) && roce::psn_distance(path_max.psn(), epsn) < window_packets_))
    return forward(Reason::kValid);
  if (!lazy_dropping_) return {.action = Action::kBlock, .reason = Reason::kUndetermined, .stash = nack};
  const PsnCell before = access.update(p, stashed_nack_psn_, slot.number,
                                       [epsn](PsnCell& cell) { return std::exchange(cell, PsnCell::of(epsn)); });
  access.write(p, stash_nack_path_id_, slot.number, path);
  const bool was_valid = access.update(p, stashed_nack_valid_, slot.number,
                                       [](std::uint8_t& valid) { return std::exchange(valid, std::uint8_t{1}) != 0; });
  access.write(p, stash_nack_qpn_, slot.number, nack.qpn);
  access.write(p, stash_nack_egress_port_, slot.number, nack.exit);
  access.write(p, stash_nack_aeth_, slot.number, nack.aeth);
  if (!was_valid || !before.is(epsn)) access.write(p, stash_time_, slot.number, now);
  return {.action = Action::kStash, .reason = Reason::kUndetermined, .stash = nack};
}

// All up to `psn` is acknowledged. `doubt`: what has left for the NIC was thrown away there.
template <class Access>
Decision Destination::acknowledge(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool doubt) {
  const std::uint32_t highest = access.read(p, highest_psn_, slot.number).psn();
  const bool sent = !roce::psn_after(psn, highest);
  const std::uint32_t to = roce::psn_add(psn, 1);
  const Move move = move_base(access, p, slot, to, sent);
  const bool jumps = sent && roce::psn_distance(to, move.before) > window_packets_;
  access.update(p, doubt_until_, slot.number, [move, doubt, highest](PsnCell& cell) {
    if (move.moved() && cell.valid() && !cell.ahead_of(move.after)) cell = {};
    if (doubt) detail::raise(cell, roce::psn_add(highest, 1));
  });
  turn_halves(access, p, slot, move);
  settle_half(access, p, slot, move);
  const PsnCell stash = access.read(p, stashed_nack_psn_, slot.number);
  const Decision none{.begins_anew = jumps};
  if (!sent || !stash.valid() || !roce::psn_after(jumps ? to : move.after, stash.psn())) return none;
  const bool was_valid = access.update(p, stashed_nack_valid_, slot.number,
                                       [](std::uint8_t& valid) { return std::exchange(valid, std::uint8_t{0}) != 0; });
  if (!was_valid) return none;
  return {.action = Action::kDiscard,
          .reason = Reason::kAcknowledged,
          .begins_anew = jumps,
          .stash = {.epsn = stash.psn()}};
}

}  // namespace rocebox::themis
