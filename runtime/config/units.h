// SPDX-License-Identifier: BSD-3-Clause
// Numbers with units, as they are written in configurations and shown in reports.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/packet/packet.h"

namespace rocebox::config {

/// The text without the spaces around it.
std::string_view trimmed(std::string_view text);
/// "17", "-3", "0x11", "1_000_000"; empty when it is no whole number or does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// "250ns", "10us", "25ms", "1.5s", "2min", "0". A number without a unit is refused unless it is 0.
std::optional<Nanos> parse_duration(std::string_view text);
/// "100Gbps", "2.5Mbps", "9600bps", "0", "unlimited" (0).
std::optional<std::uint64_t> parse_rate(std::string_view text);
/// "64KiB", "1500B", "1MB", "1500" (a plain number is bytes).
std::optional<std::uint64_t> parse_bytes(std::string_view text);
/// "0.01%", "0.0001", "1e-4".
std::optional<double> parse_fraction(std::string_view text);
/// "as_captured" (1), "10x", "0.5x", "max" (0).
std::optional<double> parse_pace(std::string_view text);

/// Where a TCP server listens.
struct SocketAddress {
  std::string host;  ///< an address or a name
  int port = 0;      ///< 0: any that is free
  /// "127.0.0.1:9464", "[::1]:9464".
  std::string text() const;
};
/// "127.0.0.1:9464", "[::1]:9464", "localhost:9464"; empty when it is nothing of the kind.
std::optional<SocketAddress> parse_socket_address(std::string_view text);

// The shortest text that parses back to the same value.
std::string format_duration(Nanos nanos);
std::string format_rate(std::uint64_t bits_per_second);
std::string format_bytes(std::uint64_t bytes);
std::string format_fraction(double fraction);
std::string format_pace(double pace);

}  // namespace rocebox::config
