// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/config/document.h"
#include "runtime/config/units.h"
#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr std::string_view kTransparent[] = {"devices", "links", "kernels", "counters", "ports"};

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t dot = path.find('.');
    words.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    path.remove_prefix(dot + 1);
  }
}

// The number that words[first...] lead to, looking through the transparent levels; null when there is none. `best`
// keeps the first place of the deepest level reached, for the message.
const Json* follow(const Json& at, const std::vector<std::string>& words, std::size_t first,
                   std::pair<std::size_t, const Json*>& best) {
  if (first > best.first) best = {first, &at};
  if (first == words.size()) return at.is_number() || at.is_boolean() ? &at : nullptr;
  const std::string& word = words[first];
  if (at.is_array()) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (word == "count" && first + 1 == words.size()) {
      thread_local Json count;
      count = at.size();
      return &count;
    }
    return error == std::errc() && *end == 0 && index < at.size() ? follow(at[index], words, first + 1, best) : nullptr;
  }
  if (!at.is_object()) return nullptr;
  for (const std::string& key : {word, word + "_ns"})
    if (at.contains(key))
      if (const Json* found = follow(at[key], words, first + 1, best)) return found;
  for (std::string_view key : kTransparent)
    if (at.contains(key) && word != key)
      if (const Json* found = follow(at[std::string(key)], words, first, best)) return found;
  return nullptr;
}

// Keys that may come next, through the transparent levels.
void collect_keys(const Json& at, std::vector<std::string>& keys) {
  if (!at.is_object()) return;
  for (const auto& [key, value] : at.items()) {
    if (std::find(std::begin(kTransparent), std::end(kTransparent), key) != std::end(kTransparent))
      collect_keys(value, keys);
    else
      keys.push_back(key);
  }
}

bool is_path_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%'; }

}  // namespace

Expectation::Expectation(std::string text) : text_(std::move(text)) {
  for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
    const std::size_t at = text_.find(op);
    if (at == std::string::npos) continue;
    operator_ = op;
    left_ = parse_sum(std::string_view(text_).substr(0, at), text_);
    right_ = parse_sum(std::string_view(text_).substr(at + op.size()), text_);
    return;
  }
  throw ConfigError(fmt::format("`{}` is no condition: write such as `tap.inspect.naks == 0`", text_));
}

std::vector<Expectation::Term> Expectation::parse_sum(std::string_view text, const std::string& whole) {
  std::vector<Term> terms;
  int sign = 1;
  text = config::trimmed(text);
  if (text.size() > 1 && text[0] == '-' && text[1] != ' ') {  // a sign before the first term
    sign = -1;
    text.remove_prefix(1);
  }
  for (text = config::trimmed(text); !text.empty(); text = config::trimmed(text)) {
    std::size_t size = 0;
    // A `-` inside a name belongs to the name; one between blanks is a minus.
    while (size < text.size() && (is_path_char(text[size]) || (text[size] == '-' && size > 0 && text[size - 1] != ' ')))
      size++;
    const std::string word(text.substr(0, size));
    if (word.empty())
      throw ConfigError(fmt::format("`{}` is no condition: expected a number or a name at `{}`", whole, text));
    Term term{sign, 0, ""};
    if (const auto integer = config::parse_integer(word))
      term.number = static_cast<double>(*integer);
    else if (const auto duration = config::parse_duration(word))
      term.number = static_cast<double>(*duration);
    else if (const auto rate = config::parse_rate(word))
      term.number = static_cast<double>(*rate);
    else if (const auto bytes = config::parse_bytes(word))
      term.number = static_cast<double>(*bytes);
    else if (const auto fraction = config::parse_fraction(word))
      term.number = *fraction;
    else
      term.path = word;
    terms.push_back(std::move(term));
    text = config::trimmed(text.substr(size));
    if (text.empty()) return terms;
    if (text[0] != '+' && text[0] != '-')
      throw ConfigError(fmt::format("`{}` is no condition: expected + or - at `{}`", whole, text));
    sign = text[0] == '+' ? 1 : -1;
    text.remove_prefix(1);
  }
  throw ConfigError(fmt::format("`{}` is no condition: one side is empty", whole));
}

bool Expectation::resolves(const Json& report, std::string& why) const {
  for (const auto* side : {&left_, &right_}) {
    for (const Term& term : *side) {
      if (term.path.empty()) continue;
      const std::vector<std::string> words = split_path(term.path);
      std::pair<std::size_t, const Json*> best{0, &report};
      if (follow(report, words, 0, best)) continue;
      std::vector<std::string> keys;
      collect_keys(*best.second, keys);
      why = best.first == words.size() ? fmt::format("`{}`: `{}` is not a number but a group{}", text_, term.path,
                                                     config::suggestion("", keys))
                                       : fmt::format("`{}`: the report has no `{}`{}", text_, words[best.first],
                                                     config::suggestion(words[best.first], keys));
      return false;
    }
  }
  return true;
}

double Expectation::sum(const std::vector<Term>& terms, const Json& report) {
  double total = 0;
  for (const Term& term : terms) {
    double value = term.number;
    if (!term.path.empty()) {
      std::pair<std::size_t, const Json*> best{0, &report};
      const Json* found = follow(report, split_path(term.path), 0, best);
      value = !found ? 0 : found->is_boolean() ? (found->get<bool>() ? 1 : 0) : found->get<double>();
    }
    total += term.sign * value;
  }
  return total;
}

Expectation::Result Expectation::evaluate(const Json& report) const {
  const double left = sum(left_, report), right = sum(right_, report);
  const bool holds = operator_ == "=="   ? left == right
                     : operator_ == "!=" ? left != right
                     : operator_ == "<"  ? left < right
                     : operator_ == "<=" ? left <= right
                     : operator_ == ">"  ? left > right
                                         : left >= right;
  return {holds, fmt::format("{}", left), fmt::format("{}", right)};
}

}  // namespace rocebox
