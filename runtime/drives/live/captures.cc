// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/captures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/drives/live/checksums.h"
#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The queue of what has left is long enough for this at 5 Mpps.
constexpr microseconds kWriterPause(200);
// How long packets wait for the first ones to be read: a disk's time, not a pipe's.
constexpr milliseconds kReadAheadMax(500);

FabricPort port_of(const config::RunConfig& config, const config::PortName& name) {
  const auto found = std::find_if(config.captures.begin(), config.captures.end(),
                                  [&](const config::CaptureBinding& binding) { return binding.port == name; });
  return {static_cast<unsigned>(found - config.captures.begin()), 0};
}

bool read_together(const config::CaptureBinding& a, const config::CaptureBinding& b) {
  return a.pace == b.pace && a.loop == b.loop;
}

// A capture goes through one reader, which gives each packet to one port.
void refuse_two_paces(const config::RunConfig& config) {
  for (const config::CaptureBinding& a : config.captures)
    for (const config::CaptureBinding& b : config.captures)
      for (const std::string& file : b.in)
        for (const std::string& other : a.in)
          if (!read_together(a, b) && file_key(file, STDIN_FILENO) == file_key(other, STDIN_FILENO))
            throw ConfigError(
                fmt::format("{}: {}: is read by port `{}` too, at another `pace:` or `loop:`; ports that "
                            "share a capture share both",
                            b.in_place, shown_file(file), a.port.text()));
}

}  // namespace

LiveCaptures::LiveCaptures(const config::RunConfig& config, ExtraOutputs outputs, Pool& pool, const Clock& clock,
                           std::vector<std::unique_ptr<LivePort>>& ports)
    : outputs_(config, std::move(outputs), [&config](const config::PortName& name) { return port_of(config, name); }) {
  for (const config::CaptureBinding& binding : config.captures) {
    auto port = std::make_unique<CapturePort>(binding, config.bound_by(binding.place),
                                              static_cast<unsigned>(ports_.size()), clock);
    ports_.push_back(port.get());
    ports.push_back(std::move(port));
  }
  heads_.resize(ports_.size());
  refuse_two_paces(config);
  add_feeds(config, pool);
}

void LiveCaptures::add_feeds(const config::RunConfig& config, Pool& pool) {
  std::vector<bool> fed(ports_.size());
  for (std::size_t first = 0; first < ports_.size(); first++) {
    std::vector<config::CaptureBinding> bindings;
    std::vector<CapturePort*> together;
    for (std::size_t i = first; i < ports_.size(); i++) {
      const config::CaptureBinding& binding = config.captures[i];
      if (fed[i] || binding.in.empty() || !read_together(config.captures[first], binding)) continue;
      fed[i] = true;
      bindings.push_back(binding);
      together.push_back(ports_[i]);
    }
    if (!together.empty())
      feeds_.push_back(std::make_unique<CaptureFeed>(std::move(bindings), std::move(together), pool));
  }
}

LiveCaptures::~LiveCaptures() {
  stop_reading();
  finish_writing();
}

void LiveCaptures::start() {
  for (const auto& feed : feeds_) feed->start();
  if (std::any_of(ports_.begin(), ports_.end(), [](const CapturePort* port) { return port->writes(); }))
    writer_ = std::thread([this] { write(); });
  const auto end = std::chrono::steady_clock::now() + kReadAheadMax;
  while (!std::all_of(feeds_.begin(), feeds_.end(), [](const auto& feed) { return feed->ready(); }) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kWriterPause);
}

bool LiveCaptures::ended() const {
  return !feeds_.empty() && std::all_of(feeds_.begin(), feeds_.end(), [](const auto& feed) { return feed->ended(); });
}

std::string LiveCaptures::failed() const {
  if (write_failed_.load(std::memory_order_acquire)) return write_failure_;
  for (const auto& feed : feeds_)
    if (feed->ended() && !feed->failed().empty()) return feed->failed();
  return "";
}

void LiveCaptures::stop_reading() {
  for (const auto& feed : feeds_) feed->stop();
}

void LiveCaptures::finish_writing() {
  no_more_.store(true, std::memory_order_release);
  if (writer_.joinable()) writer_.join();
  for (CapturePort* port : ports_) port->discard();
}

void LiveCaptures::write() {
  while (true) {
    const bool last = no_more_.load(std::memory_order_acquire);
    while (write_one()) {
    }
    if (!write_failed_.load(std::memory_order_relaxed)) {
      outputs_.flush_direct();
      try {
        outputs_.check();
      } catch (const std::exception& error) {
        write_failure_ = error.what();
        write_failed_.store(true, std::memory_order_release);
      }
    }
    if (last) return;
    std::this_thread::sleep_for(kWriterPause);
  }
}

// The packet that left first; false when there is none. Ports may share a capture, which is to be in order of time.
bool LiveCaptures::write_one() {
  std::size_t first = ports_.size();
  for (std::size_t i = 0; i < ports_.size(); i++) {
    if (!heads_[i]) heads_[i] = ports_[i]->next_sent();
    if (heads_[i] && (first == ports_.size() || heads_[i].meta().arrival < heads_[first].meta().arrival)) first = i;
  }
  if (first == ports_.size()) return false;
  const PacketPtr packet(std::exchange(heads_[first], Packet()));
  const HostOffload& offload = packet->meta().offload;
  if (write_failed_.load(std::memory_order_relaxed)) {
    ports_[first]->count_unwritten();
    return true;
  }
  // What a host left to hardware is done, as on a wire; super-packets stay whole, as tcpdump shows them.
  if (offload.flags && offload.gso_type == 0) finish_checksum(*packet, offload);
  outputs_.write({static_cast<unsigned>(first), 0}, packet->meta().arrival, *packet);
  return true;
}

void LiveCaptures::report(Json& report) const {
  if (ports_.empty()) return;
  report["inputs"] = Json::array();
  for (const auto& feed : feeds_) feed->report(report["inputs"]);
  outputs_.report(report["outputs"]);
}

}  // namespace rocebox
