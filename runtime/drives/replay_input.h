// SPDX-License-Identifier: BSD-3-Clause
// ReplayInput: all captures of a run as one stream in time order.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/capture_reader.h"
#include "runtime/drives/fabric.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Each file is opened once, however many ports read it; a record goes to the first port whose filter matches. Files
/// are merged by time, equal times by the order in which the configuration names the files. Records that go back in
/// time arrive with the latest time so far, and are counted.
class ReplayInput {
 public:
  /// Opens every file and reads its first record. Throws ConfigError.
  ReplayInput(const std::vector<config::CaptureBinding>& bindings,
              const std::function<FabricPort(const config::PortName&)>& resolve);

  /// The next record; false at the end of all files. `at` is nanoseconds since 1970 and never decreases.
  /// The record stays valid until the next call. Throws std::runtime_error for a file that is broken inside.
  bool next(CaptureRecord& record, FabricPort& to);

  /// The time of the earliest first record, the origin of the run; 0 when all files are empty.
  Nanos origin() const { return origin_; }
  std::uint64_t position() const;
  std::uint64_t file_bytes() const;
  /// One row a file.
  void report(Json& inputs) const;

 private:
  struct Target {
    CaptureFilter filter;
    FabricPort port;
  };
  struct Source {
    explicit Source(const std::string& path) : reader(path) {}
    CaptureReader reader;
    std::vector<Target> targets;
    CaptureRecord head;
    FabricPort head_to{};
    bool ended = false, cut = false;
    std::uint64_t packets = 0, bytes = 0, snapped = 0, unselected = 0, too_long = 0, time_went_back = 0;
    Nanos first = 0, last = 0;
  };
  void fetch(Source& source);

  std::deque<Source> sources_;
  Source* handed_out_ = nullptr;
  Nanos origin_ = 0, latest_ = INT64_MIN;
};

}  // namespace rocebox
