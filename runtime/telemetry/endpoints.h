// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: commands of a run on DPDK's telemetry socket, with JSON as their answer.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Commands such as `/rocebox/ports`, which dpdk-telemetry.py and other clients of the socket call as
/// `/rocebox/ports,PARAMETERS`. They work while this lives. DPDK has one list of commands for the process, so two
/// objects must not have a command in common.
class Endpoints {
 public:
  /// Answers a call; `parameters` is what stands behind the comma (at most 1000 bytes), empty without one. Handlers run
  /// on threads of DPDK's telemetry, never on a polling core, and one at a time in the process. What one throws becomes
  /// the answer {"error": what()}.
  ///
  /// The answer is an object, a list of plain values, or a string of up to 8 KiB. DPDK sets limits: an object has up to
  /// 256 members, a list 512, and all of it 16 KiB as text, beyond which the answer is an error that says so; strings
  /// within are cut to 127 bytes. DPDK has no fractions, booleans or negative numbers beyond 32 bits and no lists of
  /// objects: these become text, 0 or 1, text, and objects with the members "0", "1", ...
  using Handler = std::function<Json(const std::string& parameters)>;

  Endpoints() = default;
  /// Waits for a call that is being answered; later calls get an error.
  ~Endpoints();
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  /// `path` is shorter than 56 bytes; `help` is a sentence of less than 64 that names the parameters. EAL may not have
  /// been started yet. Throws std::logic_error when DPDK does not take the command.
  void add(const std::string& path, const std::string& help, Handler handler);

 private:
  std::vector<std::string> paths_;
};

/// Text for a member of an answer, which holds no more: cut to 127 bytes, and to whole characters.
std::string telemetry_text(std::string text);

}  // namespace rocebox
