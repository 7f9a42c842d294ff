// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "runtime/config/units.h"
#include "runtime/limits.h"

namespace rocebox {
namespace {

constexpr std::uint64_t kProgressPackets = 8192;
// Rows of inputs and outputs that the command line may add to those of the configuration.
constexpr std::size_t kMoreFiles = 64;
// What is still done for packets that are held when a signal ends the input: a second or two of a core in all, or more
// hops for each of them than real paths have.
constexpr std::uint64_t kWorkAfterSignal = 1 << 20, kWorkAfterSignalForEach = 64;

}  // namespace

Replay::Replay(const config::RunConfig& config, Pool& pool, ReplayOptions options)
    : config_(config),
      pool_(pool),
      options_(std::move(options)),
      testbed_(config, pool, static_cast<std::uint64_t>(config.seed),
               [this](FabricPort from, std::span<Packet> packets, Nanos now) { leave(from, packets, now); }),
      input_(
          config.captures, [this](const config::PortName& name) { return testbed_.port(name); }, options_.stop),
      outputs_(config, options_.outputs, [this](const config::PortName& name) { return testbed_.port(name); }) {
  testbed_.fabric().let_output_share();
  testbed_.fabric().count_late();
  testbed_.tap_joined(config, [this](FabricPort from, std::span<const Packet> packets, Nanos now) {
    for (const Packet packet : packets) outputs_.write(from, input_.origin() + now, packet);
  });
  XXH3_64bits_reset(hash_.get());
  if (!options_.trace.empty()) trace_filter_.emplace(options_.trace);
  parse_expectations();
}

void Replay::parse_expectations() {
  Json skeleton = report();
  for (std::size_t row = 0; options_.more_files_may_come && row < kMoreFiles; row++) {
    skeleton["inputs"].push_back(ReplayInput::empty_row());
    skeleton["outputs"].push_back(ReplayOutputs::empty_row());
  }
  expectations_.read(config_, skeleton);
}

void Replay::open() {
  std::vector<std::string> devices;
  for (unsigned i = 0; i < testbed_.device_count(); i++) devices.push_back(testbed_.device(i).name());
  outputs_.open(devices);
  input_.open({options_.stop, [this] { return outputs_.flush_direct(); }});
  if (!outputs_.trace()) return;
  for (unsigned i = 0; i < testbed_.device_count(); i++) {
    tracers_.push_back(
        std::make_unique<Tracer>(*trace_filter_, *outputs_.trace(), testbed_.device(i), i, input_.origin()));
    testbed_.device(i).set_trace(tracers_.back().get());
  }
}

void Replay::leave(FabricPort from, std::span<Packet> packets, Nanos now) {
  packets_out_ += packets.size();
  for (Packet packet : packets) {
    const std::uint64_t head[3] = {std::uint64_t{from.device} << 32 | from.port, static_cast<std::uint64_t>(now),
                                   packet.wire_bytes()};
    XXH3_64bits_update(hash_.get(), head, sizeof head);
    XXH3_64bits_update(hash_.get(), packet.data(), packet.size());
    outputs_.write(from, input_.origin() + now, packet);
    rte_pktmbuf_free(packet.mbuf());
  }
}

// Hands over the records of one instant, or as many as one call of Fabric::run takes.
void Replay::inject_instant(CaptureRecord& record, FabricPort& to, bool& more) {
  const Nanos at = record.at;
  for (std::size_t count = 0; more && record.at == at && count < kPacketsPerInstant; count++) {
    PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(record.bytes.size()));
    if (packet) {
      std::memcpy(packet->data(), record.bytes.data(), record.bytes.size());
      packet->meta().wire_bytes = record.wire_bytes;
      testbed_.fabric().inject(to, packet.release());
    } else {
      dropped_pool_empty_++;
    }
    if (++packets_in_ % kProgressPackets == 0) {
      outputs_.check();
      if (options_.progress) options_.progress(input_.position(), input_.file_bytes(), packets_in_);
    }
    more = input_.next(record, to);
  }
}

