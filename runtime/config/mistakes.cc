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
  if (const std::string* word = one_of(words, place.line)) return fmt::format("{}: `{}`", file, *word);
  const std::string at = place.line > 0 ? fmt::format("{}:{}:{}", file, place.line, place.column) : file;
  const std::string* setting = one_of(settings, place.setting);
  return setting ? fmt::format("{} with {}", at, *setting) : at;
}

int Mistakes::add_setting(std::string setting) {
  settings_.push_back(std::move(setting));
  return static_cast<int>(settings_.size());
}

std::string Mistakes::line_text(Place place) const {
  if (const std::string* word = one_of(words_, place.line)) return fmt::format("`{}`", *word);
  if (const std::string* setting = one_of(settings_, place.setting); setting && place.line == 0) return *setting;
  return fmt::format("line {}", place.line);
}

// Whether it has been told. What an anchor holds, and options that a kernel reads for each direction, are looked at
// more than once; what a setting gives may stand in several places.
bool Mistakes::repeats(const Line& line) {
  for (Line& own : lines_) {
    if (own.message != line.message || own.file != line.file) continue;
    if (own.place == line.place || !line.place.is_known()) return true;
    if (line.place.setting == 0 || own.place.setting != line.place.setting) continue;
    if (std::ranges::find(own.more, line.place) == own.more.end()) own.more.push_back(line.place);
    return true;
  }
  return false;
}

void Mistakes::add(Place place, std::string message) {
  Line line{file_, place, std::move(message)};
  if (repeats(line))
    repeated_++;
  else if (lines_.size() < kConfigMistakesMax)
    lines_.push_back(std::move(line));
  else
    more_++;
}

void Mistakes::add(const Mistakes& other) {
  for (const Line& line : other.lines_)
    if (repeats(line))
      repeated_++;
    else if (lines_.size() < kConfigMistakesMax)
      lines_.push_back(line);
    else
      more_++;
  more_ += other.more_;
  repeated_ += other.repeated_;
}

void Mistakes::add_idle(Place place, std::string message) {
  const auto is_same = [&](const Line& line) { return line.place == place && line.message == message; };
  if (idle_.size() < kConfigMistakesMax && std::ranges::none_of(idle_, is_same))
    idle_.push_back({file_, place, std::move(message)});
}

void Mistakes::add_effect(Place place) {
  if (std::ranges::find(effects_, place) == effects_.end()) effects_.push_back(place);
}

std::vector<std::string> Mistakes::notes() const {
  std::vector<std::string> notes;
  for (const Line& line : idle_)
    if (std::ranges::find(effects_, line.place) == effects_.end())
      notes.push_back(
          printable(fmt::format("{}: note: {}", place_text(file_, line.place, words_, settings_), line.message)));
  return notes;
}

bool Mistakes::full() const { return lines_.size() >= kConfigMistakesMax; }

std::string Mistakes::hint_at(const Line& line) const {
  for (const auto& [place, hint] : hints_)
    if (place == line.place && line.file == file_) return hint;
  return "";
}

std::string Mistakes::text() const {
  std::string text;
  for (const Line& line : lines_) {
    if (!text.empty()) text += '\n';
    const std::string by =
        line.file == file_ ? place_text(file_, line.place, words_, settings_) : place_text(line.file, line.place);
    const std::size_t more = line.more.size();
    text +=
        printable(fmt::format("{}: {}{}{}", by, line.message, hint_at(line),
                              more == 0 ? "" : fmt::format(" (and in {} more place{})", more, more == 1 ? "" : "s")));
  }
  if (more_) text += "\n" + printable(fmt::format("{}: and {} more mistakes", file_, more_));
  return text;
}

}  // namespace rocebox::config
