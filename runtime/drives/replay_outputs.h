// SPDX-License-Identifier: BSD-3-Clause
// ReplayOutputs: every file that a run writes, as one result.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/capture/capture_writer.h"
#include "runtime/config/config.h"
#include "runtime/drives/run_files.h"
#include "runtime/drives/tracer.h"
#include "runtime/engine/fabric.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Captures, traces and the JSON report. A result in full or not at all: all files are closed before the first of them
/// gets its name.
class ReplayOutputs {
 public:
  /// Decides what will be written, and creates nothing. Ports whose captures are one file share it, however they spell
  /// it. Throws ConfigError with every output that is something that the run reads, or another output (RunFiles).
  ReplayOutputs(const config::RunConfig& config, ExtraOutputs extra,
                const std::function<FabricPort(const config::PortName&)>& resolve);
  /// Opens all; `devices` are the interfaces of traces. Throws ConfigError; std::runtime_error when the run is to end
  /// before somebody reads from a named pipe.
  void open(const std::vector<std::string>& devices);

  /// A packet that leaves by a port; `at` is nanoseconds since 1970.
  void write(FabricPort from, Nanos at, Packet packet) {
    const OutPort port = from.device < ports_.size() && from.port < ports_[from.device].size()
                             ? ports_[from.device][from.port]
                             : OutPort{};
    if (port.capture >= 0) captures_[static_cast<std::size_t>(port.capture)].writer->write(port.interface, at, packet);
  }
  /// After open(); null without traces.
  TraceOutput* trace() { return trace_ ? &*trace_ : nullptr; }

  /// Throws std::runtime_error when something could not be written.
  void check();
  /// Hands over what pipes and terminals wait for; false when something could not be written.
  bool flush_direct();
  /// Closes captures and traces, then writes the report, then names all. Throws std::runtime_error.
  void finish(const std::function<std::string()>& json_report);
  /// One row a capture.
  void report(Json& outputs) const;
  static Json empty_row() { return row(Capture{}); }

 private:
  struct Capture {
    std::string path, key;
    std::vector<std::string> interfaces;
    std::unique_ptr<CaptureWriter> writer;
  };
  struct OutPort {
    int capture = -1;  ///< index of captures_; -1: counted only
    unsigned interface = 0;
  };
  static Json row(const Capture& capture);
  void plan_capture(const config::CaptureBinding& binding, FabricPort port);
  void for_each_file(const std::function<void(OutputFile&)>& each);

  ExtraOutputs extra_;
  std::vector<Capture> captures_;
  std::vector<std::vector<OutPort>> ports_;  // by device, by port
  std::optional<TraceOutput> trace_;
  std::unique_ptr<OutputFile> json_;
};

}  // namespace rocebox
