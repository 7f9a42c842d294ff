// SPDX-License-Identifier: BSD-3-Clause
// How far a command is, for who looks on.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace rocebox::cli {

/// A line on the terminal that standard error is, which takes the place of the one before and goes with this. Silent in
/// a pipe.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (!text_.empty()) std::fputs(kOver, stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return shown_; }
  void show(const std::string& text) {
    if (!shown_ || text == text_) return;
    text_ = text;
    fmt::print(stderr, "{}{}", kOver, text);
    std::fflush(stderr);
  }

 private:
  static constexpr const char* kOver = "\r\033[K";
  const bool shown_;
  std::string text_;
};

}  // namespace rocebox::cli
