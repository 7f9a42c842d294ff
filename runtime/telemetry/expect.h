// SPDX-License-Identifier: BSD-3-Clause
// Expectations: conditions over the report, so that a configuration is also a test.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/telemetry/report_path.h"

namespace rocebox {

/// `SUM OP SUM`, OP one of == != < <= > >=; a SUM is terms joined by + and -; a term is a number (with a unit where
/// the report has a time) or a path into the report (report_path.h), whose yes and no count as 1 and 0. A SUM may be
/// `true` or `false` in their place, with == and !=.
class Expectation {
 public:
  /// Throws ConfigError when the text is no condition.
  explicit Expectation(std::string text);

  /// Whether every path leads to a number in `report`, or may do so when tables that are empty now have rows;
  /// explains in `why` with the nearest known word otherwise.
  bool may_resolve(const Json& report, std::string& why) const;

  struct Result {
    bool holds;
    std::string left, right;   ///< the values of both sides, or why one has none
    bool has_left, has_right;  ///< whether they have one
  };
  /// A side without a value makes it false.
  Result evaluate(const Json& report) const;
  /// Whether it is about the value at that path.
  bool looks_at(std::string_view path) const;
  /// What a result that does not hold is told with: "expected `a == b`: a is 1, b is 2", or why a side has no value.
  std::string failure(const Result& result) const;
  const std::string& text() const { return text_; }

 private:
  struct Term {
    int sign;
    double number;  // without a path
    std::optional<ReportPath> path;
    bool is_truth = false;  // `true` or `false`
  };
  static bool is_truth(const std::vector<Term>& terms) { return terms.size() == 1 && terms[0].is_truth; }
  static std::vector<Term> parse_sum(std::string_view text, const std::string& whole);
  // The value of a side; says in `why` what is missing otherwise.
  static std::optional<double> sum(const std::vector<Term>& terms, const Json& report, std::string& why);

  std::string text_, operator_;
  std::vector<Term> left_, right_;
};

}  // namespace rocebox
