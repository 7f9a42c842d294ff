// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a link.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/kernel/fields.h"

namespace rocebox::link {

inline constexpr std::size_t kEventsMax = 4096;
inline constexpr std::int64_t kCopiesMax = 16;  ///< copies of one packet, by events and at random together
inline constexpr std::int64_t kReorderByMax = 4096;
inline constexpr Nanos kDelayMax = 10 * kSecond;

enum class Action : std::uint8_t { kDrop, kDelay, kDuplicate, kReorder, kCorrupt, kTrim, kMark };
std::string_view action_name(Action action);

/// One explicit fault: which packet, and what happens to it.
struct Event {
  std::int64_t packet = 0;          ///< number in its direction, from 1; 0: chosen by QPN and PSN
  std::int64_t qpn = -1, psn = -1;  ///< destination QP and PSN; -1: chosen by number
  std::int64_t occurrence = 1;      ///< which time this QPN and PSN passes; 0: every time
  std::int64_t opcode = -1;         ///< only packets with this opcode count; -1: all
  Action action = Action::kDrop;
  Nanos by = 0;                        ///< kDelay
  std::int64_t packets = 1;            ///< kReorder
  std::int64_t copies = 1;             ///< kDuplicate
  std::int64_t offset = -1, mask = 0;  ///< kCorrupt; -1 and 0: random

  void fields(Fields& fields);

 private:
  void check(Fields& fields) const;
};

/// Gilbert-Elliott loss. The state changes before each packet, then that state's loss applies to
/// the packet.
struct BurstLoss {
  double enter = 0;  ///< probability per packet of good to bad; 0 switches the group off
  double leave = 0;  ///< probability per packet of bad to good
  double loss_good = 0, loss_bad = 1;
  void fields(Fields& fields);
};

/// Marking by queue occupancy.
struct Ecn {
  std::uint64_t min = 0, max = 0;  ///< bytes; max 0 switches the group off
  double probability = 1;          ///< at max
  void fields(Fields& fields);
};

enum class QueueFull : std::uint8_t { kDrop, kTrim };

struct DirectionConfig {
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
  std::int64_t trim_dscp = -1;   ///< -1: as it was
  std::int64_t packets = 65536;  ///< held at once
  std::vector<Event> events;

  void fields(Fields& fields);

 private:
  void random_fields(Fields& fields);
  void check(Fields& fields) const;
};

struct Config {
  DirectionConfig forward, reverse;
  /// Options at the top hold for each direction on its own; `forward` and `reverse` override them.
  void fields(Fields& fields);
};

}  // namespace rocebox::link
