// SPDX-License-Identifier: BSD-3-Clause
// MetricsServer: /metrics over HTTP, for Prometheus and others that scrape OpenMetrics.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "runtime/config/units.h"

namespace rocebox {

/// Two clients are answered at a time, eight wait, and more stay in the kernel's queue of five; one whose request has
/// not come whole within two seconds, or that has not taken the answer two seconds after it began, is hung up on.
/// Nothing here runs on a polling core or touches the datapath.
class MetricsServer {
 public:
  /// Takes the address; port 0 is any that is free. `place` is who says so, for messages: `FILE:LINE:COLUMN`, or an
  /// option. Throws ConfigError when the address cannot be had.
  MetricsServer(const config::SocketAddress& address, const std::string& place);
  /// Hangs up. A client that is slow to go does not keep the process from ending.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Answers from now on with what `render` returns, called on threads of the server, one at a time. The threads
  /// inherit the CPUs of the caller.
  void start(std::function<std::string()> render);

  /// As in a URL, with the port that was taken: "127.0.0.1:9464", "[::1]:9464".
  std::string address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocebox
