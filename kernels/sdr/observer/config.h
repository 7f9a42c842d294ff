// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/sdr/messages/immediate.h"
#include "kernels/sdr/observer/limits.h"
#include "runtime/component/fields.h"

namespace rocebox::sdr::observer {

/// Queue pairs of one host, one number after the other, that are the channels of one generation of a connection.
struct QpRow {
  std::optional<roce::IpAddress> destination;
  std::int64_t first_qpn = 2, channels = 1, connection = 0, generation = 0;
  void fields(Fields& fields);
};

/// What tells connections of SDR apart, where `queue_pairs` does not say.
enum class GroupBy : std::uint8_t { kAddresses, kRkey };
enum class ServiceOf : std::uint8_t { kUc, kRc, kBoth };

struct Config {
  void fields(Fields& fields);
  ImmediateLayout layout() const {
    return {static_cast<unsigned>(message_bits), static_cast<unsigned>(offset_bits),
            static_cast<unsigned>(fragment_bits)};
  }
  /// Slots of a connection.
  std::uint32_t slots() const { return messages ? static_cast<std::uint32_t>(messages) : 1u << message_bits; }
  /// 64-bit words of a message's bitmap.
  std::size_t words() const { return (static_cast<std::size_t>(packets) + 63) / 64; }
  /// 0: learnt.
  std::uint32_t mtu_bytes() const { return mtu == 0 ? 0 : 32u << mtu; }

  std::int64_t message_bits = 10, offset_bits = 18, fragment_bits = 4;
  std::int64_t messages = 0, packets = 4096, chunk = 16, generations = 4;
  int mtu = 0;  ///< auto, 64, 128, ..., 4096
  ServiceOf service = ServiceOf::kUc;
  GroupBy connections_by = GroupBy::kAddresses;
  std::int64_t connections = 16, qps = 1024, listed = 4096, events = 256;
  bool bitmaps = false, check_icrc = true;
  std::vector<QpRow> queue_pairs;
};

}  // namespace rocebox::sdr::observer
