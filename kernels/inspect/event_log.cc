// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/event_log.h"

#include <algorithm>

namespace rocebox::inspect {

std::string_view event_name(EventKind kind) {
  constexpr std::string_view kNames[] = {"lost",    "retransmitted",     "duplicate", "out_of_order", "undecided",
                                         "trimmed", "timeout_suspected", "restart",   "nak",          "rnr_nak"};
  return kNames[static_cast<unsigned>(kind)];
}

void EventLog::add(Event* events, std::uint32_t capacity, const Event& event) {
  if (size > 0) {
    Event& last = events[size - 1];
    const bool many = event.kind <= EventKind::kTrimmed && last.kind == event.kind && last.space == event.space;
    if (many && event.psn == roce::psn_add(last.psn, last.count)) {
      last.count += event.count;
      return;
    }
  }
  if (size == capacity || unlisted > 0) {  // the first ones without a gap
    unlisted++;
    return;
  }
  events[size++] = event;
}

void EventLog::found(Event* events, std::uint32_t capacity, PsnSpace space, std::uint32_t psn, std::uint32_t count) {
  for (std::uint32_t i = 0; i < size; i++) {
    Event& event = events[i];
    if (event.kind != EventKind::kLost || event.space != space) continue;
    // The PSNs found, counted from the event's first.
    const std::int64_t total = event.count, from = roce::psn_distance(psn, event.psn), to = from + count;
    if (to <= 0 || from >= total) continue;
    const std::int64_t before = std::max<std::int64_t>(from, 0), after = std::max<std::int64_t>(total - to, 0);
    Event rest = event;
    rest.psn = roce::psn_add(event.psn, to);
    rest.count = static_cast<std::uint32_t>(after);
    event.count = static_cast<std::uint32_t>(before);
    if (before == 0 && after == 0) {
      std::copy(events + i + 1, events + size, events + i);
      size--;
      i--;
    } else if (before == 0) {
      event = rest;
    } else if (after > 0 && size < capacity) {
      std::copy_backward(events + i + 1, events + size, events + size + 1);
      events[++i] = rest;
      size++;
    } else if (after > 0) {
      unlisted++;  // those behind the ones found have no room
    }
  }
}

}  // namespace rocebox::inspect
