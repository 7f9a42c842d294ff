// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/telemetry/json_report.h"

namespace rocebox {
namespace {

constexpr std::size_t kLineWidth = 110;
constexpr std::size_t kColumnsMax = 12;

std::string duration_text(std::int64_t nanos) {
  const double value = static_cast<double>(nanos);
  const std::int64_t size = nanos < 0 ? -nanos : nanos;
  if (size < 10'000) return fmt::format("{} ns", nanos);
  if (size < 10'000'000) return fmt::format("{:.3f} us", value / 1e3);
  if (size < 10'000'000'000) return fmt::format("{:.3f} ms", value / 1e6);
  return fmt::format("{:.6f} s", value / 1e9);
}

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

// The key without the unit that the text shows beside the number.
std::string label(std::string_view key) {
  const Meaning means = meaning(key);
  if (means == Meaning::kDuration) key.remove_suffix(kNanosSuffix.size());
  if (means == Meaning::kRate) key.remove_suffix(kRateSuffix.size());
  return std::string(key);
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

// Three or four significant digits: 999.9 kbps, 22.79 Mbps, 1.250 Gbps.
std::string rate_text(double bits_per_second) {
  constexpr std::string_view kUnits[] = {"bps", "kbps", "Mbps", "Gbps", "Tbps"};
  std::size_t unit = 0;
  for (; unit + 1 < std::size(kUnits) && bits_per_second >= 999.95; unit++) bits_per_second /= 1000;
  return fmt::format("{:.{}f} {}", bits_per_second,
                     bits_per_second >= 99.995   ? 1
                     : bits_per_second >= 9.9995 ? 2
                                                 : 3,
                     kUnits[unit]);
}

std::string scalar_text(std::string_view key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  const Meaning means = meaning(key);
  if (value.is_number() && means == Meaning::kRate) return rate_text(value.get<double>());
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (is_identifier(means)) return identifier_text(number, means);
    return means == Meaning::kDuration ? duration_text(number) : count_text(number);
  }
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

bool is_plain(const Json& value) { return !value.is_object() && !value.is_array(); }
// What says nothing is left out. PSN 0 and QPN 0 say something.
bool is_silent(std::string_view key, const Json& value) {
  const Meaning means = meaning(key);
  if (value.is_number_integer() && is_identifier(means)) return is_blank(value.get<std::int64_t>(), means);
  return (value.is_number_integer() && value.get<std::int64_t>() == 0) || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_string() && value.get<std::string>().empty()) || value.is_null() ||
         (value.is_number_float() && value.get<double>() == 0) || (!is_plain(value) && value.empty());
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  // Plain members flow on lines; objects and tables follow as blocks.
  void object(const Json& object, std::size_t indent) {
    std::vector<std::string> words;
    for (const auto& [key, value] : object.items())
      if (is_plain(value) && !is_silent(key, value))
        words.push_back(fmt::format("{} {}", label(key), scalar_text(key, value)));
    flow(words, indent);
    for (const auto& [key, value] : object.items()) {
      if (is_plain(value)) continue;
      if (value.is_array())
        table(key, value, indent);
      else
        block(key, value, indent);
    }
  }

 private:
  void line(std::size_t indent, std::string_view text) { out_ += fmt::format("{:{}}{}\n", "", indent, text); }

  void flow(const std::vector<std::string>& words, std::size_t indent) {
    std::string current;
    for (const std::string& word : words) {
      if (!current.empty() && indent + current.size() + 3 + word.size() > kLineWidth) {
        line(indent, current);
        current.clear();
      }
      current += current.empty() ? word : "   " + word;
    }
    if (!current.empty()) line(indent, current);
  }

  void block(const std::string& key, const Json& value, std::size_t indent) {
    const bool shallow = std::all_of(value.begin(), value.end(), [](const Json& v) { return is_plain(v); });
    const auto items = value.items();
    if (shallow && std::all_of(items.begin(), items.end(), [](const auto& i) { return is_silent(i.key(), i.value()); }))
      return;
    line(indent, key);
    object(value, indent + 2);
  }

  void table(const std::string& key, const Json& rows, std::size_t indent) {
    if (rows.empty()) return;
    line(indent, fmt::format("{} ({})", key, rows.size()));
    if (std::all_of(rows.begin(), rows.end(), [](const Json& row) { return is_plain(row); })) {
      for (const Json& row : rows) line(indent + 2, scalar_text("", row));
      return;
    }
    const std::vector<std::string> columns = columns_of(rows);
    if (columns.empty() || columns.size() > kColumnsMax) {
      std::size_t number = 0;
      for (const Json& row : rows) {
        line(indent + 2, fmt::format("#{}", ++number));
        object(row, indent + 4);
      }
      return;
    }
    std::vector<std::vector<std::string>> cells(1);
    for (const std::string& column : columns) cells[0].push_back(label(column));
    for (const Json& row : rows) {
      auto& line_cells = cells.emplace_back();
      for (const std::string& column : columns)
        line_cells.push_back(row.contains(column) ? scalar_text(column, row[column]) : "");
    }
    std::vector<std::size_t> widths(columns.size());
    for (const auto& row : cells)
      for (std::size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    for (const auto& row : cells) {
      std::string text;
      for (std::size_t i = 0; i < row.size(); i++) text += fmt::format("{:<{}}  ", row[i], widths[i]);
      text.resize(text.find_last_not_of(' ') + 1);
      line(indent + 2, text);
    }
  }

  // The union of the rows' keys when all are plain; empty otherwise.
  static std::vector<std::string> columns_of(const Json& rows) {
    std::vector<std::string> columns;
    for (const Json& row : rows) {
      for (const auto& [key, value] : row.items()) {
        if (!is_plain(value)) return {};
        if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
      }
    }
    return columns;
  }

  std::string out_;
};

}  // namespace

std::string report_text(const Json& report) {
  Writer writer;
  writer.object(report, 0);
  return writer.take();
}

}  // namespace rocebox
