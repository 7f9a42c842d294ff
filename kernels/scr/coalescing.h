// SPDX-License-Identifier: BSD-3-Clause
// Coalescing: events of one flow and kind that wait for a thread become one (SCR, 4.3.2).
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/scr/include/rocebox_scr.h"

namespace rocebox::scr {

using Event = scr_event;

/// What a host tells of a flow, or of the node (SCR_NODE).
inline Event host_event(std::int64_t at, std::uint32_t flow, scr_host detail) {
  Event event{};
  event.time = event.since = at;
  event.flow = flow;
  event.count = 1;
  event.kind = SCR_HOST;
  event.detail = detail;
  return event;
}

/// What becomes of an event when one like it waits already. A strategy is a row of kStrategies: a name, and a function.
enum class Strategy : std::uint8_t {
  kAccumulate,  ///< bytes and counts add up; the rest is the newest's: what the hardware does
  kKeepLatest,  ///< the newest takes the place of what waits
  kKeepOldest,  ///< the newest is dropped
  kRateStable,  ///< kAccumulate, and of flows whose rate does not change so many at a time are handled
  kNone,        ///< each stands by itself
};

struct StrategyRow {
  std::string_view name;
  /// Takes `next` into `waiting`; false: it stands by itself.
  bool (*merge)(Event& waiting, const Event& next);
};

/// Only what tells of the same thing is ever taken together: the same detail, of probes the same path, and of the node
/// its state alone, of which the newest counts.
inline bool is_alike(const Event& waiting, const Event& next) {
  return waiting.detail == next.detail &&
         (next.kind != SCR_RTT || (waiting.udp_source_port == next.udp_source_port && next.detail == 0)) &&
         (next.kind != SCR_HOST || next.flow != SCR_NODE || next.detail == SCR_HOST_PCIE ||
          next.detail == SCR_HOST_NIC);
}

inline bool accumulate(Event& waiting, const Event& next) {
  const std::int64_t since = waiting.since;
  const std::uint64_t bytes = waiting.bytes + next.bytes;
  const std::uint32_t count = waiting.count + next.count;
  waiting = next;
  waiting.since = since;
  waiting.bytes = bytes;
  waiting.count = count;
  return true;
}

inline bool keep_latest(Event& waiting, const Event& next) {
  const std::uint32_t count = waiting.count + next.count;
  waiting = next;
  waiting.count = count;
  return true;
}

inline bool keep_oldest(Event& waiting, const Event& next) {
  waiting.count += next.count;
  return true;
}

inline bool keep_apart(Event&, const Event&) { return false; }

inline constexpr StrategyRow kStrategies[] = {{"accumulate", &accumulate},
                                              {"keep_latest", &keep_latest},
                                              {"keep_oldest", &keep_oldest},
                                              {"rate_stable", &accumulate},
                                              {"none", &keep_apart}};
inline constexpr std::string_view kStrategyNames[] = {"accumulate", "keep_latest", "keep_oldest", "rate_stable",
                                                      "none"};

}  // namespace rocebox::scr
