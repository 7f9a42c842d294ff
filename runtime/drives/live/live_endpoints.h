// SPDX-License-Identifier: BSD-3-Clause
// LiveEndpoints: what a live run tells on DPDK's telemetry socket while packets flow.
#pragma once
#include <chrono>
#include <string>

#include "runtime/drives/live/live.h"
#include "runtime/telemetry/endpoints.h"

namespace rocebox {

/// /rocebox/run and, each with its list, port, device, kernel and link; runtime/telemetry/README.md tells what they
/// answer. The numbers are those of Live::report(), which is made at most once in kFresh, however often and by how
/// many they are asked for.
class LiveEndpoints {
 public:
  static constexpr std::chrono::milliseconds kFresh{20};

  /// EAL may not have been started yet. `instance` is the name of the run.
  LiveEndpoints(const Live& live, std::string instance);

 private:
  void refresh();
  Json run();
  Json port(const std::string& name);
  Json device(const std::string& name);
  Json kernel(const std::string& name);
  Json link(const std::string& name);
  /// The kinds of those counters of a link, device or kernel that are no counts, by their names.
  Json kinds(bool is_link, const std::string& name, const std::string& kernel) const;
  /// A part of the report, or an error with the nearest of the names that there are.
  using Part = Json (LiveEndpoints::*)(const std::string& name);
  using Names = std::vector<std::string> (*)(const Json& report);
  void add(const std::string& what, Names names, Part part);

  const Live& live_;
  std::string instance_;
  Json report_;
  std::chrono::steady_clock::time_point made_{};
  Endpoints endpoints_;  // last: its end comes first, and no call after it
};

}  // namespace rocebox
