// SPDX-License-Identifier: BSD-3-Clause
// TelemetryClient: asks a live run of this machine over DPDK's telemetry socket.
#pragma once
#include <stdexcept>
#include <string>

#include "runtime/telemetry/instance.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// The other side does not answer (any more).
class TelemetryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A connection: DPDK's protocol v2, one datagram a question, one an answer. Needs no EAL.
class TelemetryClient {
 public:
  /// Connects; throws TelemetryError.
  explicit TelemetryClient(const std::string& socket);
  ~TelemetryClient();
  TelemetryClient(const TelemetryClient&) = delete;
  TelemetryClient& operator=(const TelemetryClient&) = delete;

  /// The answer to `command`, such as /rocebox/port, with its parameters; null when there is no such command. Throws
  /// TelemetryError, also with the text of an answer {"error": TEXT}.
  Json call(const std::string& command, const std::string& parameters = "");
  /// All names of /rocebox/ports, /rocebox/devices and their like, which come in pages.
  std::vector<std::string> names(const std::string& command);

 private:
  std::string receive();
  int descriptor_;
  std::string socket_;
  std::size_t answer_bytes_max_ = 1024;  // as the greeting says
};

/// The run that is meant: by its name, by the path of its socket, or the only one when `name` is empty. Throws
/// ConfigError that lists those that there are.
RunningInstance find_instance(const std::string& name);

}  // namespace rocebox
