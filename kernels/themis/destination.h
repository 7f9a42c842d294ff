// SPDX-License-Identifier: BSD-3-Clause
// Destination: the registers and the logic of Themis-D (4.2 to 4.4, algorithm 1, appendix A), in the egress control of
// the receiver's ToR. Each packet touches an array once, in the order of the stages. Where the paper is silent or
// wrong, README.md says what is done.
#pragma once
#include <cstdint>

#include "kernels/themis/decision.h"
#include "kernels/themis/source.h"

namespace rocebox::themis {

/// Where the state of a QP is: action data of the QP table.
struct Slot {
  std::uint32_t number = 0;
  std::uint32_t origin = 0;  ///< the QP's first PSN, from which bits are counted
};

class Destination {
 public:
  struct Config {
    std::uint32_t slots;          ///< QPs of one pipe
    std::uint32_t paths_max;      ///< sizes the arrays
    std::uint32_t paths;          ///< N at the start
    std::uint32_t window;         ///< W, a power of two
    std::uint32_t ooo_threshold;  ///< in packets; 0: never
    bool path_check = true;       ///< condition C2; without it what fulfils C1 is valid
    bool lazy_dropping = true;    ///< undetermined NACKs are stashed; without it dropped
  };
  Destination(const Config& config, Layout& layout);

  /// A request leaves for the NIC, behind all queues. sprayed: Themis-S chose its path by its PSN. width: the PSNs that
  /// it takes (a READ request: those of its responses).
  template <class Access>
  Decision data(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool sprayed, std::uint32_t width);

  /// A NACK (PSN sequence error) from the NIC. `nack`: what is kept of it when it is stashed; `now`: of ageing, in its
  /// units.
  template <class Access>
  Decision nack(Access& access, const PacketState& p, Slot slot, const StashedNack& nack, std::uint32_t now);

  /// An ACK from the NIC: all up to `psn` came. With begins_anew: more than a window at once, so that the slot is to be
  /// made again behind it.
  template <class Access>
  Decision ack(Access& access, const PacketState& p, Slot slot, std::uint32_t psn) {
    return acknowledge(access, p, slot, psn, false);
  }

  /// A NAK of another kind: it passes. The NIC has thrown away what had already left for it.
  template <class Access>
  Decision other_nak(Access& access, const PacketState& p, Slot slot, std::uint32_t psn) {
    const Decision told = acknowledge(access, p, slot, roce::psn_add(psn, -1), true);
    return {.action = Action::kForward,
            .reason = Reason::kOtherNak,
            .begins_anew = told.begins_anew,
            .ends_stash = told.action == Action::kDiscard,
            .stash = {.epsn = psn}};
  }

  template <class Access>
  void prefetch(Access& access, const PacketState& p, Slot slot, std::uint32_t psn) const {
    access.prefetch(p, highest_psn_, slot.number);
    access.prefetch(p, epsn_array_, slot.number);
    access.prefetch(p, doubt_until_, slot.number);
    access.prefetch(p, bitmap_array_, bit_of(slot, psn));
    access.prefetch(p, path_psn_max_array_, path_cell(slot, modulo_(psn)));
    access.prefetch(p, half_counts_, slot.number);
    access.prefetch(p, stashed_nack_psn_, slot.number);
  }

  // The control plane, between batches.

  /// All registers of a slot as for a new QP whose first PSN is slot.origin, and whose requests up to `highest` have
  /// gone by.
  void begin(unsigned pipe, Slot slot, std::uint32_t highest);
  /// The stash is given up to age when it was written before `since`; the NACK to be sent, or nothing.
  Decision age(unsigned pipe, Slot slot, std::uint32_t since);
  /// The same of a stash of any age.
  Decision take_stash(unsigned pipe, std::uint32_t slot);
  bool has_stash(unsigned pipe, std::uint32_t slot) {
    return stashed_nack_valid_.operate(pipe, slot, [](std::uint8_t& valid) { return valid != 0; });
  }
  /// N from now on, 1 to paths_max. What the registers say of the old paths can only make a NACK pass early; stashes go
  /// over to the new ones.
  void change(std::uint32_t paths, std::uint32_t ooo_threshold);
  /// Whether an ACK of all before `to` acknowledges more than a window at once.
  bool jumps(unsigned pipe, Slot slot, std::uint32_t to) {
    return roce::psn_distance(to, window_base(pipe, slot.number)) > window_packets_;
  }
  /// The PSN that no other of the QP's requests is ahead of.
  std::uint32_t highest(unsigned pipe, Slot slot) {
    return highest_psn_.operate(pipe, slot.number, [](PsnCell& cell) { return cell.psn(); });
  }

