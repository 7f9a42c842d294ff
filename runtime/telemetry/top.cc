// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/config/printable.h"

namespace rocebox {
namespace {

// Numbers of a port that are packets lost there.
constexpr std::string_view kPortDrops[] = {"rx_missed", "rx_errors",   "rx_no_packet", "rx_too_long",
                                           "tx_full",   "tx_too_long", "tx_errors"};

std::int64_t number(const Json& object, const std::string& key) {
  return object.contains(key) && object[key].is_number() ? object[key].get<std::int64_t>() : 0;
}
const Json& member(const Json& object, const std::string& key) {
  static const Json nothing = Json::object();
  return object.contains(key) ? object[key] : nothing;
}

bool is_drop(std::string_view counter) {
  return counter.starts_with("drop_") || counter.find("_drop_") != counter.npos;
}

// Two samples of one thing, and the time between them.
struct Span {
  const Json &before, &after;
  double seconds = static_cast<double>(number(after, "elapsed_ns") - number(before, "elapsed_ns")) / 1e9;

  std::int64_t per_second(std::int64_t difference) const {
    return seconds > 0 ? std::llround(static_cast<double>(difference) / seconds) : 0;
  }
  std::int64_t rate(const std::string& group, const std::string& key) const {
    return per_second(number(member(after, group), key) - number(member(before, group), key));
  }
};

void add_latency(Json& row, const Json& from, const std::string& prefix) {
  for (const char* key : {"p50_ns", "p99_ns", "p999_ns"})
    row[std::string("latency_") + key] = number(from, prefix + key);
}

void add_drop(Json& drops, const std::string& at, const std::string& reason, const Span& span,
              const std::string& group) {
  const std::int64_t count = number(member(span.after, group), reason);
  if (count == 0) return;
  drops.push_back(
      {{"at", at}, {"reason", reason}, {"packets", count}, {"packets_per_second", span.rate(group, reason)}});
}

void add_drops(Json& drops, const std::string& at, const Span& span) {
  for (const auto& [name, value] : member(span.after, "counters").items())
    if (is_drop(name)) add_drop(drops, at, name, span, "counters");
}

// Packets that came to a kernel.
std::int64_t kernel_rate(const Span& span) {
  return span.per_second(number(span.after, "packets_in") - number(span.before, "packets_in"));
}

// Levels and high-water marks have no rate; the answer names their kinds.
bool has_rate(const Json& answer, const std::string& counter) { return !member(answer, "kinds").contains(counter); }

// What a kernel is busy with: those of its counters that move most. Drops have a list of their own.
void add_moving(Json& rows, const std::string& at, const Span& span) {
  constexpr std::size_t kShown = 6;
  std::vector<Json> moving;
  for (const auto& [name, value] : member(span.after, "counters").items()) {
    if (is_drop(name) || name.ends_with("bytes") || !has_rate(span.after, name)) continue;
    if (const std::int64_t rate = span.rate("counters", name); rate > 0)
      moving.push_back({{"at", at}, {"counter", name}, {"total", value}, {"per_second", rate}});
  }
  std::stable_sort(moving.begin(), moving.end(), [](const Json& a, const Json& b) {
    return a["per_second"].get<std::int64_t>() > b["per_second"].get<std::int64_t>();
  });
  moving.resize(std::min(moving.size(), kShown));
  for (Json& row : moving) rows.push_back(std::move(row));
}

Json port_row(const std::string& name, const Span& span) {
  const Json& live = member(span.after, "live");
  Json row = {{"port", name}, {"link", live.contains("link") ? live["link"] : Json("-")}};
  for (const char* way : {"rx", "tx"}) {
    // What a port could not send has left the device all the same.
    const std::string packets = fmt::format("{}_packets", way);
    row[packets + "_per_second"] = span.rate(live.contains(packets) ? "live" : "device", packets);
    row[fmt::format("{}_bits_per_second", way)] = 8 * span.rate("device", fmt::format("{}_bytes", way));
  }
  add_latency(row, live, "latency_");
  return row;
}

Json device_row(const Span& span) {
  return {{"in_packets_per_second", span.rate("counters", "packets_in")},
          {"out_packets_per_second", span.rate("counters", "packets_out")},
          {"dropped_packets_per_second", span.rate("counters", "packets_dropped")},
          {"packets_held", number(member(span.after, "counters"), "packets_held")}};
}

// Text

std::string rate_text(double value, std::string_view unit) {
  constexpr std::string_view kScales[] = {"", "k", "M", "G", "T"};
  std::size_t scale = 0;
  for (; scale + 1 < std::size(kScales) && value >= 999.5; scale++) value /= 1000;
  const int digits = scale == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, kScales[scale], unit);
}
std::string time_text(double nanos) {
  if (nanos == 0) return "-";
  if (nanos < 1e3) return fmt::format("{:.0f} ns", nanos);
  if (nanos < 1e6) return fmt::format("{:.1f} us", nanos / 1e3);
  if (nanos < 1e9) return fmt::format("{:.1f} ms", nanos / 1e6);
  return fmt::format("{:.1f} s", nanos / 1e9);
}
std::string cell(std::string_view key, const Json& value) {
  if (value.is_string()) return config::printable(value.get_ref<const std::string&>());
  if (key.ends_with("_bits_per_second")) return rate_text(value.get<double>(), "bps");
  if (key == "per_second") return rate_text(value.get<double>(), "/s");
  if (key.ends_with("_per_second")) return rate_text(value.get<double>(), "pps");
  if (key.ends_with("_ns")) return time_text(value.get<double>());
  if (key == "busy") return fmt::format("{:.1f} %", 100 * value.get<double>());
  return value.dump();
}

struct Column {
  std::string_view key, title;
};

// A table of the columns that the rows have. Text is put to the left, numbers to the right.
std::string table(const Json& rows, std::initializer_list<Column> columns) {
  if (rows.empty()) return "";
  std::vector<std::string> lines(rows.size() + 1);
  for (const Column& column : columns) {
    const std::string key(column.key);
    if (!rows[0].contains(key)) continue;
    std::vector<std::string> cells = {std::string(column.title)};
    std::size_t width = 0;
    for (const Json& row : rows) cells.push_back(cell(key, row[key]));
    for (const std::string& text : cells) width = std::max(width, text.size());
    const bool left = rows[0][key].is_string();
    for (std::size_t i = 0; i < lines.size(); i++)
      lines[i] +=
          fmt::format(fmt::runtime(left ? "{}{:<{}}" : "{}{:>{}}"), lines[i].empty() ? "" : "  ", cells[i], width);
  }
  std::string text = "\n";
  for (std::string& line : lines) text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  return text;
}

}  // namespace

