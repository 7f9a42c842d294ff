// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/dpa/limits.h"
#include "nic_model/dpa/config.h"
#include "runtime/component/fields.h"

namespace rocebox::dpa_observer {

/// A queue pair that is watched.
struct WatchedQp {
  std::int64_t qpn = 2;
  std::optional<roce::IpAddress> address;  ///< of its NIC; none: any
  void fields(Fields& fields);
};

/// Which packets, by the port by which they come.
enum class From : std::uint8_t { kBoth, kLeft, kRight };

struct Config {
  void fields(Fields& fields);
  /// Bytes of the heap that the queues of all threads take.
  std::uint64_t queue_bytes() const;

  std::string program = "counter", handler;
  InputFile file;
  std::int64_t threads = 1, cq_entries = 256, flows = 4096, host_bytes = 0, count = 1;
  std::uint64_t buffer = 64;
  bool rc = true, uc = true, ud = true, sends = true, write_imm = true, check_icrc = true;
  From from = From::kBoth;
  std::vector<WatchedQp> qps;
  std::vector<std::string> results;
  nic_model::dpa::DpaConfig engine;
};

}  // namespace rocebox::dpa_observer
