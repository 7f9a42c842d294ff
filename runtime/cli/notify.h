// SPDX-License-Identifier: BSD-3-Clause
// What a service manager (systemd, Type=notify) is told of a run: sd_notify(3)'s protocol, without its library.
#pragma once
#include <string>
#include <string_view>
#include <utility>

namespace rocebox::cli {

/// The manager that started this process, when there is one: it named its socket in $NOTIFY_SOCKET. Every call is one
/// datagram; without a manager calls do nothing. A manager that cannot be told is complained of once, on standard
/// error, and the run goes on. `status` is a line for people, as `systemctl status` shows it.
class ServiceManager {
 public:
  ServiceManager();
  /// `address`: path of a Unix datagram socket, or its abstract name behind `@`; empty: no manager.
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  /// Packets flow: what waits for this service may start.
  void ready(std::string_view status) { tell("READY=1", status); }
  /// The configuration is read again; ready() follows, whether the new one was taken or not.
  void reloading(std::string_view status) { tell("RELOADING=1", status); }
  /// The run ends.
  void stopping(std::string_view status) { tell("STOPPING=1", status); }
  /// Nothing but a new status line.
  void status(std::string_view status) { tell("", status); }

 private:
  void tell(std::string_view state, std::string_view status);
  std::string address_;
};

}  // namespace rocebox::cli
