// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/cli/sweep.h"
#include "runtime/telemetry/text_cells.h"

namespace rocebox::cli {
namespace {

constexpr std::size_t kPointsMax = 100'000;
// Columns of a workload: whether it finished, and did not fail; and how many transfers.
constexpr const char *kFinishedColumn = "finished", *kDoneColumn = "transfers_done";

std::string csv_cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); i++) line += (i ? "," : "") + cells[i];
  return line + "\r\n";
}

// Whether a row has these names, in this order. Most tables' rows all do, and then nothing is looked up by name.
bool has_names(const Json& row, const std::vector<std::string>& names) {
  return row.size() == names.size() &&
         std::equal(names.begin(), names.end(), row.items().begin(),
                    [](const std::string& name, const auto& cell) { return name == cell.key(); });
}

// Those of all rows. One that the rows before lack comes before what it precedes in its own row, so that what ends all
// rows ends the table.
std::vector<std::string> names_of_all(const Json& rows) {
  std::vector<std::string> all;
  for (const Json& row : rows) {
    if (has_names(row, all)) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : row.items()) names.push_back(name);
    auto place = all.end();
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      const auto found = std::find(all.begin(), all.end(), *name);
      place = found != all.end() ? found : all.insert(place, *name);
    }
  }
  return all;
}

}  // namespace

std::pair<std::string, std::vector<std::string>> parse_sweep(const std::string& text) {
  const config::Setting setting = config::parse_setting(text, "--sweep");
  std::vector<std::string> values(1);
  int depth = 0;
  for (const char c : setting.value) {
    if (c == '[' || c == '{') depth++;
    if (c == ']' || c == '}') depth--;
    if (c == ',' && depth == 0)
      values.emplace_back();
    else
      values.back() += c;
  }
  if (std::ranges::any_of(values, &std::string::empty))
    throw ConfigError(fmt::format("--sweep {}: one of the values is empty: write KEY=V1,V2", text));
  return {setting.key, values};
}

std::vector<SweepPoint> sweep_points(const std::vector<std::string>& sweeps, std::int64_t seeds) {
  std::vector<SweepPoint> points(1);
  for (const std::string& sweep : sweeps) {
    const auto [key, values] = parse_sweep(sweep);
    std::vector<SweepPoint> more;
    if (points.size() * values.size() * static_cast<std::size_t>(seeds) > kPointsMax)
      throw ConfigError(fmt::format("--sweep {}: would make more than {} runs", sweep, kPointsMax));
    for (const SweepPoint& point : points)
      for (const std::string& value : values) {
        more.push_back(point);
        more.back().settings.emplace_back(key, value);
      }
    points = std::move(more);
  }
  return points;
}

std::vector<SweepPoint> with_seeds(const std::vector<SweepPoint>& points, std::int64_t seeds) {
  std::vector<SweepPoint> all;
  for (const SweepPoint& point : points)
    for (std::int64_t i = 0; i < seeds; i++) {
      all.push_back(point);
      all.back().seed += i;
    }
  return all;
}

std::string settings_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.settings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

std::string run_text(const SweepPoint& point) {
  SweepPoint seeded = point;
  std::erase_if(seeded.settings, [](const auto& setting) { return setting.first == kSeedColumn; });
  seeded.settings.emplace_back(kSeedColumn, fmt::format("{}", point.seed));
  return settings_text(seeded);
}

namespace {

// What all devices together have counted: of pauses the time in all, not that of each priority.
void add_signals(const Json& report, Json& row) {
  for (const auto& [name, value] : report["signals"].items())
    if (!name.starts_with("rx_")) row[name] = value;
}

// The last one to be done ends the tail.
void add_collectives(const Json& all, const std::string& prefix, Json& row) {
  row[prefix + "collectives_done"] = all["done"];
  for (const char* key : {"mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"})
    row[prefix + "collective_" + key] = all["completion"][key];
  for (const char* key : {"mean", "p50", "p99", "p999", "max"})
    row[prefix + "collective_slowdown_" + key] = all["slowdown"][key];
}

}  // namespace

