// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/telemetry/text_cells.h"

namespace rocebox {
namespace {

// A look is due this share of the run's time later.
constexpr Nanos kLooksPerTime = 8, kLookAfterMin = kMicrosecond;

}  // namespace

void Watchdog::look(const Progress& progress, bool more_comes, Nanos now, Nanos ran_to) {
  const Nanos first = std::exchange(begun_since_look_, kNever);
  if (progress.steps != steps_) {
    advanced_from_ = std::min(first, now);
    advanced_to_ = std::max(now, ran_to);
  }
  if (progress.steps != steps_ || more_comes) {
    counts_from_ = now;
    waits_until_ = progress.waits_until;
  }
  waits_until_ = std::min(waits_until_, progress.waits_until);  // what was called off is not waited for
  steps_ = progress.steps;
  if (is_off()) return;
  const Nanos longest = std::max<Nanos>(1, patience_ / 4);
  look_at_ = now + std::min(std::max(now / kLooksPerTime, kLookAfterMin), longest);
}

Nanos Watchdog::told_at() const { return std::max(counts_from_ + patience_, waits_until_ + 1); }

std::string Watchdog::since() const {
  const std::string to = report_value("since_ns", advanced_to_);
  if (advanced_from_ == advanced_to_) return "since " + to;
  return fmt::format("since some time between {} and {}", report_value("since_ns", advanced_from_), to);
}

}  // namespace rocebox
