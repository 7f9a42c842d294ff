// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/sweep.h"

namespace rocebox::cli {
namespace {

constexpr std::size_t kPointsMax = 100'000;

std::string csv_cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
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

Json sweep_row(const SweepPoint& point, const Json& report) {
  Json row;
  for (const auto& [key, value] : point.settings) row[key] = value;
  row[kSeedColumn] = point.seed;
  const Json& workloads = report["workloads"];
  for (const auto& [name, workload] : workloads.items()) {
    const std::string prefix = workloads.size() == 1 ? "" : name + ".";
    for (const char* key : {"transfers_done", "duration_ns", "goodput_bits_per_second"})
      row[prefix + key] = workload[key];
    for (const char* key : {"mean_ns", "p50_ns", "p99_ns", "p999_ns"})
      row[prefix + "completion_" + key] = workload["completion"][key];
    for (const char* key : {"mean", "p99"}) row[prefix + "slowdown_" + key] = workload["slowdown"][key];
  }
  row["span_ns"] = report["run"]["span_ns"];
  row["end"] = report["run"]["end"];
  row["hash"] = report["hash"];
  return row;
}

Json sweep_means(const Json& rows) {
  Json means = Json::array();
  std::vector<std::string> keys;
  for (const Json& row : rows) {
    std::string key;
    for (const auto& [name, value] : row.items()) {
      if (name == "seed") break;
      key += value.get<std::string>() + '\n';
    }
    const bool again = !keys.empty() && keys.back() == key;
    if (!again) {
      keys.push_back(key);
      means.push_back(row);
      means.back()["seed"] = 0;
    }
    Json& mean = means.back();
    mean["seed"] = mean["seed"].get<std::int64_t>() + 1;
    const auto count = static_cast<double>(mean["seed"].get<std::int64_t>());
    for (const auto& [name, value] : row.items())
      if (value.is_number() && name != "seed") {
        const double before = again ? mean[name].get<double>() : 0;
        mean[name] = before + (value.get<double>() - before) / count;
      }
  }
  for (Json& mean : means) {
    Json renamed;
    for (auto& [name, value] : mean.items())
      if (name != "hash" && name != "end") renamed[name == "seed" ? "seeds" : name] = value;
    mean = std::move(renamed);
  }
  return means;
}

std::string csv_text(const Json& rows) {
  std::string text;
  if (rows.empty()) return text;
  const auto add_line = [&text](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); i++) text += (i ? "," : "") + cells[i];
    text += "\r\n";
  };
  const std::vector<std::string> names = names_of_all(rows);
  std::vector<std::string> head;
  for (const std::string& name : names) head.push_back(csv_cell(name));
  add_line(head);
  for (const Json& row : rows) {
    const bool has_all = has_names(row, names);
    std::vector<std::string> cells;
    if (has_all)
      for (const auto& [name, value] : row.items()) cells.push_back(csv_cell(value));
    else
      for (const std::string& name : names) cells.push_back(row.contains(name) ? csv_cell(row[name]) : "");
    add_line(cells);
  }
  return text;
}

}  // namespace rocebox::cli
