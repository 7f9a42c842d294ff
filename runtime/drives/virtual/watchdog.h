// SPDX-License-Identifier: BSD-3-Clause
// Watchdog: since when a run has stood still, by looks at what workloads call progress.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/kernel/progress.h"

namespace rocebox {

class Watchdog {
 public:
  /// `patience`: how long a run may stand still.
  explicit Watchdog(Nanos patience) : patience_(patience) {}
  /// No look is due any more.
  void turn_off() { look_at_ = kNever; }
  bool is_off() const { return look_at_ == kNever; }
  Nanos patience() const { return patience_; }

  /// An instant begins.
  void begin(Nanos now) {
    if (begun_since_look_ == kNever) begun_since_look_ = now;
  }
  /// Whether a look is before the instant `next` begins.
  bool is_due(Nanos next) const { return next >= look_at_; }
  /// A look at what was done up to the instant `now`, when devices have been run up to `ran_to`. `more_comes`:
  /// something is still to start or to change at its time. The next one is due the later the longer the run has taken:
  /// that says well since when it stands still, and costs hardly anything.
  void look(const Progress& progress, bool more_comes, Nanos now, Nanos ran_to);
  /// What stood still may go on.
  void wait_again(Nanos now) { counts_from_ = now; }
  /// Whether nothing has advanced for too long, as far as the last look shows. Told up to a quarter of that time later.
  bool has_stood_still(Nanos now) const { return now - counts_from_ >= patience_ && now > waits_until_; }
  /// When it will have, where nothing happens until then.
  Nanos told_at() const;
  /// Since when nothing advances, for people: `since 5.000 ms`; or between which two times it came to that.
  std::string since() const;

 private:
  Nanos patience_;
  Nanos look_at_ = 0, begun_since_look_ = kNever;
  Nanos counts_from_ = 0, waits_until_ = 0;
  Nanos advanced_from_ = 0, advanced_to_ = 0;  // the last progress was then, or between both
  std::uint64_t steps_ = 0;
};

}  // namespace rocebox
