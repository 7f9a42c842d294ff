// SPDX-License-Identifier: BSD-3-Clause
// What every output of a run is written through: captures, traces, reports.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/capture/direct_stream.h"

namespace rocebox {

/// One output. A regular file is whole or not there: its bytes go to `NAME.part` (another name when that is taken)
/// until publish() gives it its name, and the destructor removes what was not published. Links are followed. Standard
/// output, pipes, devices and /dev/fd/N are written directly. Errors of writing are kept until close().
class OutputFile {
 public:
  /// `path`: `-` is standard output (`-.pcapng` too, for captures). Throws ConfigError naming file and reason when it
  /// cannot be opened, std::runtime_error when the run is to end before somebody reads from a named pipe.
  explicit OutputFile(const std::string& path, Waiting waiting = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t size) {
    if (std::fwrite(data, 1, size, file_) != size) keep_error();
  }
  /// Whether someone may be waiting for the bytes: a pipe, a terminal.
  bool direct() const { return part_.empty(); }
  void flush() {
    if (std::fflush(file_) != 0) keep_error();
  }
  /// "NAME: cannot be written: REASON" when a write failed, else empty. Cheap.
  std::string failed() const;
  /// Everything is with the system then. Throws std::runtime_error with failed().
  void close();
  /// Gives the closed file its name. Throws std::runtime_error.
  void publish();

  /// For messages: the path as given, or "standard output".
  const std::string& name() const { return name_; }

 private:
  void open_part(unsigned mode);
  void open_direct(int descriptor, Waiting waiting);
  void keep_error();

  std::string name_, path_, part_;  // path_: where links lead; part_: empty when written directly
  std::FILE* file_ = nullptr;
  std::unique_ptr<DirectStream> direct_;  // behind file_, but for a regular file
  int error_ = 0;
  std::vector<char> buffer_;
};

/// Files that runs which were killed left beside `path`, an output: nobody writes them any more, as far as their locks
/// tell. They may be removed.
std::vector<std::string> left_behind(const std::string& path);

/// Throws ConfigError for a name that promises a packed file (.gz, .zst), which none of our outputs is.
void refuse_packed_name(const std::string& path);

/// `-`, /dev/stdout and whatever else leads to descriptor 1.
bool is_standard_output(const std::string& path);

}  // namespace rocebox
