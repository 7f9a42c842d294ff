// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/document.h"
#include "runtime/config/printable.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

// The one of that number, from 1; null when there is none.
const std::string* one_of(const std::vector<std::string>& texts, int number) {
  return number > 0 && static_cast<std::size_t>(number) <= texts.size() ? &texts[static_cast<std::size_t>(number) - 1]
                                                                        : nullptr;
}

}  // namespace

std::string place_text(const std::string& file, Place place, const std::vector<std::string>& words,
                       const std::vector<std::string>& settings) {
  if (const std::string* setting = one_of(settings, -place.line)) return fmt::format("{} with `{}`", file, *setting);
  if (const std::string* word = one_of(words, place.line)) return fmt::format("{}: `{}`", file, *word);
  return place.line > 0 ? fmt::format("{}:{}:{}", file, place.line, place.column) : file;
}

Place Mistakes::add_setting(std::string setting) {
  settings_.push_back(std::move(setting));
  return {-static_cast<int>(settings_.size()), 0};
}

std::string Mistakes::line_text(Place place) const {
  for (const std::string* text : {one_of(words_, place.line), one_of(settings_, -place.line)})
    if (text) return fmt::format("`{}`", *text);
  return fmt::format("line {}", place.line);
}

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
    const auto is_same = [&](const Line& own) {
      return own.message == line.message && own.file == line.file && own.place.line == line.place.line &&
             own.place.column == line.place.column;
    };
    if (std::ranges::any_of(lines_, is_same))
      repeated_++;
    else if (lines_.size() < kConfigMistakesMax)
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
    const std::string by = file == file_ ? place_text(file, place, words_, settings_) : place_text(file, place);
    text += printable(fmt::format("{}: {}", by, message));
  }
  if (more_) text += "\n" + printable(fmt::format("{}: and {} more mistakes", file_, more_));
  return text;
}

}  // namespace rocebox::config
