// SPDX-License-Identifier: BSD-3-Clause
// EventLog: what happened to which PSNs of a flow, and when; the first so many.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/packet/packet.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {

enum class EventKind : std::uint8_t {
  kLost,  ///< skipped, and not only overtaken
  kRetransmitted,
  kDuplicate,
  kOutOfOrder,
  kUndecided,
  kTrimmed,
  kTimeout,  ///< suspected
  kRestart,
  kNak,     ///< detail: the NAK code
  kRnrNak,  ///< detail: the timer code
};
std::string_view event_name(EventKind kind);

/// Which PSN space of the flow.
enum class PsnSpace : std::uint8_t { kRequests, kResponses };

/// Something that happened to `count` PSNs in a row.
struct Event {
  Nanos at;  ///< of the first
  std::uint32_t psn, count;
  EventKind kind;
  PsnSpace space;
  std::uint8_t detail;
};
static_assert(sizeof(Event) == 24);

/// The log of one flow; its memory is the caller's, `capacity` events. Zero bytes when new.
struct EventLog {
  std::uint32_t size = 0;
  std::uint64_t unlisted = 0;  ///< events that found no room

  /// Like the one before and going on from its PSNs: one event.
  void add(Event* events, std::uint32_t capacity, const Event& event);
  /// `count` lost PSNs came after all: they were only overtaken. Looks at all events.
  void found(Event* events, std::uint32_t capacity, PsnSpace space, std::uint32_t psn, std::uint32_t count);
};

}  // namespace rocebox::inspect
