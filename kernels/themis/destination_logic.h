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
  access.update(p, highest_psn_, slot.number, [psn, window](PsnCell& cell) {
    const std::int32_t ahead = psn_distance(psn, cell.psn());
    if (ahead > 0 && ahead < 2 * window) cell = PsnCell::of(psn);
  });
  const std::uint32_t base = access.read(p, epsn_array_, slot.number).psn();
  const std::int32_t at = psn_distance(psn, base);
  const bool inside = at >= 0 && at < window;
  const std::uint32_t last = psn_add(psn, std::int64_t{width} - 1);
  if (inside ? width > 1 : at >= window && at < 4 * window)
    access.update(p, doubt_until_, slot.number,
                  [until = psn_add(last, 2 * window + 1)](PsnCell& cell) { detail::raise(cell, until); });
  const bool late = at < 0 && at >= -window;
  const bool anew = !late && access.update(p, far_count_, slot.number, [inside](std::uint8_t& count) {
    count = inside ? std::uint8_t{0} : static_cast<std::uint8_t>(std::min(count + 1, int{kFarPacketsMax}));
    return count == kFarPacketsMax;
  });
  if (!inside) return {Action::kNone, Reason::kNone, false, anew, {}};
  const bool half_base = access.read(p, bases_[half_of(slot, psn)], slot.number) != 0;
  access.write(p, bitmap_array_, bit_of(slot, psn), !half_base);
  if (sprayed)
    access.update(p, path_psn_max_array_, path_cell(slot, modulo_(psn)), [psn, window](PsnCell& cell) {
      // What lies a window ahead is from half a round of PSNs ago: N was smaller meanwhile.
      if (cell.behind(psn) || psn_distance(cell.psn(), psn) >= window) cell = PsnCell::of(psn);
    });
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
    decision = {Action::kDiscard, Reason::kInvalid, false, false, {}};
  else if (sprayed && degree > 0 && same_path)
    decision = {Action::kGenerate, Reason::kValid, false, false, {}};
  else if (ooo_threshold_ != 0 && degree > ooo_threshold_)
    decision = {Action::kGenerate, Reason::kOooDegree, true, false, {}};
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

template <class Access>
Decision Destination::nack(Access& access, const PacketState& p, Slot slot, const StashedNack& nack,
                           std::uint32_t now) {
  const std::uint32_t epsn = nack.epsn;
  const std::uint32_t highest = access.read(p, highest_psn_, slot.number).psn();
  const bool beyond_data = roce::psn_before(highest, epsn);
  const Move move = move_base(access, p, slot, epsn, !beyond_data);
  const std::int32_t ahead = roce::psn_distance(epsn, move.before);
  const auto forward = [&nack](Reason reason) { return Decision{Action::kForward, reason, false, false, nack}; };
  if (ahead < 0) return forward(Reason::kBehindWindow);
  if (ahead > window_packets_ || beyond_data) return forward(Reason::kAheadOfData);
  const bool doubted = access.update(p, doubt_until_, slot.number, [epsn, move](PsnCell& cell) {
    if (move.moved() && cell.valid() && !cell.ahead_of(move.after)) cell = {};
    return cell.ahead_of(epsn);
  });
  const bool half_base = turn_halves(access, p, slot, move);
  if (access.read(p, bitmap_array_, bit_of(slot, epsn)) != half_base)
    return doubted ? forward(Reason::kDoubt) : Decision{Action::kBlock, Reason::kInvalid, false, false, nack};
  const std::uint32_t path = modulo_(epsn);
  const PsnCell path_max = access.read(p, path_psn_max_array_, path_cell(slot, path));
  if (path_max.ahead_of(epsn) && roce::psn_distance(path_max.psn(), epsn) < window_packets_)
    return forward(Reason::kValid);
  const PsnCell before = access.update(p, stashed_nack_psn_, slot.number,
                                       [epsn](PsnCell& cell) { return std::exchange(cell, PsnCell::of(epsn)); });
  access.write(p, stash_nack_path_id_, slot.number, path);
  const bool was_valid = access.update(p, stashed_nack_valid_, slot.number,
                                       [](std::uint8_t& valid) { return std::exchange(valid, std::uint8_t{1}) != 0; });
  access.write(p, stash_nack_qpn_, slot.number, nack.qpn);
  access.write(p, stash_nack_egress_port_, slot.number, nack.exit);
  access.write(p, stash_nack_aeth_, slot.number, nack.aeth);
  if (!was_valid || !before.is(epsn)) access.write(p, stash_time_, slot.number, now);
  return {Action::kStash, Reason::kUndetermined, false, false, nack};
}

// All up to `psn` is acknowledged. `doubt`: what has left for the NIC was thrown away there.
template <class Access>
Decision Destination::answered(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool doubt) {
  const std::uint32_t highest = access.read(p, highest_psn_, slot.number).psn();
  const bool sent = !roce::psn_after(psn, highest);
  const Move move = move_base(access, p, slot, roce::psn_add(psn, 1), sent);
  access.update(p, doubt_until_, slot.number, [move, doubt, highest](PsnCell& cell) {
    if (move.moved() && cell.valid() && !cell.ahead_of(move.after)) cell = {};
    if (doubt) detail::raise(cell, roce::psn_add(highest, 1));
  });
  turn_halves(access, p, slot, move);
  const PsnCell stash = access.read(p, stashed_nack_psn_, slot.number);
  if (!sent || !stash.valid() || !roce::psn_after(move.after, stash.psn())) return {};
  const bool was_valid = access.update(p, stashed_nack_valid_, slot.number,
                                       [](std::uint8_t& valid) { return std::exchange(valid, std::uint8_t{0}) != 0; });
  if (!was_valid) return {};
  return {Action::kDiscard, Reason::kAcknowledged, false, false, {stash.psn()}};
}

}  // namespace rocebox::themis
