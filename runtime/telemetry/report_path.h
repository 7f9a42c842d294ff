// SPDX-License-Identifier: BSD-3-Clause
// Paths into a report, as expectations write them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Words joined by dots that lead to a number: `bump.a.rx_packets`, `outputs.0.packets`, `outputs.count`. The words
/// devices, links, kernels, counters and ports may be left out, and so may the unit behind a time's name. The row of
/// a table is chosen by what stands in it, `flows[qpn=0x39].requests.lost` or
/// `flows[source=10.0.0.1, service=RC].packets`; `flows[*].requests.lost` is the sum over all rows.
class ReportPath {
 public:
  /// Throws ConfigError when the text is no path.
  explicit ReportPath(std::string_view text);

  struct Result {
    std::optional<double> value;
    bool later = false;  ///< leads into a table that has no rows yet: the run will tell
    std::string why;     ///< without a value: what is missing, with the nearest known word
  };
  Result follow(const Json& report) const;
  const std::string& text() const { return text_; }

 private:
  struct Step {
    std::string word;  // empty: a row, by `match`; no match: all rows
    std::vector<std::pair<std::string, std::string>> match;
  };
  struct Walk;
  static Step parse_rows(std::string_view inside, std::string_view whole);

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace rocebox
