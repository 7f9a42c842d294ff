// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/config/units.h"
#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

// How much of `text` is one word: a number with its unit or a path, brackets and all. A `-` inside a name belongs to
// the name; one between blanks is a minus.
std::size_t word_size(std::string_view text) {
  std::size_t size = 0;
  for (bool inside = false; size < text.size(); size++) {
    const char c = text[size];
    if (c == '[') inside = true;
    const bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%' || c == '[' ||
                      c == ']' || (c == '-' && size > 0);
    if (!inside && !part) return size;
    if (c == ']') inside = false;
  }
  return size;
}

}  // namespace

Expectation::Expectation(std::string text) : text_(std::move(text)) {
  for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
    const std::size_t at = text_.find(op);
    if (at == std::string::npos) continue;
    operator_ = op;
    left_ = parse_sum(std::string_view(text_).substr(0, at), text_);
    right_ = parse_sum(std::string_view(text_).substr(at + op.size()), text_);
    for (const auto* side : {&left_, &right_})
      for (const Term& term : *side)
        if (term.is_truth && (side->size() > 1 || term.sign < 0 || (op != "==" && op != "!=")))
          throw ConfigError(
              fmt::format("`{}` is no condition: `true` and `false` stand alone, beside == or !=", text_));
    return;
  }
  throw ConfigError(fmt::format("`{}` is no condition: write such as `bump.a.rx_packets == 0`", text_));
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
    const std::size_t size = word_size(text);
    const std::string word(text.substr(0, size));
    if (word.empty())
      throw ConfigError(fmt::format("`{}` is no condition: expected a number or a name at `{}`", whole, text));
    Term term{sign, 0, {}};
    term.is_truth = word == "true" || word == "false";
    if (term.is_truth)
      term.number = word == "true" ? 1 : 0;
    else if (const auto integer = config::parse_integer(word))
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
      term.path.emplace(word);
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

bool Expectation::may_resolve(const Json& report, std::string& why) const {
  for (const auto* side : {&left_, &right_}) {
    for (const Term& term : *side) {
      if (!term.path) continue;
      const ReportPath::Result found = term.path->follow(report);
      if (found.value || found.later) continue;
      why = fmt::format("`{}`: {}", text_, found.why);
      return false;
    }
  }
  return true;
}

std::optional<double> Expectation::sum(const std::vector<Term>& terms, const Json& report, std::string& why) {
  double total = 0;
  for (const Term& term : terms) {
    double value = term.number;
    if (term.path) {
      const ReportPath::Result found = term.path->follow(report);
      if (!found.value) {
        why = found.why;
        return std::nullopt;
      }
      value = *found.value;
    }
    total += term.sign * value;
  }
  return total;
}

Expectation::Result Expectation::evaluate(const Json& report) const {
  std::string left_why, right_why;
  const auto left = sum(left_, report, left_why), right = sum(right_, report, right_why);
  const bool holds = left && right &&
                     (operator_ == "=="   ? *left == *right
                      : operator_ == "!=" ? *left != *right
                      : operator_ == "<"  ? *left < *right
                      : operator_ == "<=" ? *left <= *right
                      : operator_ == ">"  ? *left > *right
                                          : *left >= *right);
  const bool compares_truth = is_truth(left_) || is_truth(right_);
  const auto text = [compares_truth](double value) {
    if (compares_truth && (value == 0 || value == 1)) return std::string(value == 1 ? "true" : "false");
    return fmt::format("{}", value);
  };
  return {holds, left ? text(*left) : left_why, right ? text(*right) : right_why, left.has_value(), right.has_value()};
}

bool Expectation::looks_at(std::string_view path) const {
  const auto is_it = [path](const Term& term) { return term.path && term.path->text() == path; };
  return std::ranges::any_of(left_, is_it) || std::ranges::any_of(right_, is_it);
}

std::string Expectation::failure(const Result& result) const {
  if (!result.has_left || !result.has_right)
    return fmt::format("expected `{}`, which has no value: {}", text_, result.has_left ? result.right : result.left);
  const std::size_t at = text_.find(operator_);
  const std::string_view whole = text_;
  std::string values;
  for (const auto& [side, value] : {std::pair(config::trimmed(whole.substr(0, at)), result.left),
                                    std::pair(config::trimmed(whole.substr(at + operator_.size())), result.right)})
    if (side != value) values += fmt::format("{}`{}` is {}", values.empty() ? "" : ", ", side, value);
  return fmt::format("expected `{}`{}{}", text_, values.empty() ? "" : ": ", values);
}

}  // namespace rocebox
