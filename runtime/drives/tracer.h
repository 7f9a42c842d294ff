// SPDX-License-Identifier: BSD-3-Clause
// Where trace events go: text, and packets with comments in a pcapng.
#pragma once
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/drives/capture_writer.h"
#include "runtime/engine/device.h"
#include "runtime/telemetry/trace.h"

namespace rocebox {

/// The files of a trace, shared by the tracers of all devices.
class TraceOutput {
 public:
  /// Opens `files`; text goes to `text` when none of them is a text file. Throws ConfigError.
  TraceOutput(const std::vector<std::string>& files, std::FILE* text, const std::vector<std::string>& devices);
  ~TraceOutput();
  TraceOutput(const TraceOutput&) = delete;
  TraceOutput& operator=(const TraceOutput&) = delete;
  void write(unsigned device, Nanos origin, const TraceEvent& event, const std::string& line);
  /// Throws std::runtime_error when anything could not be written.
  void finish();

 private:
  struct TextFile {
    std::string path;
    std::FILE* file;
    bool owned;
  };
  std::vector<TextFile> texts_;
  std::deque<CaptureWriter> captures_;
};

/// The trace of one device.
class Tracer final : public TraceSink {
 public:
  Tracer(const TraceFilter& filter, TraceOutput& output, const Device& device, unsigned number, Nanos origin)
      : filter_(filter), output_(output), device_(device), number_(number), origin_(origin) {}
  bool follows(Packet packet) override { return filter_.matches(packet); }
  void record(const TraceEvent& event) override;

 private:
  const TraceFilter& filter_;
  TraceOutput& output_;
  const Device& device_;
  unsigned number_;
  Nanos origin_;
};

}  // namespace rocebox
