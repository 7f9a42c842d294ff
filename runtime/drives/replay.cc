// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rocebox {
namespace {

// Packets that one call of Fabric::run takes. A capture whose records all bear one time would otherwise need them
// all in memory at once.
constexpr std::size_t kPacketsPerInstant = 1024;
constexpr std::uint64_t kProgressPackets = 8192;

bool same_file(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  return stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

}  // namespace

Replay::Replay(const config::RunConfig& config, Pool& pool, ReplayOptions options)
    : config_(config),
      pool_(pool),
      options_(std::move(options)),
      testbed_(config, pool, static_cast<std::uint64_t>(config.seed),
               [this](FabricPort from, std::span<Packet> packets, Nanos now) { deliver(from, packets, now); }),
      input_(config.captures, [this](const config::PortName& name) { return testbed_.port(name); }) {
  XXH3_64bits_reset(hash_.get());
  for (const config::Expectation& expectation : config.expectations) {
    try {
      expectations_.emplace_back(expectation.text);
    } catch (const ConfigError& error) {
      throw ConfigError(
          fmt::format("{}:{}:{}: {}", config.file, expectation.place.line, expectation.place.column, error.what()));
    }
  }
  if (!options_.trace.empty()) trace_filter_.emplace(options_.trace);
  open_outputs();
  check_expectations();
  if (!trace_filter_) return;
  std::vector<std::string> names;
  for (unsigned i = 0; i < testbed_.device_count(); i++) names.push_back(testbed_.device(i).name());
  trace_output_.emplace(options_.trace_outs, options_.trace_text, names);
  for (unsigned i = 0; i < testbed_.device_count(); i++) {
    tracers_.push_back(
        std::make_unique<Tracer>(*trace_filter_, *trace_output_, testbed_.device(i), i, input_.origin()));
    testbed_.device(i).set_trace(tracers_.back().get());
  }
}

void Replay::open_outputs() {
  for (unsigned i = 0; i < testbed_.device_count(); i++) out_ports_.emplace_back(testbed_.device(i).ports().size());
  for (const config::CaptureBinding& binding : config_.captures) {
    if (binding.out.empty()) continue;
    for (const config::CaptureBinding& other : config_.captures)
      for (const std::string& in : other.in)
        if (same_file(in, binding.out))
          throw ConfigError(fmt::format("{}: is an input of port `{}`; an output must be another file", binding.out,
                                        other.port.text()));
    auto output =
        std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.path == binding.out; });
    if (output == outputs_.end()) output = outputs_.insert(outputs_.end(), Output{binding.out, nullptr, {}});
    const FabricPort port = testbed_.port(binding.port);
    out_ports_[port.device][port.port] = {static_cast<int>(output - outputs_.begin()),
                                          static_cast<unsigned>(output->interfaces.size())};
    output->interfaces.push_back(binding.port.text());
  }
  for (Output& output : outputs_) output.writer = std::make_unique<CaptureWriter>(output.path, output.interfaces);
}