Json take_sample(TelemetryClient& client) {
  Json sample;
  sample["run"] = client.call("/rocebox/run");
  for (const char* what : {"port", "device", "kernel", "link"}) {
    const std::string command = std::string("/rocebox/") + what;
    Json& part = sample[std::string(what) + "s"] = Json::object();
    for (const std::string& name : client.names(command + "s")) part[name] = client.call(command, name);
  }
  return sample;
}

Json top_block(const Json& before, const Json& after) {
  const Span run{before["run"], after["run"]};
  Json block = {{"instance", after["run"]["instance"]},
                {"config", after["run"]["config"]},
                {"elapsed_ns", number(after["run"], "elapsed_ns")},
                {"interval_ns", number(after["run"], "elapsed_ns") - number(before["run"], "elapsed_ns")},
                {"pool_in_use", number(after["run"], "pool_in_use")},
                {"pool_idle", number(after["run"], "pool_idle")}};
  for (const char* list : {"shards", "ports", "devices", "kernels", "links", "drops", "counters"})
    block[list] = Json::array();
  for (const auto& [name, shard] : after["run"]["shards"].items()) {
    const auto busy = static_cast<double>(number(shard, "busy_ns") -
                                          number(member(member(before["run"], "shards"), name), "busy_ns"));
    block["shards"].push_back({{"shard", number(shard, "shard")},
                               {"core", number(shard, "core")},
                               {"busy", run.seconds > 0 ? std::clamp(busy / 1e9 / run.seconds, 0.0, 1.0) : 0.0}});
  }
  Json& drops = block["drops"];
  const Json run_before = {{"run", before["run"]}, {"elapsed_ns", number(before["run"], "elapsed_ns")}};
  const Json run_after = {{"run", after["run"]}, {"elapsed_ns", number(after["run"], "elapsed_ns")}};
  for (const auto& [name, value] : after["run"].items())
    if (is_drop(name)) add_drop(drops, "run", name, Span{run_before, run_after}, "run");
  auto each = [&](const char* list, auto use) {
    for (const auto& [name, now] : after[list].items()) use(name, Span{member(before[list], name), now});
  };
  each("ports", [&](const std::string& name, const Span& span) {
    block["ports"].push_back(port_row(name, span));
    for (const std::string_view reason : kPortDrops) add_drop(drops, name, std::string(reason), span, "live");
  });
  each("devices", [&](const std::string& name, const Span& span) {
    Json row = {{"device", name}};
    row.update(device_row(span));
    add_latency(row, member(span.after, "latency"), "");
    block["devices"].push_back(std::move(row));
    add_drops(drops, name, span);
  });
  for (const char* list : {"kernels", "links"})
    each(list, [&](const std::string& name, const Span& span) {
      Json row = {{std::string(list, std::string_view(list).size() - 1), name}};
      row["packets_per_second"] = kernel_rate(span);
      add_latency(row, member(span.after, "latency"), "");
      block[list].push_back(std::move(row));
      add_drops(drops, name, span);
      if (list == std::string_view("kernels")) add_moving(block["counters"], name, span);
    });
  return block;
}

