// SPDX-License-Identifier: BSD-3-Clause
// ReplayInput: all captures of a run as one stream in time order.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/capture/capture_reader.h"
#include "runtime/config/config.h"
#include "runtime/engine/fabric.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Each file is opened once, however many ports read it and however they spell it; a record goes to the first port
/// whose filter matches. Files are merged by time, equal times by the order in which the configuration names the
/// files. Records that go back in time arrive with the latest time so far, and are counted.
class ReplayInput {
 public:
  /// Compiles the filters and opens every regular file; what has to be waited for is left to open(). Throws
  /// ConfigError with every mistake, one a line: filters, files, ports that could get nothing.
  /// `stop`: ends the reading of regular files, too.
  ReplayInput(const std::vector<config::CaptureBinding>& bindings,
              const std::function<FabricPort(const config::PortName&)>& resolve, const StopRequest* stop = nullptr);
  /// Opens the rest and reads the first record of each. Throws ConfigError, and std::runtime_error as next().
  void open(const WaitHooks& hooks = {});

  /// The next record; false at the end of all files. `at` is nanoseconds since 1970 and never decreases.
  /// The record stays valid until the next call. Throws std::runtime_error for a file that is broken inside.
  bool next(CaptureRecord& record, FabricPort& to);

  /// Begins again with the first records; counts go on. For regular files, after open(). Throws as open() does.
  void rewind();

  /// The time of the earliest first record, the origin of the run; 0 when all files are empty. After open().
  Nanos origin() const { return origin_; }
  std::uint64_t position() const;
  std::uint64_t file_bytes() const;
  /// One row a file.
  void report(Json& inputs) const;
  static Json empty_row() { return row(InputFile{}, 0); }
  /// What a user would want to hear of: files of which no packet was selected.
  std::vector<std::string> warnings() const;

 private:
  struct Target {
    const CaptureFilter* filter;
    const config::CaptureBinding* binding;
    FabricPort port;
  };
  struct InputFile {
    std::string path, key;  // key: file_key()
    std::unique_ptr<CaptureReader> reader;
    std::vector<Target> targets;
    CaptureRecord head;
    FabricPort head_to{};
    bool ended = false, cut = false;
    std::uint64_t packets = 0, bytes = 0, snapped = 0, unselected = 0, too_long = 0, time_went_back = 0;
    Nanos first = 0, last = 0;
    std::string note() const;
  };
  static Json row(const InputFile& file, Nanos origin);
  void add(const std::string& path, const Target& target, std::string& mistakes);
  void fetch(InputFile& file);

  const StopRequest* stop_;
  std::deque<CaptureFilter> filters_;
  std::deque<InputFile> files_;
  InputFile* handed_out_ = nullptr;
  Nanos origin_ = 0, latest_ = INT64_MIN;
};

}  // namespace rocebox
