// SPDX-License-Identifier: BSD-3-Clause
// JsonReport: the report as JSON; the text is made from the same JSON, so it holds nothing else.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/kernel/report.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox {

using Json = nlohmann::ordered_json;

/// Raised when a key of the report changes its meaning or goes away.
inline constexpr int kReportSchemaVersion = 4;

/// Writes into an object. What is there already is another shard's: counts add up, of peaks the highest stays, settings
/// and texts stay as they are, and the rows of tables follow one another.
class JsonReport final : public Report {
 public:
  explicit JsonReport(Json& object, bool wants_names = false) : object_(object), wants_names_(wants_names) {
    if (object_.is_null()) object_ = Json::object();
  }
  bool wants_names() const override { return wants_names_; }
  void count(std::string_view name, std::int64_t value) override { add(name, value); }
  void peak(std::string_view name, std::int64_t value) override {
    Json& there = first(name, value);
    there = std::max(there.get<std::int64_t>(), value);
  }
  void setting(std::string_view name, std::int64_t value) override { first(name, value); }
  void setting(std::string_view name, double value) override { first(name, value); }
  void real(std::string_view name, double value) override { add(name, value); }
  void flag(std::string_view name, bool value) override { first(name, value); }
  void text(std::string_view name, std::string_view value) override { first(name, value); }
  void duration(std::string_view name, std::int64_t nanos) override { add(std::string(name) + "_ns", nanos); }
  void object(std::string_view name, const std::function<void(Report&)>& fill) override {
    JsonReport nested(object_[std::string(name)], wants_names_);
    fill(nested);
  }
  void table(std::string_view name, std::size_t rows, const std::function<void(Report&, std::size_t)>& fill) override {
    Json& array = first(name, Json::array());
    for (std::size_t row = 0; row < rows; row++) {
      JsonReport nested(array.emplace_back(Json::object()), wants_names_);
      fill(nested, row);
    }
  }

 private:
  // What stands under a name; `value` where nothing does.
  Json& first(std::string_view name, Json value) {
    Json& there = object_[std::string(name)];
    if (there.is_null()) there = std::move(value);
    return there;
  }
  template <class Number>
  void add(std::string_view name, Number value) {
    Json& sum = first(name, Number{0});
    sum = sum.get<Number>() + value;
  }

  Json& object_;
  const bool wants_names_;
};

/// Adds the median, p99 and p99.9 of durations in nanoseconds to a row: `prefix`p50_ns, ...
inline void add_percentiles(Json& row, const std::string& prefix, const Histogram& durations) {
  row[prefix + "p50_ns"] = durations.percentile(50);
  row[prefix + "p99_ns"] = durations.percentile(99);
  row[prefix + "p999_ns"] = durations.percentile(99.9);
}

/// How a report looks as text.
struct ReportStyle {
  bool full = true;         ///< every row of each table; else the first 20, by weight where a row has one
  bool color = false;       ///< with a terminal's escape codes
  std::size_t width = 110;  ///< of a line, in columns
};

/// The JSON as text for a person: indented blocks, tables where rows are short, one unit a column. Counters that are 0
/// are left out where no other one of the column has a value.
std::string report_text(const Json& report, const ReportStyle& style = {});

}  // namespace rocebox
