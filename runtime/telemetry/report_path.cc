// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/report_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/config/document.h"
#include "runtime/config/units.h"
#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr std::string_view kTransparent[] = {"devices", "links", "kernels", "counters", "ports"};

// Keys that may come next, through the transparent levels and the first row of a table.
void collect_keys(const Json& at, std::vector<std::string>& keys) {
  if (at.is_array() && !at.empty()) return collect_keys(at[0], keys);
  if (!at.is_object()) return;
  for (const auto& [key, value] : at.items()) {
    if (std::find(std::begin(kTransparent), std::end(kTransparent), key) != std::end(kTransparent))
      collect_keys(value, keys);
    else
      keys.push_back(key);
  }
}

// Whether a row's value is what the path says: numbers by value (0x11, 0x000011, 17), texts as they stand.
bool same(const Json& value, const std::string& text) {
  const auto number = config::parse_integer(text);
  if (value.is_string()) {
    const auto& held = value.get_ref<const std::string&>();
    return held == text || (number && config::parse_integer(held) == number);
  }
  if (value.is_boolean()) return text == (value.get<bool>() ? "true" : "false");
  return value.is_number() && number && value.get<double>() == static_cast<double>(*number);
}

}  // namespace

// One way through a report. Keeps the deepest level reached, for the message.
struct ReportPath::Walk {
  const std::vector<Step>& steps;
  std::size_t deepest = 0;
  const Json* at_deepest = nullptr;
  bool later = false;

  std::optional<double> from(const Json& at, std::size_t first) {
    if (!at_deepest || first > deepest) {
      deepest = first;
      at_deepest = &at;
    }
    if (first == steps.size()) {
      if (at.is_boolean()) return at.get<bool>() ? 1 : 0;
      return at.is_number() ? std::optional(at.get<double>()) : std::nullopt;
    }
    if (at.is_array()) return row(at, first);
    return at.is_object() && !steps[first].word.empty() ? member(at, first) : std::nullopt;
  }

  std::optional<double> member(const Json& at, std::size_t first) {
    const std::string& word = steps[first].word;
    for (const std::string& key : {word, word + "_ns"})
      if (at.contains(key))
        if (const auto found = from(at[key], first + 1)) return found;
    for (std::string_view key : kTransparent)
      if (at.contains(key) && word != key)
        if (const auto found = from(at[std::string(key)], first)) return found;
    return std::nullopt;
  }

  std::optional<double> row(const Json& rows, std::size_t first) {
    const Step& step = steps[first];
    if (step.word == "count" && first + 1 == steps.size()) return static_cast<double>(rows.size());
    if (rows.empty()) later = true;
    if (!step.word.empty()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(step.word.data(), step.word.data() + step.word.size(), index);
      if (error != std::errc() || *end != 0 || index >= rows.size()) return std::nullopt;
      return from(rows[index], first + 1);
    }
    if (step.match.empty()) {
      double sum = 0;
      for (const Json& each : rows) sum += from(each, first + 1).value_or(0);
      return rows.empty() ? std::nullopt : std::optional(sum);
    }
    const Json* found = nullptr;
    for (const Json& each : rows) {
      const bool fits = std::all_of(step.match.begin(), step.match.end(), [&](const auto& pair) {
        return each.contains(pair.first) && same(each[pair.first], pair.second);
      });
      if (fits && found) return std::nullopt;  // more than one: none is meant
      if (fits) found = &each;
    }
    return found ? from(*found, first + 1) : std::nullopt;
  }
};

ReportPath::Step ReportPath::parse_rows(std::string_view inside, std::string_view whole) {
  Step step;
  if (config::trimmed(inside) == "*") return step;
  while (true) {
    const std::size_t comma = inside.find(',');
    const std::string_view pair = inside.substr(0, comma);
    const std::size_t equals = pair.find('=');
    const std::string_view key = config::trimmed(pair.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : config::trimmed(pair.substr(equals + 1));
    if (key.empty() || value.empty())
      throw ConfigError(fmt::format(
          "`{}`: write the row of a table such as [qpn=0x11, service=RC], or [*] for the sum of all", whole));
    step.match.emplace_back(key, value);
    if (comma == std::string_view::npos) return step;
    inside.remove_prefix(comma + 1);
  }
}

ReportPath::ReportPath(std::string_view text) : text_(text) {
  while (true) {
    const std::size_t end = std::min(text.find_first_of(".["), text.size());
    steps_.push_back({std::string(text.substr(0, end)), {}});
    if (steps_.back().word.empty()) throw ConfigError(fmt::format("`{}`: a word is missing", text_));
    text.remove_prefix(end);
    if (text.starts_with('[')) {
      const std::size_t close = text.find(']');
      if (close == std::string_view::npos) throw ConfigError(fmt::format("`{}`: a `]` is missing", text_));
      steps_.push_back(parse_rows(text.substr(1, close - 1), text_));
      text.remove_prefix(close + 1);
    }
    if (text.empty()) return;
    if (text[0] != '.') throw ConfigError(fmt::format("`{}`: expected a dot before `{}`", text_, text));
    text.remove_prefix(1);
  }
}

ReportPath::Result ReportPath::follow(const Json& report) const {
  Walk walk{steps_};
  Result result;
  result.value = walk.from(report, 0);
  if (result.value) return result;
  result.later = walk.later;
  std::vector<std::string> keys;
  collect_keys(*walk.at_deepest, keys);
  if (walk.deepest == steps_.size())
    result.why = fmt::format("`{}` is not a number but a group{}", text_, config::suggestion("", keys));
  else if (steps_[walk.deepest].word.empty())
    result.why = fmt::format("`{}`: {} row of the table is meant", text_,
                             walk.at_deepest->is_array() ? "not exactly one" : "this is no table, so no");
  else
    result.why = fmt::format("the report has no `{}`{}", steps_[walk.deepest].word,
                             config::suggestion(steps_[walk.deepest].word, keys));
  return result;
}

}  // namespace rocebox
