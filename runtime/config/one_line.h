// SPDX-License-Identifier: BSD-3-Clause
// A configuration in one line: a bump between two ports, as the command line says it, without a file.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox::config {

/// The ports of the device, whose path the line stands for.
inline constexpr const char* kOneLinePorts[] = {"a", "b"};

/// Device `bump` with ports `a` and `b`, and between them the kernels in the order in which they are named. Where a
/// packet comes from is said by one of `between` and `from`.
struct OneLine {
  std::vector<std::string> between;  ///< what `a` and `b` are bound to: interfaces, or bindings such as `{tap: tap0}`
  std::vector<std::string> from;     ///< captures, whose packets arrive at `a`; `-` is standard input
  std::vector<std::string> words;    ///< KERNEL [OPTION=VALUE]... [KERNEL ...]...

  bool given() const { return !between.empty() || !from.empty(); }
};

/// The configuration that a file with the same in it would give, through the same checks. In a word OPTION=VALUE the
/// option may be one of a group, `forward.loss=1%`, and a value that begins with one of {["' is read as YAML. A kernel
/// that is named again gets its name with a number, as in `delay_2`. Throws ConfigError with every mistake and the word
/// that it is in.
RunConfig load_one_line(const OneLine& line, Registry& registry);

}  // namespace rocebox::config
