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

constexpr std::size_t kNamesListed = 40;  // of what is there, where none is near: the members of a workload or a device
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

// Values of a row as a path would name them; empty for groups and tables.
std::string written(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() ? value.dump() : "";
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

// `qpn=0x39, service=RC`, as it was written.
std::string written(const std::vector<std::pair<std::string, std::string>>& match) {
  std::string text;
  for (const auto& [key, value] : match) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  return text;
}

void add_new(std::vector<std::string>& all, const std::string& one) {
  if (!one.empty() && std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

// What would tell apart the rows that match: the first key that has another value in each.
std::string telling_apart(const std::vector<const Json*>& rows) {
  constexpr std::size_t kValuesShown = 3;
  const auto names_row = [](const std::string& key, const Json& value) {  // other numbers are what was measured
    return value.is_string() || key.ends_with("qpn") || key == "number";
  };
  std::string nearest;
  std::size_t most = 1;
  for (const auto& item : rows[0]->items()) {
    const std::string& key = item.key();
    if (!names_row(key, item.value())) continue;
    std::vector<std::string> values;
    for (const Json* row : rows) add_new(values, row->contains(key) ? written((*row)[key]) : "");
    if (values.size() > most) {
      nearest = key;
      most = values.size();
    }
    if (values.size() != rows.size()) continue;
    if (rows.size() > kValuesShown) return fmt::format(": add `{}=...`", key);
    std::string text;
    for (const std::string& value : values) text += fmt::format("{}`{}={}`", text.empty() ? "" : " or ", key, value);
    return fmt::format(": add {}", text);
  }
  if (!nearest.empty()) return fmt::format(": add `{}=...`", nearest);
  return "; `[*]` is the sum over all rows";
}

// Why no row matches: a key that none has, or the values that there are.
std::string no_match(const Json& rows, const std::vector<std::pair<std::string, std::string>>& match) {
  constexpr std::size_t kValuesShown = 8;
  if (rows.empty()) return "the table is empty";
  for (const auto& pair : match) {
    const std::string& key = pair.first;
    std::vector<std::string> keys, values;
    bool matched = false;
    for (const Json& row : rows) {
      for (const auto& item : row.items())
        if (item.value().is_primitive()) add_new(keys, item.key());
      if (!row.contains(key)) continue;
      matched = matched || same(row[key], pair.second);
      add_new(values, written(row[key]));
    }
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return fmt::format("the rows have no `{}`{}", key, config::suggestion(key, keys));
    if (!matched && values.size() <= kValuesShown)
      return fmt::format("no row matches `{}`; there is `{}={}`", written(match), key,
                         fmt::join(values, fmt::format("`, `{}=", key)));
  }
  return fmt::format("no row matches `{}`", written(match));
}

}  // namespace

// One way through a report. Keeps the deepest level reached, for the message.
struct ReportPath::Walk {
  const std::vector<Step>& steps;
  std::size_t deepest = 0;
  const Json* at_deepest = nullptr;
  bool later = false;
  std::string row_trouble{};  // why no single row is meant at the deepest level

  std::optional<double> from(const Json& at, std::size_t first) {
    if (!at_deepest || first > deepest) {
      deepest = first;
      at_deepest = &at;
      row_trouble.clear();
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
      if (error == std::errc() && *end == 0 && index < rows.size()) return from(rows[index], first + 1);
      return no_row(first,
                    fmt::format("the table has no `{}`: it has {} row(s), counted from 0", step.word, rows.size()));
    }
    if (step.match.empty()) return sum(rows, first);
    std::vector<const Json*> found;
    for (const Json& each : rows)
      if (std::all_of(step.match.begin(), step.match.end(), [&](const auto& pair) {
            return each.contains(pair.first) && same(each[pair.first], pair.second);
          }))
        found.push_back(&each);
    if (found.size() == 1) return from(*found[0], first + 1);
    return no_row(first, found.empty() ? no_match(rows, step.match)
                                       : fmt::format("{} rows match `{}`{}", found.size(), written(step.match),
                                                     telling_apart(found)));
  }

  // Over all rows; one that has not what is asked for adds nothing, but not all of them may lack it.
  std::optional<double> sum(const Json& rows, std::size_t first) {
    std::optional<double> all;
    for (const Json& each : rows)
      if (const auto value = from(each, first + 1)) all = all.value_or(0) + *value;
    if (rows.empty()) return no_row(first, "the table is empty");
    return all;
  }

  std::optional<double> no_row(std::size_t first, std::string why) {
    if (first == deepest) row_trouble = std::move(why);
    return std::nullopt;
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
    result.why =
        walk.at_deepest->is_structured()
            ? fmt::format("`{}` is not a number but a group{}", text_, config::suggestion("", keys, kNamesListed))
            : fmt::format("`{}` is not a number but `{}`", text_, written(*walk.at_deepest));
  else if (!walk.row_trouble.empty())
    result.why = fmt::format("`{}`: {}", text_, walk.row_trouble);
  else if (steps_[walk.deepest].word.empty())
    result.why = fmt::format("`{}`: this is no table, so it has no rows", text_);
  else
    result.why = fmt::format("`{}`: there is no `{}`{}", text_, steps_[walk.deepest].word,
                             config::suggestion(steps_[walk.deepest].word, keys, kNamesListed));
  return result;
}

}  // namespace rocebox