Json sweep_row(const SweepPoint& point, const Json& report) {
  Json row;
  for (const auto& [key, value] : point.settings) row[key] = value;
  row[kSeedColumn] = point.seed;
  const Json& workloads = report["workloads"];
  for (const auto& [name, workload] : workloads.items()) {
    const std::string prefix = workloads.size() == 1 ? "" : name + ".";
    row[prefix + kFinishedColumn] = workload["finished"].get<bool>() && !workload["failed"].get<bool>();
    for (const char* key : {kDoneColumn, "duration_ns", "goodput_bits_per_second"}) row[prefix + key] = workload[key];
    for (const char* key : {"mean_ns", "p50_ns", "p99_ns", "p999_ns"})
      row[prefix + "completion_" + key] = workload["completion"][key];
    for (const char* key : {"mean", "p50", "p99", "p999"}) row[prefix + "slowdown_" + key] = workload["slowdown"][key];
    if (workload.contains("collectives")) add_collectives(workload["collectives"], prefix, row);
  }
  add_signals(report, row);
  row["span_ns"] = report["run"]["span_ns"];
  row["end"] = report["run"]["end"];
  row["hash"] = report["hash"];
  return row;
}

namespace {

// A column of a workload, where there are several: `there.duration_ns`.
struct Column {
  explicit Column(const std::string& name)
      : workload(name.substr(0, name.rfind('.') + 1)), what(name.substr(workload.size())) {}
  std::string workload, what;
};

// Whether what the column has of a run is a value: what did not come to its end has zeros.
bool has_value(const Json& row, const Column& column) {
  if (column.what.starts_with("completion_") || column.what.starts_with("slowdown_"))
    return row.value(column.workload + kDoneColumn, std::int64_t{1}) > 0;
  return (column.what != "duration_ns" && !column.what.starts_with("collective_")) ||
         row.value(column.workload + kFinishedColumn, true);
}

// The means of one combination, run by run.
class Means {
 public:
  void add(const Json& row) {
    for (const auto& [name, value] : row.items()) {
      const Column column(name);
      if (name == kSeedColumn) {
        count("seeds", true);
      } else if (column.what == kFinishedColumn && value.is_boolean()) {
        count(column.workload + "finished_runs", value.get<bool>());
        count(column.workload + "counted_runs", row[column.workload + kDoneColumn].get<std::int64_t>() > 0);
      } else if (value.is_number()) {
        add(name, value.get<double>(), has_value(row, column));
      } else if (name != "hash" && name != "end") {
        means_[name] = value;
      }
    }
  }
  /// What no run has a value of is left out.
  Json json() const {
    Json all;
    for (const auto& [name, value] : means_.items())
      if (!value.is_null()) all[name] = value;
    return all;
  }

 private:
  void count(const std::string& name, bool one) {
    means_[name] = (means_.contains(name) ? means_[name].get<std::int64_t>() : 0) + (one ? 1 : 0);
  }
  void add(const std::string& name, double value, bool has) {
    Json& mean = means_[name];  // null at first: so each keeps its place
    if (!has) return;
    const double before = mean.is_null() ? 0 : mean.get<double>();
    mean = before + (value - before) / static_cast<double>(++counts_[name]);
  }

  Json means_;
  std::map<std::string, std::int64_t> counts_;
};

// What is set in a row: all before its seed.
std::string settings_of(const Json& row) {
  std::string text;
  for (const auto& [name, value] : row.items()) {
    if (name == kSeedColumn) break;
    text += value.get<std::string>() + '\n';
  }
  return text;
}

}  // namespace

Json sweep_means(const Json& rows) {
  Json all = Json::array();
  for (std::size_t i = 0; i < rows.size();) {
    Means means;
    const std::string settings = settings_of(rows[i]);
    for (; i < rows.size() && settings_of(rows[i]) == settings; i++) means.add(rows[i]);
    all.push_back(means.json());
  }
  return all;
}

namespace {

// Whether a column says the same in all rows.
bool is_constant(const Json& rows, const std::string& name) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const Json& row) { return row.value(name, Json()) == rows.front().value(name, Json()); });
}

// Whether a column says of any run that it did not finish; of means, that not all did.
bool tells_of_failure(const Json& rows, const std::string& name) {
  return Column(name).what == kFinishedColumn && std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
           return row.contains(name) && row[name] != true && row[name] != 1;
         });
}

