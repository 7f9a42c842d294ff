// SPDX-License-Identifier: BSD-3-Clause
// What Themis-D decides on a NACK.
#pragma once
#include <cstdint>
#include <string_view>

namespace rocebox::themis {

enum class Action : std::uint8_t {
  kNone,      ///< nothing was to be decided
  kForward,   ///< the NACK that came passes
  kBlock,     ///< the NACK that came is dropped
  kStash,     ///< the NACK that came is dropped, and its ePSN kept
  kGenerate,  ///< a NACK is made from the stash
  kDiscard,   ///< the stash is given up
};
enum class Reason : std::uint8_t {
  kNone,
  kInvalid,       ///< its packet has left for the NIC
  kValid,         ///< a later packet of its path has come: it is lost
  kUndetermined,  ///< neither
  kBehindWindow,  ///< before the window: not understood
  kBeforeState,   ///< the same, and nothing has been acknowledged since the QP got its state: that came too late for it
  kAheadOfData,   ///< beyond the window or all that was sent: not understood
  kDoubt,         ///< the bitmap does not prove that its packet came
  kOtherNak,      ///< not a PSN sequence error
  kOooDegree,     ///< the OOO degree exceeds the threshold: its path is given up
  kAcknowledged,  ///< an ACK goes beyond the stash
  kAged,          ///< the stash has waited for longer than paths differ
};
inline constexpr unsigned kReasons = 12;
std::string_view action_name(Action action);
std::string_view reason_name(Reason reason);

/// What a NACK that is made from the stash needs to know of the one that was stashed.
struct StashedNack {
  std::uint32_t epsn = 0;
  std::uint32_t qpn = 0;   ///< the requester's QP
  std::uint32_t aeth = 0;  ///< syndrome and MSN, as in the AETH
  std::uint16_t exit = 0;  ///< port by which it was to leave for the sender
};

struct Decision {
  Action action = Action::kNone;
  Reason reason = Reason::kNone;
  bool avoid = false;        ///< the NACK is a Path Avoidance Signal
  bool begins_anew = false;  ///< what came is so far outside the window that the slot is to be made again there
  bool ends_stash = false;   ///< of kForward: what came acknowledges the stash, too
  StashedNack stash{};       ///< of kGenerate and kDiscard; of discarded ones the ePSN only

  explicit operator bool() const { return action != Action::kNone; }
};

}  // namespace rocebox::themis
