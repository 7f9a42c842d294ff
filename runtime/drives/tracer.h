// SPDX-License-Identifier: BSD-3-Clause
// Where trace events go: text, and packets with comments in a pcapng.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/capture/capture_writer.h"
#include "runtime/engine/device.h"
#include "runtime/telemetry/trace.h"

namespace rocebox {

/// Throws ConfigError for a name that promises what a trace is not.
void check_trace_file(const std::string& file);

/// The files of a trace or a capture, shared by the tracers of all devices.
class TraceOutput {
 public:
  /// Opens `files`, `-` for standard output: .pcapng gets packets with comments, .pcap (of a capture) packets, other
  /// names text. `interfaces` are a capture's. Throws ConfigError.
  TraceOutput(const std::vector<std::string>& files, const std::vector<std::string>& interfaces, Waiting waiting = {});
  /// `at` is nanoseconds since 1970; `line` is a line of text, or a packet's comment.
  void write(unsigned interface, Nanos at, const CapturedFrame& frame, std::string_view line);
  /// Says in captures that so many events were lost before they could be written.
  void write_lost(std::uint64_t events);
  /// Whether packets' bytes are written.
  bool wants_bytes() const { return !captures_.empty(); }
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
  std::uint8_t follows(Packet packet) override { return filter_.matches(packet) ? 1 : 0; }
  void record(const TraceEvent& event) override;

 private:
  const TraceFilter& filter_;
  TraceOutput& output_;
  const Device& device_;
  unsigned number_;
  Nanos origin_;
};

}  // namespace rocebox