void Replay::check_expectations() const {
  if (expectations_.empty()) return;
  const Json skeleton = report();
  std::string mistakes;
  for (std::size_t i = 0; i < expectations_.size(); i++) {
    std::string why;
    if (expectations_[i].may_resolve(skeleton, why)) continue;
    const config::Place place = config_.expectations[i].place;
    mistakes +=
        fmt::format("{}{}:{}:{}: {}", mistakes.empty() ? "" : "\n", config_.file, place.line, place.column, why);
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
}

void Replay::deliver(FabricPort from, std::span<Packet> packets, Nanos now) {
  const OutPort& port = out_ports_[from.device][from.port];
  packets_out_ += packets.size();
  for (Packet packet : packets) {
    const std::uint64_t head[3] = {std::uint64_t{from.device} << 32 | from.port, static_cast<std::uint64_t>(now),
                                   packet.wire_bytes()};
    XXH3_64bits_update(hash_.get(), head, sizeof head);
    XXH3_64bits_update(hash_.get(), packet.data(), packet.size());
    if (port.output >= 0)
      outputs_[static_cast<std::size_t>(port.output)].writer->write(port.interface, input_.origin() + now, packet);
    rte_pktmbuf_free(packet.mbuf());
  }
}

void Replay::check_outputs() const {
  for (const Output& output : outputs_)
    if (const std::string why = output.writer->failed(); !why.empty()) throw std::runtime_error(why);
}

// Reads records and runs the fabric instant by instant.
void Replay::feed() {
  Fabric& fabric = testbed_.fabric();
  CaptureRecord record;
  FabricPort to{};
  bool more = input_.next(record, to);
  while (more) {
    const Nanos at = record.at;
    const Nanos now = at - input_.origin();
    fabric.advance_to(now);
    for (std::size_t count = 0; more && record.at == at && count < kPacketsPerInstant; count++) {
      PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(record.bytes.size()));
      if (packet) {
        std::memcpy(packet->data(), record.bytes.data(), record.bytes.size());
        packet->meta().wire_bytes = record.wire_bytes;
        fabric.inject(to, packet.release());
      } else {
        dropped_pool_empty_++;
      }
      if (++packets_in_ % kProgressPackets == 0) {
        pool_high_water_ = std::max<std::uint64_t>(pool_high_water_, pool_.in_use());
        check_outputs();
        if (options_.progress) options_.progress(input_.position(), input_.file_bytes(), packets_in_);
      }
      more = input_.next(record, to);
    }
    fabric.run(now);
    ended_at_ = now;
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
      interrupted_ = true;
      return;
    }
  }
}

// What is still held leaves at its own time; a timer that re-arms for ever must not keep the run going.
void Replay::drain(Nanos last) {
  Fabric& fabric = testbed_.fabric();
  const Nanos limit = last > INT64_MAX - config_.drain ? INT64_MAX - 1 : last + config_.drain;
  pool_high_water_ = std::max<std::uint64_t>(pool_high_water_, pool_.in_use());
  while (fabric.next_deadline() <= limit) {
    ended_at_ = std::max(ended_at_, fabric.next_deadline());
    fabric.run(fabric.next_deadline());
  }
  held_at_end_ = fabric.held();
}

void Replay::run() {
  feed();
  drain(ended_at_);
  check_outputs();
  // A result in full or not at all: only when every file is whole does any get its name.
  if (trace_output_) trace_output_->finish();
  for (Output& output : outputs_) output.writer->finish();
}

bool Replay::expectations_hold() const {
  const Json now = report();
  return std::all_of(expectations_.begin(), expectations_.end(),
                     [&](const Expectation& e) { return e.evaluate(now).holds; });
}

Json Replay::report() const {
  Json report = {{"schema_version", kReportSchemaVersion},
                 {"command", "replay"},
                 {"config", config_.file},
                 {"seed", config_.seed}};
  report["run"] = {
      {"packets_in", packets_in_},           {"packets_out", packets_out_}, {"drop_pool_empty", dropped_pool_empty_},
      {"held_at_end", held_at_end_},         {"span_ns", ended_at_},        {"interrupted", interrupted_},
      {"pool_packets_max", pool_high_water_}};
  input_.report(report["inputs"]);
  report["outputs"] = Json::array();
  for (const Output& output : outputs_)
    report["outputs"].push_back({{"file", output.path},
                                 {"packets", output.writer ? output.writer->packets() : 0},
                                 {"bytes", output.writer ? output.writer->bytes() : 0}});
  testbed_.report(report);
  if (!expectations_.empty()) {
    Json rows = Json::array();
    for (const Expectation& expectation : expectations_) {
      const Expectation::Result result = expectation.evaluate(report);
      rows.push_back(
          {{"holds", result.holds}, {"expect", expectation.text()}, {"left", result.left}, {"right", result.right}});
    }
    report["expectations"] = std::move(rows);
  }
  report["hash"] = fmt::format("{:016x}", XXH3_64bits_digest(hash_.get()));
  return report;
}

}  // namespace rocebox
