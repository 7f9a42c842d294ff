// SPDX-License-Identifier: BSD-3-Clause
// What a command printed, as the report has it.
#pragma once
#include <string>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox::lab {

/// How much of a command's output is looked at.
inline constexpr std::size_t kOutputBytesMax = std::size_t{16} << 20;
/// How much of one line.
inline constexpr std::size_t kLineBytesMax = 4096;

/// Adds the numbers that the rules ("NAME = REGULAR EXPRESSION", checked before) find in `text`, line by line; the last
/// match counts.
void add_numbers(const std::vector<std::string>& rules, const std::string& text, Json& row);

/// Whether a process of that number, or another in its network namespace, listens on a TCP port.
bool is_listening(int process, unsigned port);

/// Names that a row of the report has anyway, so that no number can have them.
bool is_name_of_report(const std::string& name);

}  // namespace rocebox::lab
