// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace rocebox::config {
namespace {

__extension__ using Wide = unsigned __int128;  // products of two 64-bit numbers

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Smallest first; format_* takes the largest that divides.
constexpr std::array kTimes = {Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000},
                               Unit{"min", 60'000'000'000}};
constexpr std::array kRates = {Unit{"bps", 1},          Unit{"kbps", 1'000},         Unit{"Kbps", 1'000},
                               Unit{"Mbps", 1'000'000}, Unit{"Gbps", 1'000'000'000}, Unit{"Tbps", 1'000'000'000'000}};
constexpr std::array kBytes = {
    Unit{"B", 1},          Unit{"kB", 1'000},     Unit{"KB", 1'000},         Unit{"KiB", 1u << 10},
    Unit{"MB", 1'000'000}, Unit{"MiB", 1u << 20}, Unit{"GB", 1'000'000'000}, Unit{"GiB", 1u << 30}};

// NUMBER UNIT as a whole count of the smallest unit, computed in decimal so that 0.1s is exact.
std::optional<std::uint64_t> parse_scaled(std::string_view text, std::span<const Unit> units, std::string_view bare) {
  text = trimmed(text);
  const std::size_t digits = text.find_first_not_of("0123456789._");
  std::string_view number = text.substr(0, digits);
  std::string_view unit = digits == std::string_view::npos ? std::string_view() : trimmed(text.substr(digits));
  if (unit.empty()) {
    if (number != "0" && bare.empty()) return {};
    unit = bare.empty() ? units[0].name : bare;
  }
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
  if (found == units.end() || number.empty()) return {};
  const std::size_t point = number.find('.');
  const auto whole_part = parse_integer(number.substr(0, point));
  if (!whole_part || *whole_part < 0) return {};
  std::uint64_t value = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(*whole_part), found->factor, &value)) return {};
  if (point != std::string_view::npos) {
    std::string_view fraction = number.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of("0123456789") != std::string_view::npos) return {};
    while (fraction.size() > 1 && fraction.back() == '0') fraction.remove_suffix(1);
    if (fraction.size() > 18) return {};  // finer than any unit of ours
    Wide part = 0, scale = 1;
    for (char digit : fraction) part = part * 10 + static_cast<unsigned>(digit - '0'), scale *= 10;
    part *= found->factor;
    if (part % scale != 0) return {};  // finer than the smallest unit
    if (__builtin_add_overflow(value, static_cast<std::uint64_t>(part / scale), &value)) return {};
  }
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return {};
  return value;
}

std::string format_scaled(std::uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units)
    if (value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::string digits(trimmed(text));
  std::erase(digits, '_');
  const bool negative = digits.starts_with('-');
  if (negative) digits.erase(0, 1);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.erase(0, 2);
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, hexadecimal ? 16 : 10);
  if (digits.empty() || error != std::errc() || at != end) return {};
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return {};
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::optional<Nanos> parse_duration(std::string_view text) {
  const auto value = parse_scaled(text, kTimes, "");
  if (!value) return {};
  return static_cast<Nanos>(*value);
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  if (trimmed(text) == "unlimited") return 0;
  return parse_scaled(text, kRates, "");
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) { return parse_scaled(text, kBytes, "B"); }

std::optional<double> parse_fraction(std::string_view text) {
  text = trimmed(text);
  const bool percent = text.ends_with('%');
  if (percent) text = trimmed(text.substr(0, text.size() - 1));
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || at != text.data() + text.size() || !std::isfinite(value)) return {};
  return percent ? value / 100 : value;
}

std::optional<double> parse_pace(std::string_view text) {
  text = trimmed(text);
  if (text == "as_captured") return 1;
  if (text == "max") return 0;
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at + 1 != text.data() + text.size() || *at != 'x') return {};
  if (!(value >= 0.001 && value <= 1e6)) return {};
  return value;
}

std::string format_duration(Nanos nanos) {
  if (nanos == 0) return "0ns";
  if (nanos < 0) return "-" + format_duration(-nanos);
  return format_scaled(static_cast<std::uint64_t>(nanos), std::span(kTimes).first(4));  // 90s rather than 1.5min
}
std::string format_rate(std::uint64_t bits_per_second) {
  return bits_per_second ? format_scaled(bits_per_second, kRates) : "unlimited";
}
std::string format_bytes(std::uint64_t bytes) { return bytes ? format_scaled(bytes, kBytes) : "0B"; }

std::string format_fraction(double fraction) {
  const std::string percent = fmt::format("{}%", fraction * 100);
  if (parse_fraction(percent) == fraction && percent.size() <= 12) return percent;
  return fmt::format("{}", fraction);
}

std::string format_pace(double pace) { return pace == 0 ? "max" : fmt::format("{}x", pace); }

std::string SocketAddress::text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::optional<SocketAddress> parse_socket_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string_view::npos)  // whether the last part is a port nobody can tell
    return std::nullopt;
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  const std::int64_t port = number ? parse_integer(digits).value_or(-1) : -1;
  if (host.empty() || host.find_first_of(" \t\n/") != std::string_view::npos || port < 0 || port > 65535)
    return std::nullopt;
  return SocketAddress{std::string(host), static_cast<int>(port)};
}

}  // namespace rocebox::config
