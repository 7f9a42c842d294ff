// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a NIC's programmable congestion control.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nic_model/pcc/process.h"
#include "nic_model/rate/congestion_control.h"
#include "runtime/component/fields.h"
#include "runtime/component/input_file.h"

namespace rocebox::nic_model::pcc {

/// A parameter of the program's that has another value than the program gave it.
struct ParameterConfig {
  void fields(Fields& fields);
  std::int64_t slot = 0, id = 0, value = 0;
};

/// The notification point: a program that writes what answers to peers' probes carry.
struct NotificationConfig {
  void fields(Fields& fields);
  bool has_program() const { return !program.empty() || !file.path.empty(); }

  std::string program;
  InputFile file;
  std::int64_t threads = 1;
  std::vector<std::string> mailbox;
};

struct PccConfig {
  static constexpr std::string_view kChangeable[] = {"parameters", "mailbox", "notification_point.mailbox"};
  void fields(Fields& fields);
  std::vector<ParameterValue> values() const;
  const char* refuses(std::uint64_t line_rate) const { return line_rate == 0 ? "needs the port's `rate:`" : nullptr; }
  std::optional<NotificationPoint> notification_point() const { return NotificationPoint{}; }
  bool has_program() const { return !program.empty() || !file.path.empty(); }

  std::string program;
  InputFile file;
  std::int64_t slot = 0, threads = 64;
  std::vector<ParameterConfig> parameters;
  std::vector<std::string> mailbox;  ///< messages of the host: bytes in hexadecimal
  NotificationConfig notification;
  Nanos watchdog = 100 * kMillisecond;
  std::int64_t budget = dpa::kBlocksMax;
};

}  // namespace rocebox::nic_model::pcc