std::string top_text(const Json& block) {
  std::string text = fmt::format("{}  {}  up {}  packets in use {} (idle {})\n", cell("", block["instance"]),
                                 cell("", block["config"]), time_text(block["elapsed_ns"].get<double>()),
                                 block["pool_in_use"].dump(), block["pool_idle"].dump());
  constexpr Column kP50{"latency_p50_ns", "p50"}, kP99{"latency_p99_ns", "p99"}, kP999{"latency_p999_ns", "p99.9"};
  text += table(block["shards"], {{"shard", "shard"}, {"core", "core"}, {"busy", "busy"}});
  text += table(block["ports"], {{"port", "port"},
                                 {"link", "link"},
                                 {"rx_packets_per_second", "rx"},
                                 {"rx_bits_per_second", ""},
                                 {"tx_packets_per_second", "tx"},
                                 {"tx_bits_per_second", ""},
                                 kP50,
                                 kP99,
                                 kP999});
  text += table(block["devices"], {{"device", "device"},
                                   {"in_packets_per_second", "in"},
                                   {"out_packets_per_second", "out"},
                                   {"dropped_packets_per_second", "dropped"},
                                   {"packets_held", "held"},
                                   kP50,
                                   kP99,
                                   kP999});
  text += table(block["kernels"], {{"kernel", "kernel"}, {"packets_per_second", "packets"}, kP50, kP99, kP999});
  text += table(block["links"], {{"link", "link"}, {"packets_per_second", "packets"}, kP50, kP99, kP999});
  text += table(block["drops"],
                {{"at", "drops at"}, {"reason", "reason"}, {"packets", "packets"}, {"packets_per_second", "now"}});
  text += table(block["counters"],
                {{"at", "moving at"}, {"counter", "counter"}, {"total", "total"}, {"per_second", "now"}});
  return text;
}

}  // namespace rocebox
