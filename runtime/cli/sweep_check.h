// SPDX-License-Identifier: BSD-3-Clause
// What is checked of a sweep before its first run starts.
#pragma once
#include <vector>

#include "runtime/cli/ranks.h"
#include "runtime/cli/sweep.h"

namespace rocebox::cli {

/// The table of a sweep, in the folder of --csv.
inline constexpr const char* kSweepTable = "sweep.csv";

struct CheckedSweep {
  std::vector<SweepPoint> points = {};  ///< every combination, with its first seed
  std::vector<std::string> notes = {};  ///< of their configurations, each once
  int status = 0;                       ///< not 0: nothing is to run, and the first rank has told why
};
/// Loads every combination, and makes all that its runs need, as processes: mistakes of any run are told before the
/// first one starts. All ranks call it; the first one throws ConfigError with every mistake, one a line.
CheckedSweep check_sweep(const SimArguments& arguments, Ranks& ranks);

}  // namespace rocebox::cli
