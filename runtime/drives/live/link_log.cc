// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/link_log.h"

#include <fmt/format.h>

#include <utility>

namespace rocebox {

std::string_view name_of(LinkState state) {
  return state == LinkState::kUp ? "up" : state == LinkState::kDown ? "down" : "gone";
}

void LinkLog::see(LinkState state) {
  if (seen_ && now_ == LinkState::kUp && state != LinkState::kUp) down_events_.add();
  seen_ = true;
  now_ = state;
  was_gone_ |= state == LinkState::kGone;
}

std::string LinkLog::line(Nanos now) {
  const std::uint64_t downs = down_events_.read() - downs_said_;
  if (now_ == said_ && downs == 0) return "";
  const auto given_back = static_cast<int>(std::min<Nanos>((now - counted_at_) / kPerLine, kLinesAtOnce));
  if (given_back > 0) {
    lines_ = std::min(lines_ + given_back, kLinesAtOnce);
    counted_at_ += given_back * kPerLine;
  }
  if (lines_ == 0) return "";
  if (lines_-- == kLinesAtOnce) counted_at_ = now;
  const LinkState before = std::exchange(said_, now_);
  downs_said_ += downs;
  if (now_ == LinkState::kGone) {
    was_gone_ = false;
    switch (when_gone_) {
      case WhenGone::kTakenUp:
        return "its interface is gone; it is taken up again when one of that name is there";
      case WhenGone::kStays:
        return "its interface is gone, and what was made on it for this run with it: start the run again";
      case WhenGone::kRunEnds:
        return "its interface is gone: what is held leaves, and the run ends";
    }
  }
  std::string text = fmt::format(
      "{}its link is {}",
      std::exchange(was_gone_, false) || before == LinkState::kGone ? "its interface is there again, and " : "",
      name_of(now_));
  // One time is told by the state itself.
  const std::uint64_t untold = downs - (now_ == LinkState::kDown && before == LinkState::kUp && downs > 0);
  if (untold > 0) text += fmt::format("; it went down {} time{} meanwhile", untold, untold == 1 ? "" : "s");
  return text;
}

}  // namespace rocebox