// Runs the instants before `now` in which something is due, unless the run is to end: a gap may be years long, and what
// makes packets by itself fills it.
bool Replay::advance_to(Nanos now) {
  Fabric& fabric = testbed_.fabric();
  while (fabric.next_deadline() < now) {
    if (stop_requested()) return false;
    ended_at_ = fabric.next_deadline();
    fabric.run(ended_at_);
  }
  return true;
}

// Reads records and runs the fabric instant by instant.
void Replay::feed() {
  CaptureRecord record;
  FabricPort to{};
  bool more = input_.next(record, to);
  while (more && !stop_requested()) {
    const Nanos now = record.at - input_.origin();
    if (!advance_to(now)) break;
    inject_instant(record, to, more);
    testbed_.fabric().run(now);
    ended_at_ = now;
  }
  interrupted_ = stop_requested();
}

// What is still held leaves at its own time; a timer that re-arms for ever must not keep the run going.
void Replay::drain(Nanos last) {
  Fabric& fabric = testbed_.fabric();
  const Nanos limit = last > INT64_MAX - config_.drain ? INT64_MAX - 1 : last + config_.drain;
  // After a signal has ended the input, what is held still leaves, for as much work as that can take: packets that go
  // round would take for ever. A clock would end it, too, but not the same way twice.
  const bool ends_early = !interrupted_;
  const std::uint64_t work_max =
      fabric.work() + std::max(kWorkAfterSignal, kWorkAfterSignalForEach * std::uint64_t{pool_.in_use()});
  const auto to_end = [&] { return stop_requested() && (ends_early || fabric.work() > work_max); };
  for (std::uint64_t steps = 1; fabric.next_deadline() <= limit && !to_end(); steps++) {
    ended_at_ = std::max(ended_at_, fabric.next_deadline());
    fabric.run(fabric.next_deadline());
    if (steps % kProgressPackets == 0) outputs_.check();
  }
  interrupted_ = interrupted_ || stop_requested();
  held_at_end_ = fabric.held();
  drain_cut_ = held_at_end_ > 0 && fabric.next_deadline() != kNever;
}

void Replay::run() {
  feed();
  drain(ended_at_);
  outputs_.check();
  outputs_.finish([this] { return json_text(report()); });
}

bool Replay::succeeded() const { return !drain_cut_ && expectations_.hold(report()); }

std::string Replay::drain_note() const {
  if (held_at_end_ == 0) return "";
  if (!drain_cut_) return fmt::format("{} packets are still held, and no timer would let them go", held_at_end_);
  if (interrupted_) return fmt::format("{} packets were still held when the run was interrupted", held_at_end_);
  return fmt::format("{} packets were still held {} after the last one came: a longer `drain:` lets them leave",
                     held_at_end_, config::format_duration(config_.drain));
}

std::vector<std::string> Replay::warnings() const {
  std::vector<std::string> lines = input_.warnings();
  if (held_at_end_ > 0) lines.push_back(drain_note());
  return lines;
}

Json Replay::report() const {
  Json report = {{"schema_version", kReportSchemaVersion},
                 {"command", "replay"},
                 {"config", config_.file},
                 {"seed", config_.seed}};
  report["run"] = {{"packets_in", packets_in_},
                   {"packets_out", packets_out_},
                   {"drop_pool_empty", dropped_pool_empty_},
                   {"held_at_end", held_at_end_},
                   {"span_ns", ended_at_},
                   {"interrupted", interrupted_},
                   {"drain_cut", drain_cut_},
                   {"pool_packets_max", pool_.in_use_max()}};
  input_.report(report["inputs"]);
  outputs_.report(report["outputs"]);
  testbed_.report(report);
  expectations_.add_to(report);
  report["hash"] = fmt::format("{:016x}", XXH3_64bits_digest(hash_.get()));
  return report;
}

}  // namespace rocebox
