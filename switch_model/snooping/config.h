// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "switch_model/program.h"

namespace rocebox::switch_model::snooping {

/// What becomes of packets to groups that nobody has joined.
enum class Unknown : std::uint8_t { kFlood, kRouters, kDrop };

struct Config {
  std::int64_t groups = 256;
  Unknown unknown = Unknown::kFlood;
  std::vector<std::string> router_ports;
  bool fast_leave = false, querier = false;
  std::optional<roce::IpAddress> querier_address;
  std::optional<Mac> querier_mac = Mac{0x02, 0, 0, 0, 0xFE, 1};
  Nanos query_interval = 125 * kSecond, response_time = 10 * kSecond, last_member_time = kSecond;
  std::int64_t robustness = 2;

  void fields(Fields& fields, const SwitchInfo& info);
  std::uint64_t eal_bytes() const { return static_cast<std::uint64_t>(groups) * 512; }
  /// RFC 3376, 8.4 and 8.5; RFC 3810, 9.4 and 9.5.
  Nanos membership_time() const { return robustness * query_interval + response_time; }
  Nanos querier_time() const { return robustness * query_interval + response_time / 2; }
};

}  // namespace rocebox::switch_model::snooping
