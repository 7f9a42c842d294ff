// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "runtime/config/document.h"
#include "runtime/config/printable.h"
#include "runtime/limits.h"

namespace rocebox::config {

void Mistakes::add(Place place, std::string message) {
  // What an anchor holds, and options that a kernel reads for each direction, are looked at more than once.
  for (const Line& line : lines_)
    if (line.message == message && line.file == file_ &&
        (place.line == 0 || (line.place.line == place.line && line.place.column == place.column))) {
      repeated_++;
      return;
    }
  if (lines_.size() < kConfigMistakesMax)
    lines_.push_back({file_, place, std::move(message)});
  else
    more_++;
}

void Mistakes::add(const Mistakes& other) {
  for (const Line& line : other.lines_) {
    if (lines_.size() < kConfigMistakesMax)
      lines_.push_back(line);
    else
      more_++;
  }
  more_ += other.more_;
  repeated_ += other.repeated_;
}

bool Mistakes::full() const { return lines_.size() >= kConfigMistakesMax; }

std::string Mistakes::text() const {
  std::string text;
  for (const auto& [file, place, message] : lines_) {
    if (!text.empty()) text += '\n';
    if (const auto word = static_cast<std::size_t>(place.line); file == file_ && word > 0 && word <= words_.size())
      text += printable(fmt::format("{}: `{}`: {}", file, words_[word - 1], message));
    else
      text += printable(place.line ? fmt::format("{}:{}:{}: {}", file, place.line, place.column, message)
                                   : fmt::format("{}: {}", file, message));
  }
  if (more_) text += "\n" + printable(fmt::format("{}: and {} more mistakes", file_, more_));
  return text;
}

}  // namespace rocebox::config
