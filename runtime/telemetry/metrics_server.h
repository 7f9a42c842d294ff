// SPDX-License-Identifier: BSD-3-Clause
// MetricsServer: /metrics over HTTP, for Prometheus and others that scrape OpenMetrics.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/config/units.h"

namespace rocebox {

/// One thread, which waits for all clients at once and for none in particular: one that says nothing keeps no other
/// waiting. One whose request has not come whole within `patience`, or that has not taken the answer so long after it
/// began, is hung up on; so is, when a 65th comes, the one that has kept us waiting longest (for a tenth of a second at
/// least, or the 65th waits). Nothing here runs on a polling core or touches the datapath.
///
/// Requests, routes and answers are cpp-httplib's. Waiting for the sockets is ours, as no library at hand keeps these
/// promises:
/// - cpp-httplib (0.11, of Debian 12) gives a connection one of its threads for as long as it lasts, and times every
///   read by itself. As many silent clients as it has threads keep all others waiting for five seconds; as many that
///   send a byte now and then, for as long as they like; and stop() waits for both. Only its private
///   process_and_close_socket() sees a socket that could be hung up on, and each client would still need a thread.
/// - prometheus-cpp has the same in civetweb's two threads, writes the older text format and not OpenMetrics, and does
///   not say why an address cannot be had.
/// - libmicrohttpd needs one thread only, but it counts whole seconds since the last byte, so that a client that sends
///   one now and then is never hung up on, and it does not answer clients that send empty lines first.
class MetricsServer {
 public:
  /// Takes the address; port 0 is any that is free. `place` is who says so, for messages: `FILE:LINE:COLUMN`, or an
  /// option. Throws ConfigError when the address cannot be had.
  MetricsServer(const config::SocketAddress& address, const std::string& place,
                std::chrono::milliseconds patience = std::chrono::seconds(2));
  /// Hangs up. A client that is slow to go does not keep the process from ending.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Answers from now on with what `render` returns, called on the server's thread, which inherits the CPUs of the
  /// caller.
  void start(std::function<std::string()> render);

  /// As in a URL, with the port that was taken: "127.0.0.1:9464", "[::1]:9464".
  std::string address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocebox
