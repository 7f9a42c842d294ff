// SPDX-License-Identifier: BSD-3-Clause
// Processes that a lab starts. They are started from a vector of words, in a session of their own: a terminal's Ctrl-C
// reaches the lab, which ends them in the right order.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocebox::lab {

struct Command {
  std::vector<std::string> words;
  std::vector<std::string> environment = {};  ///< NAME=VALUE, besides our own
  std::string folder = {};                    ///< to start in; empty: where we are
  std::string out = {}, error = {};           ///< files; empty: nowhere. One name for both: one file
};

class Process {
 public:
  /// Throws std::runtime_error when it cannot be started.
  explicit Process(const Command& command);
  /// Does not end it.
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  /// Readable when the process has ended.
  int descriptor() const { return descriptor_; }
  /// Its status once it has ended: that of exit(), or 128 and the signal's number, as shells have it.
  std::optional<int> status();
  /// Sends the signal to the process and what it has started in its session, while it has not ended.
  void signal(int number);

 private:
  pid_t id_ = -1;
  int descriptor_ = -1;
  std::optional<int> status_;
};

struct CallResult {
  int status;
  std::string said;  ///< on both outputs
};
/// Runs a short command to its end. Throws std::runtime_error when it cannot be started.
CallResult call(const std::vector<std::string>& words);

/// The path of a program that the shell would find under that name; empty: there is none.
std::string find_program(const std::string& name);

/// The last lines of a text or file, for messages.
std::string last_lines(std::string_view text, std::size_t lines);
/// At most `bytes_max` from the end of a file; empty when it cannot be read.
std::string read_tail(const std::string& file, std::size_t bytes_max);

}  // namespace rocebox::lab
