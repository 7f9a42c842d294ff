// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a link.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/link/match.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::link {

/// What an event does; kNone: not written, which is refused.
enum class Action : std::int8_t { kNone = -1, kDrop, kDelay, kDuplicate, kReorder, kCorrupt, kTrim, kMark };
std::string_view action_name(Action action);

/// What becomes of the ICRC of a packet whose bits are flipped.
enum class Icrc : std::uint8_t {
  kKept,      ///< it tells
  kRepaired,  ///< it follows the flip: right stays right, wrong stays wrong, and the flip cannot be seen
};

/// One explicit fault: which packet, and what happens to it.
struct Event : Match {
  std::int64_t packet = 0;         ///< number in its direction, from 1; 0: chosen by the conditions
  std::int64_t psn = -1;           ///< a further condition; -1: none
  std::int64_t relative_psn = -1;  ///< the same for requests, counted from the first PSN seen; -1: none
  std::int64_t occurrence = 1;     ///< which of the packets for which all conditions hold; 0: each
  Action action = Action::kNone;
  Nanos by = 0;                        ///< kDelay
  std::int64_t packets = 1;            ///< kReorder
  std::int64_t copies = 1;             ///< kDuplicate
  std::int64_t offset = -1, mask = 0;  ///< kCorrupt; -1 and 0: random
  Icrc icrc = Icrc::kKept;             ///< kCorrupt

  /// Neither a packet number nor a PSN leads to it: every packet is looked at.
  bool is_scanned() const { return packet == 0 && psn < 0 && relative_psn < 0; }
  bool operator==(const Event&) const = default;
  void fields(Fields& fields);

 private:
  void check_choice(Fields& fields) const;
  void check_action(Fields& fields) const;
};

/// Gilbert-Elliott loss. The state changes before each packet, then that state's loss applies to
/// the packet.
struct BurstLoss {
  double enter = 0;  ///< probability per packet of good to bad; 0 switches the group off
  double leave = 0;  ///< probability per packet of bad to good
  double loss_good = 0, loss_bad = 1;
  bool operator==(const BurstLoss&) const = default;
  void fields(Fields& fields);
};

/// Marking by queue occupancy.
struct Ecn {
  std::uint64_t min = 0, max = 0;  ///< bytes; max 0 switches the group off
  double probability = 1;          ///< at max
  bool operator==(const Ecn&) const = default;
  void fields(Fields& fields);
};

enum class QueueFull : std::uint8_t { kDrop, kTrim };

struct DirectionConfig {
  bool up = true;
  std::uint64_t rate = 0;                        ///< bits per second; 0: unlimited
  std::uint64_t overhead = 24;                   ///< bytes on the wire beyond the frame: preamble 8, FCS 4, gap 12
  std::uint64_t queue = std::uint64_t{1} << 20;  ///< bytes
  QueueFull queue_full = QueueFull::kDrop;
  Ecn ecn;
  Nanos delay = 0, jitter = 0;
  bool jitter_reorders = false;
  double reorder = 0;
  std::int64_t reorder_by = 3;
  Nanos reorder_timeout = 10 * kMillisecond;
  double duplicate = 0, corrupt = 0, loss = 0, trim = 0, mark = 0;
  BurstLoss burst_loss;
  Icrc corrupt_icrc = Icrc::kKept;
  Match match;                   ///< packets that the random faults may befall
  std::int64_t trim_dscp = -1;   ///< -1: as it was
  std::int64_t packets = 65536;  ///< held at once
  std::vector<Event> events;

  bool operator==(const DirectionConfig&) const = default;
  void fields(Fields& fields);

 private:
  void random_fields(Fields& fields);
  void check(Fields& fields) const;
};

struct Config {
  DirectionConfig forward, reverse;
  /// Options at the top hold for each direction on its own; `forward` and `reverse` override them.
  void fields(Fields& fields);
  WireFacts wire_facts(Port from) const {
    const DirectionConfig& direction = from == 0 ? forward : reverse;
    return {direction.rate, direction.delay};
  }
};

}  // namespace rocebox::link
