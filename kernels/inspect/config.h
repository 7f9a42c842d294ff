// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::inspect {

/// An RC connection that the configuration names.
struct StaticPair {
  std::optional<roce::IpAddress> a, b;
  std::int64_t a_qpn = 2, b_qpn = 2;
  bool operator==(const StaticPair&) const = default;
  void fields(Fields& fields);
};

struct Config {
  std::int64_t flows = 4096;
  std::int64_t window = 4096;
  int mtu = 0;  ///< index into the words: auto, 256, 512, 1024, 2048, 4096
  Nanos retransmit_after = kMillisecond;
  std::int64_t events = 32;
  Nanos go_back_n_rtt = 0;
  bool check_icrc = true;
  std::vector<StaticPair> pairs;

  /// The configured path MTU in bytes, 0 for auto.
  std::uint32_t mtu_bytes() const { return mtu == 0 ? 0 : 128u << mtu; }
  bool operator==(const Config&) const = default;
  void fields(Fields& fields);
};

}  // namespace rocebox::inspect