// Whether two columns say the same: of one transfer all percentiles are its time.
bool are_equal(const Json& rows, const std::string& one, const std::string& other) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const Json& row) { return row.value(one, Json()) == row.value(other, Json()); });
}

// About as wide as a column is as text, with what parts it from the next one.
std::size_t column_width(const Json& rows, const std::string& name) {
  constexpr std::size_t kUnit = 7, kNumber = 6;  // " [Gbps]"
  const std::string label = report_label(name);
  std::size_t width = std::max(label.size() + (label == name ? 0 : kUnit), kNumber);
  for (const Json& row : rows)
    if (row.contains(name) && row[name].is_string()) width = std::max(width, row[name].get<std::string>().size());
  return width + 2;
}

// What readers of a sweep look for first; what is not here comes behind it.
std::size_t place_of(const std::string& name) {
  constexpr std::string_view kFirst[] = {"finished",
                                         "finished_runs",
                                         "counted_runs",
                                         "transfers_done",
                                         "duration_ns",
                                         "goodput_bits_per_second",
                                         "collective_mean_ns",
                                         "collective_max_ns",
                                         "completion_mean_ns",
                                         "completion_p99_ns",
                                         "slowdown_mean",
                                         "slowdown_p99",
                                         "retransmitted_packets",
                                         "local_ack_timeout_err",
                                         "np_cnp_sent",
                                         "pause_time_ns",
                                         "drop_buffer_full"};
  return static_cast<std::size_t>(std::ranges::find(kFirst, Column(name).what) - std::begin(kFirst));
}

}  // namespace

Json sweep_brief(const Json& rows, std::size_t width) {
  constexpr std::size_t kColumnsMax = 12;
  if (rows.empty()) return rows;
  std::vector<std::string> shown, others;
  bool is_setting = true;
  for (const std::string& name : names_of_all(rows)) {
    const bool is_shown = name == "seeds" || tells_of_failure(rows, name);
    if (is_setting || is_shown) shown.push_back(name);
    if (name == kSeedColumn || name == "seeds") is_setting = false;
    if (!is_setting && !is_shown && name != kSeedColumn && name != "hash" && name != "end") others.push_back(name);
  }
  std::ranges::stable_sort(others, {}, place_of);
  std::size_t used = 2;
  for (const std::string& name : shown) used += column_width(rows, name);
  const std::size_t settings = shown.size();
  for (const bool may_be_constant : {false, true})
    for (const std::string& name : others) {
      const std::size_t wide = column_width(rows, name);
      if (shown.size() >= kColumnsMax || used + wide > width) continue;
      // Where nothing differs, what matters most.
      if (is_constant(rows, name) != may_be_constant || (may_be_constant && shown.size() >= settings + 2)) continue;
      if (std::ranges::any_of(shown, [&](const std::string& one) { return are_equal(rows, one, name); })) continue;
      shown.push_back(name);
      used += wide;
    }
  Json brief = Json::array();
  for (const Json& row : rows) {
    Json& one = brief.emplace_back(Json::object());
    for (const std::string& name : shown)
      if (row.contains(name)) one[name] = row[name];
  }
  return brief;
}

std::string csv_line(const Json& row) {
  std::vector<std::string> cells;
  for (const auto& [name, value] : row.items()) cells.push_back(csv_cell(value));
  return line_of(cells);
}

std::string csv_names(const Json& row) {
  std::vector<std::string> cells;
  for (const auto& [name, value] : row.items()) cells.push_back(csv_cell(name));
  return line_of(cells);
}

std::string csv_text(const Json& rows) {
  if (rows.empty()) return "";
  const std::vector<std::string> names = names_of_all(rows);
  std::vector<std::string> cells;
  for (const std::string& name : names) cells.push_back(csv_cell(name));
  std::string text = line_of(cells);
  for (const Json& row : rows) {
    if (has_names(row, names)) {
      text += csv_line(row);
      continue;
    }
    cells.clear();
    for (const std::string& name : names) cells.push_back(row.contains(name) ? csv_cell(row[name]) : "");
    text += line_of(cells);
  }
  return text;
}

}  // namespace rocebox::cli