  /// What tests read: the base, and the bits as they stand.
  std::uint32_t window_base(unsigned pipe, std::uint32_t slot) {
    return epsn_array_.operate(pipe, slot, [](PsnCell& cell) { return cell.psn(); });
  }
  bool bit(unsigned pipe, std::uint32_t slot, std::uint32_t index) {
    return bitmap_array_.operate(pipe, std::uint64_t{slot} * 2 * window_ + index, [](bool& bit) { return bit; });
  }
  bool half_base(unsigned pipe, std::uint32_t slot, unsigned half) {
    return bases_[half].operate(pipe, slot, [](std::uint8_t& base) { return base != 0; });
  }

 private:
  // How the window base moved.
  struct Move {
    std::uint32_t before, after;
    bool moved() const { return before != after; }
  };
  template <class Access>
  Move move_base(Access& access, const PacketState& p, Slot slot, std::uint32_t to, bool sent);
  template <class Access>
  bool turn_halves(Access& access, const PacketState& p, Slot slot, Move move);
  template <class Access>
  bool settle_half(Access& access, const PacketState& p, Slot slot, Move move);
  template <class Access>
  Decision acknowledge(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool doubt);
  template <class Access>
  Decision resolve(Access& access, const PacketState& p, Slot slot, std::uint32_t psn, bool sprayed);

  std::uint32_t bit_in_slot(Slot slot, std::uint32_t psn) const { return (psn - slot.origin) & (2 * window_ - 1); }
  std::uint64_t bit_of(Slot slot, std::uint32_t psn) const {
    return std::uint64_t{slot.number} * 2 * window_ + bit_in_slot(slot, psn);
  }
  unsigned half_of(Slot slot, std::uint32_t psn) const { return bit_in_slot(slot, psn) >= window_; }
  std::uint64_t path_cell(Slot slot, std::uint32_t path) const {
    return std::uint64_t{slot.number} * paths_max_ + path;
  }

  // For each half of the bitmap how many of its bits say "received"; and, as the lowest bit, that some of these do not
  // prove it: they were not written in the round before.
  struct HalfCounts {
    std::uint32_t half[2];
  };

  Modulo modulo_;
  unsigned pipes_;
  std::uint32_t paths_max_, window_;
  std::int32_t window_packets_, ooo_threshold_;
  bool path_check_, lazy_dropping_;
  RegisterArray<PsnCell> highest_psn_;
  RegisterArray<PsnCell> epsn_array_;
  RegisterArray<std::uint8_t> bases_[2];
  RegisterArray<PsnCell> doubt_until_;  // a NACK before this PSN passes
  RegisterArray<std::uint8_t> far_count_;
  RegisterArray<bool> bitmap_array_;
  RegisterArray<PsnCell> path_psn_max_array_;
  RegisterArray<HalfCounts> half_counts_;
  RegisterArray<PsnCell> stashed_nack_psn_;
  RegisterArray<std::uint32_t> stash_nack_path_id_;
  RegisterArray<std::uint8_t> stashed_nack_valid_;
  RegisterArray<std::uint32_t> stash_nack_qpn_, stash_nack_aeth_, stash_time_;
  RegisterArray<std::uint16_t> stash_nack_egress_port_;
};

}  // namespace rocebox::themis

#include "kernels/themis/destination_logic.h"
