// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/recording.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "runtime/config/units.h"

namespace rocebox {
namespace {

// "bump.link.drop_x" as reports and expectations name it; of a link only the name and the counter.
std::string reason_name(const Device& device, bool is_link, std::string_view kernel, std::string_view counter) {
  return kernel.empty() || is_link ? fmt::format("{}.{}", device.name(), counter)
                                   : fmt::format("{}.{}.{}", device.name(), kernel, counter);
}

bool names_a_drop(std::string_view counter) { return counter.find("drop") != std::string_view::npos; }

bool matches(const std::string& pattern, const std::string& full, const std::string& counter) {
  return pattern == "all" || fnmatch(pattern.c_str(), full.c_str(), 0) == 0 ||
         fnmatch(pattern.c_str(), counter.c_str(), 0) == 0;
}

}  // namespace

Recording::Recording(unsigned id, RecordingRequest request, const config::RunConfig& config, Live& live)
    : id_(id), request_(std::move(request)), clock_(live.clock()), shards_(live.shards()) {
  if (!request_.filter.empty()) filter_.emplace(request_.filter);
  if (!request_.trace && request_.ports.empty() && request_.drops.empty())
    throw ConfigError("a capture needs a port or a reason of drops: such as `--port bump.a` or `--drop all`");
  if (request_.files.empty()) throw ConfigError("nothing to write to: a file is needed");
  if (request_.trace) std::for_each(request_.files.begin(), request_.files.end(), check_trace_file);
  for (const Shard* shard : shards_) {
    std::vector<Selection>& devices = selections_.emplace_back(shard->testbed().device_count());
    for (Selection& selection : devices) {
      selection.follow = request_.trace;
      if (filter_) selection.filter = &*filter_;
    }
  }
  select_ports(config);
  select_drops();
  name_interfaces();
  output_.emplace(request_.files, interfaces_, Waiting(Patience::kBounded, request_.stop));
  const std::uint32_t snap = !output_->wants_bytes() ? 0 : request_.snap_bytes ? request_.snap_bytes : kPacketBytesMax;
  for (auto& devices : selections_)
    for (Selection& selection : devices) selection.snap_bytes = snap;
  if (request_.duration) until_ = clock_.now() + request_.duration;
}

void Recording::select_ports(const config::RunConfig& config) {
  for (const std::string& text : request_.ports) {
    const std::size_t colon = text.rfind(':');
    const std::string way = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (colon != std::string::npos && way != "rx" && way != "tx")
      throw ConfigError(fmt::format("port {}: the direction is `rx` or `tx`, or both without a word", text));
    config::PortName name;
    std::string why;
    if (!config::resolve_port(config, text.substr(0, colon), name, why))
      throw ConfigError(fmt::format("port {}: {}", text, why));
    const FabricPort port = shards_[0]->testbed().port(name);
    const unsigned ways = way.empty() ? Selection::kRx | Selection::kTx : way == "rx" ? Selection::kRx : Selection::kTx;
    for (auto& devices : selections_) {
      std::vector<std::uint8_t>& ports = devices[port.device].ports;
      ports.resize(shards_[0]->testbed().device(port.device).ports().size());
      ports[port.port] = static_cast<std::uint8_t>(ports[port.port] | ways);
    }
  }
}

void Recording::select_drops() {
  std::vector<bool> found(request_.drops.size());
  std::string known;
  for (std::size_t s = 0; s < selections_.size(); s++) {
    const Testbed& testbed = std::as_const(*shards_[s]).testbed();
    for (unsigned d = 0; d < testbed.device_count(); d++) {
      const Device& device = testbed.device(d);
      Selection& selection = selections_[s][d];
      device.books().for_each_counter([&](const CounterView& view) {
        const std::string full = reason_name(device, testbed.is_link(d), view.kernel, view.name);
        if (!view.counter || !names_a_drop(view.name)) return;
        if (s == 0) known += (known.empty() ? "" : ", ") + full;
        for (std::size_t i = 0; i < found.size(); i++) {
          if (!matches(request_.drops[i], full, std::string(view.name))) continue;
          found[i] = true;
          selection.drops.push_back(view.counter);
        }
      });
      std::sort(selection.drops.begin(), selection.drops.end());
    }
  }
  for (std::size_t i = 0; i < found.size(); i++)
    if (!found[i])
      throw ConfigError(fmt::format("no reason of drops matches `{}`; known: {}, `all`", request_.drops[i], known));
}

// A trace has an interface for each device, as in replay; a capture one for each port, and for each device whose drops
// it takes: kernels drop packets of their own making, which came in by no port.
void Recording::name_interfaces() {
  const Testbed& testbed = std::as_const(*shards_[0]).testbed();
  for (unsigned d = 0; d < testbed.device_count(); d++) {
    const Selection& selection = selections_[0][d];
    const std::vector<std::string>& ports = testbed.device(d).ports();
    std::vector<unsigned>& table = interface_table_.emplace_back(ports.size() + 1);
    for (std::size_t p = 0; p < ports.size() && !request_.trace; p++) {
      if (selection.drops.empty() && (selection.ports.empty() || selection.ports[p] == 0)) continue;
      table[p] = static_cast<unsigned>(interfaces_.size());
      interfaces_.push_back(fmt::format("{}.{}", testbed.device(d).name(), ports[p]));
    }
    if (!request_.trace && selection.drops.empty()) continue;
    table.back() = static_cast<unsigned>(interfaces_.size());
    interfaces_.push_back(testbed.device(d).name());
  }
}

const Selection* Recording::selection(unsigned shard, unsigned device) const {
  const Selection& selection = selections_[shard][device];
  return selection.follow || selection.takes_ports() || !selection.drops.empty() ? &selection : nullptr;
}

unsigned Recording::interface_of(const Record& record) const {
  const std::vector<unsigned>& table = interface_table_[record.device];
  if (request_.trace) return table.back();
  if (record.verdict != TraceVerdict::kDrop) return table[record.port];
  return record.info.made ? table.back() : table[record.input];
}

void Recording::write(unsigned shard, const Record& record, const std::byte* held) {
  if (request_.count && written_ == request_.count) return;
  const Device& device = shards_[shard]->testbed().device(record.device);
  const bool at_port = record.verdict == TraceVerdict::kArrive || record.verdict == TraceVerdict::kLeave;
  const TraceEvent event{record.at - clock_.started(),
                         record.stage,
                         record.verdict,
                         record.port,
                         record.reason,
                         record.info,
                         Packet(),
                         record.note};
  CapturedFrame frame{{reinterpret_cast<const std::uint8_t*>(held), record.held_bytes}, record.wire_bytes};
  if (request_.snap_bytes) frame.held = frame.held.first(std::min<std::size_t>(frame.held.size(), request_.snap_bytes));
  if (at_port) frame.direction = record.verdict == TraceVerdict::kArrive ? Direction::kInbound : Direction::kOutbound;
  output_->write(interface_of(record), record.at, frame,
                 trace_line(event, device.name(), at_port ? device.ports()[record.port] : std::string(),
                            record.reason ? device.books().counter_name(record.reason) : std::string_view()));
  written_++;
}

void Recording::flush_direct() {
  output_->for_each_file([](OutputFile& file) {
    if (file.direct()) file.flush();
  });
}

bool Recording::due(Nanos now) {
  bool failed = false;
  output_->for_each_file([&](const OutputFile& file) { failed |= !file.failed().empty(); });
  return failed || (request_.count && written_ == request_.count) || (until_ && now >= until_);
}

void Recording::finish(std::uint64_t lost) {
  output_->write_lost(lost);
  output_->for_each_file([this](OutputFile& file) {
    try {
      file.close();
      file.publish();
    } catch (const std::exception& error) {
      error_ += (error_.empty() ? "" : "; ") + std::string(error.what());
    }
  });
  output_.reset();
}

std::string Recording::what() const {
  if (request_.trace) return "trace";
  std::vector<std::string> parts;
  for (const std::string& port : request_.ports) parts.push_back("port " + port);
  for (const std::string& drop : request_.drops) parts.push_back("drop " + drop);
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json Recording::row(std::string_view state, std::uint64_t lost) const {
  Json row{{"id", id_},
           {"is", request_.trace ? "trace" : "capture"},
           {"of", what()},
           {"filter", request_.filter.empty() ? "all" : request_.filter},
           {"files", fmt::format("{}", fmt::join(request_.names.empty() ? request_.files : request_.names, ", "))},
           {"state", state},
           {"written", written_},
           {"lost", lost}};
  if (!error_.empty()) row["error"] = error_;
  return row;
}

}  // namespace rocebox
