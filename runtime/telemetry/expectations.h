// SPDX-License-Identifier: BSD-3-Clause
// The expectations of a configuration, as a drive keeps them.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/telemetry/expect.h"

namespace rocebox {

class Expectations {
 public:
  /// Reads those that stand in `file`. Throws ConfigError that lists every one that is no condition, or that leads to
  /// nothing in `skeleton`: the report of a run that has not begun.
  void read(const std::string& file, const std::vector<config::ExpectationText>& expectations, const Json& skeleton,
            const std::vector<std::string>& settings = {});
  void read(const config::RunConfig& config, const Json& skeleton) {
    read(config.file, config.expectations, skeleton, config.settings);
  }
  /// Adds them to the report that they are about.
  void add_to(Json& report) const;
  bool hold(const Json& report) const { return failures(report).empty(); }
  /// Whether there are some about the value at `path`, all of which hold: then it is as it should be, whatever it is.
  bool accept(std::string_view path, const Json& report) const;
  /// A line for each that does not hold: where it stands, and the values of both sides.
  std::vector<std::string> failures(const Json& report) const;

 private:
  struct Placed {
    std::string place;  // file:line:column
    Expectation expectation;
  };
  std::vector<Placed> all_;
};

/// A report as JSON for files and pipes.
std::string json_text(const Json& report);

}  // namespace rocebox
