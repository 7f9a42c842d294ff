// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/expectations.h"

#include <fmt/format.h>

namespace rocebox {

void Expectations::read(const std::string& file, const std::vector<config::ExpectationText>& expectations,
                        const Json& skeleton, const std::vector<std::string>& settings) {
  std::string mistakes;
  for (const config::ExpectationText& expectation : expectations) {
    const std::string place = config::place_text(file, expectation.place, {}, settings);
    std::string why;
    try {
      Expectation parsed(expectation.text);
      if (parsed.may_resolve(skeleton, why)) {
        all_.push_back({place, std::move(parsed)});
        continue;
      }
    } catch (const ConfigError& error) {
      why = error.what();
    }
    mistakes += fmt::format("{}{}: {}", mistakes.empty() ? "" : "\n", place, why);
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
}

void Expectations::add_to(Json& report) const {
  if (all_.empty()) return;
  Json rows = Json::array();
  for (const auto& [place, expectation] : all_) {
    const Expectation::Result result = expectation.evaluate(report);
    rows.push_back(
        {{"holds", result.holds}, {"expect", expectation.text()}, {"left", result.left}, {"right", result.right}});
  }
  report["expectations"] = std::move(rows);
}

bool Expectations::accept(std::string_view path, const Json& report) const {
  bool any = false;
  for (const auto& [place, expectation] : all_) {
    if (!expectation.looks_at(path)) continue;
    if (!expectation.evaluate(report).holds) return false;
    any = true;
  }
  return any;
}

std::vector<std::string> Expectations::failures(const Json& report) const {
  std::vector<std::string> lines;
  for (const auto& [place, expectation] : all_) {
    const Expectation::Result result = expectation.evaluate(report);
    if (!result.holds) lines.push_back(fmt::format("{}: {}", place, expectation.failure(result)));
  }
  return lines;
}

std::string json_text(const Json& report) { return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace rocebox
