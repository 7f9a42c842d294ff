// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/text_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/config/printable.h"

namespace rocebox {
namespace {

// Digits in groups of three, as people read counts.
std::string count_text(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

// What a member's key says of its number; report.h has the list.
enum class Meaning { kCount, kDuration, kRate, kQpn, kIdentifier, kOrdinal };

constexpr std::string_view kNanosSuffix = "_ns", kRateSuffix = "_bits_per_second";

Meaning meaning(std::string_view key) {
  const auto is = [key](std::string_view word) {
    return key == word || (key.ends_with(word) && key[key.size() - word.size() - 1] == '_');
  };
  if (key.ends_with(kNanosSuffix)) return Meaning::kDuration;
  if (key.ends_with(kRateSuffix)) return Meaning::kRate;
  if (is("qpn")) return Meaning::kQpn;
  if (is("psn") || is("number")) return Meaning::kIdentifier;
  return is("packet") || is("event") ? Meaning::kOrdinal : Meaning::kCount;
}

bool is_identifier(Meaning means) {
  return means == Meaning::kQpn || means == Meaning::kIdentifier || means == Meaning::kOrdinal;
}
// An identifier that names nothing, or anything.
bool is_blank(std::int64_t value, Meaning means) { return value < (means == Meaning::kOrdinal ? 1 : 0); }

std::string identifier_text(std::int64_t value, Meaning means) {
  if (is_blank(value, means)) return "-";
  return means == Meaning::kQpn ? fmt::format("{:#08x}", value) : fmt::format("{}", value);
}

struct Unit {
  std::string_view name;
  double size;
  int digits;
};

// The unit in which `largest` reads well.
Unit time_unit(double largest) {
  if (largest < 1e4) return {"ns", 1, 0};
  if (largest < 1e7) return {"us", 1e3, 3};
  return largest < 1e10 ? Unit{"ms", 1e6, 3} : Unit{"s", 1e9, 6};
}
Unit rate_unit(double largest) {
  constexpr std::string_view kUnits[] = {"bps", "kbps", "Mbps", "Gbps", "Tbps"};
  std::size_t unit = 0;
  double size = 1;
  for (; unit + 1 < std::size(kUnits) && largest / size >= 999.95; unit++) size *= 1000;
  return {kUnits[unit], size, 3};
}

std::string in_unit(double value, const Unit& unit) {
  return value == 0 ? "0" : fmt::format("{:.{}f}", value / unit.size, unit.digits);
}

// Three or four significant digits: 999.9 kbps, 22.79 Mbps, 1.250 Gbps.
std::string rate_text(double bits_per_second) {
  const Unit unit = rate_unit(bits_per_second);
  const double value = bits_per_second / unit.size;
  return fmt::format("{:.{}f} {}", value, value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3, unit.name);
}

}  // namespace

std::string report_label(std::string_view key) {
  const Meaning means = meaning(key);
  if (means == Meaning::kDuration) key.remove_suffix(kNanosSuffix.size());
  if (means == Meaning::kRate) key.remove_suffix(kRateSuffix.size());
  return config::printable(key);
}

std::string report_value(std::string_view key, const Json& value) {
  if (value.is_string()) return config::printable(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  const Meaning means = meaning(key);
  if (value.is_number() && means == Meaning::kRate) return rate_text(value.get<double>());
  if (value.is_number() && means == Meaning::kDuration) {  // a mean of durations has a fraction
    const auto nanoseconds = value.get<double>();
    const Unit unit = time_unit(std::fabs(nanoseconds));
    return fmt::format("{} {}", in_unit(nanoseconds, unit), unit.name);
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    return is_identifier(means) ? identifier_text(number, means) : count_text(number);
  }
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

bool is_silent(std::string_view key, const Json& value) {
  const Meaning means = meaning(key);
  if (value.is_number_integer() && is_identifier(means)) return is_blank(value.get<std::int64_t>(), means);
  return (value.is_number_integer() && value.get<std::int64_t>() == 0) || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) || value.is_null() ||
         (value.is_number_float() && value.get<double>() == 0) || (!is_plain(value) && value.empty());
}

TextColumn report_column(const std::string& key, const std::vector<const Json*>& rows) {
  TextColumn column;
  const Meaning means = meaning(key);
  double largest = 0;
  bool numbers = false;
  for (const Json* row : rows) {
    if (!row->contains(key)) continue;
    const Json& value = (*row)[key];
    column.silent = column.silent && is_silent(key, value);
    column.is_text = column.is_text || !value.is_number();
    if (!value.is_number()) continue;
    numbers = true;
    largest = std::max(largest, std::fabs(value.get<double>()));
  }
  const bool has_unit = numbers && !column.is_text && (means == Meaning::kDuration || means == Meaning::kRate);
  const Unit unit = means == Meaning::kRate ? rate_unit(largest) : time_unit(largest);
  column.head = has_unit ? fmt::format("{} [{}]", report_label(key), unit.name) : report_label(key);
  for (const Json* row : rows) {
    const bool has = row->contains(key);
    column.cells.push_back(!has       ? "-"
                           : has_unit ? in_unit((*row)[key].get<double>(), unit)
                                      : report_value(key, (*row)[key]));
    if (column.cells.back().empty()) column.cells.back() = "-";
  }
  return column;
}

}  // namespace rocebox
