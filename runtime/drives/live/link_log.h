// SPDX-License-Identifier: BSD-3-Clause
// LinkLog: what is said of the link of one port, and how often.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/component/fields.h"
#include "runtime/kernel/counter.h"

namespace rocebox {

/// Up: packets can pass. Down: its interface is there, but set down, without carrier or without a peer. Gone: its
/// interface or device is not there any more.
enum class LinkState : std::uint8_t { kUp, kDown, kGone };
std::string_view name_of(LinkState state);

/// What becomes of a port whose interface is gone.
enum class WhenGone : std::uint8_t {
  kTakenUp,  ///< waits, and is taken up again when an interface of its name is there
  kStays,    ///< stays gone: what was made for the run is gone with the interface
  kRunEnds,  ///< the run ends: the configuration says so
};

/// Changes are said at once as long as they are rare, and in one line for many where a link flaps.
class LinkLog {
 public:
  /// Lines that may follow one another at once, and the time that each gives back: a link that flaps for ever fills no
  /// disk.
  static constexpr int kLinesAtOnce = 4;
  static constexpr Nanos kPerLine = 5 * kSecond;

  explicit LinkLog(WhenGone when_gone) : when_gone_(when_gone) {}

  /// The state of the link at some time; the first is not a change.
  void see(LinkState state);
  /// What is to be said at `now`: a sentence without a subject; empty: nothing.
  std::string line(Nanos now);

  /// How often the link went down, or its interface away.
  std::uint64_t down_events() const { return down_events_.read(); }

 private:
  WhenGone when_gone_;
  bool seen_ = false, was_gone_ = false;
  LinkState now_ = LinkState::kUp, said_ = LinkState::kUp;
  Counter down_events_;
  std::uint64_t downs_said_ = 0;
  int lines_ = kLinesAtOnce;
  Nanos counted_at_ = 0;  // lines_
};

}  // namespace rocebox
