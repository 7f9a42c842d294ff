// SPDX-License-Identifier: BSD-3-Clause
// Where trace events go: text, and packets with comments in a pcapng.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/drives/capture_writer.h"
#include "runtime/engine/device.h"
#include "runtime/telemetry/trace.h"

namespace rocebox {

/// The files of a trace, shared by the tracers of all devices.
class TraceOutput {
 public:
  /// Opens `files`, `-` for standard output: .pcapng gets packets, other names text. Throws ConfigError.
  TraceOutput(const std::vector<std::string>& files, const std::vector<std::string>& devices);
  void write(unsigned device, Nanos origin, const TraceEvent& event, const std::string& line);
  /// Calls `each` with every file.
  void for_each_file(const std::function<void(OutputFile&)>& each);

 private:
  std::deque<OutputFile> texts_;
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
