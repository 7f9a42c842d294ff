// SPDX-License-Identifier: BSD-3-Clause
// Expectations: conditions over the report, so that a configuration is also a test.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// `SUM OP SUM`, OP one of == != < <= > >=; a SUM is terms joined by + and -; a term is a number (with a unit where
/// the report has a time) or a dotted path into the report. In a path the words devices, links, kernels, counters and
/// ports may be left out: `tap.inspect.naks`, `wan.forward_drop_loss`, `outputs.0.packets`.
class Expectation {
 public:
  /// Throws ConfigError when the text is no condition.
  explicit Expectation(std::string text);

  /// Whether every path leads to a number in `report`; explains in `why` with the nearest known word otherwise.
  bool resolves(const Json& report, std::string& why) const;

  struct Result {
    bool holds;
    std::string left, right;  ///< the values of both sides
  };
  /// Needs resolves(report).
  Result evaluate(const Json& report) const;
  const std::string& text() const { return text_; }

 private:
  struct Term {
    int sign;
    double number;  // when path is empty
    std::string path;
  };
  static std::vector<Term> parse_sum(std::string_view text, const std::string& whole);
  static double sum(const std::vector<Term>& terms, const Json& report);

  std::string text_, operator_;
  std::vector<Term> left_, right_;
};

}  // namespace rocebox
