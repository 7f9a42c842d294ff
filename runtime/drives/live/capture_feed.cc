// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/capture_feed.h"

#include <fmt/format.h>
#include <rte_memcpy.h>

#include <algorithm>
#include <chrono>

#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

// The first wait is short against the time that the packets ahead last, 1024 of them at 10 Mpps; when nothing has
// moved, the next is longer, so that a slow capture costs next to nothing.
constexpr std::chrono::microseconds kPause(50), kPauseMax(1000);

}  // namespace

CaptureFeed::CaptureFeed(std::vector<config::CaptureBinding> bindings, std::vector<CapturePort*> ports, Pool& pool)
    : bindings_(std::move(bindings)),
      ports_(std::move(ports)),
      pool_(pool),
      input_(
          bindings_,
          [this](const config::PortName& name) {
            const auto found = std::find_if(bindings_.begin(), bindings_.end(),
                                            [&](const auto& binding) { return binding.port == name; });
            return FabricPort{static_cast<unsigned>(found - bindings_.begin()), 0};
          },
          &stop_) {
  for (const config::CaptureBinding& binding : bindings_)
    for (const std::string& path : binding.in)
      if (binding.loop != 1 && InputStream::waits(path))
        throw ConfigError(
            fmt::format("{}: {}: can be read once only; leave `loop:` out", binding.in_place, shown_file(path)));
  for (CapturePort* port : ports_) port->set_start(start_);
}

void CaptureFeed::start() {
  thread_ = std::thread([this] { read(); });
}

void CaptureFeed::stop() {
  stop_.request();
  if (thread_.joinable()) thread_.join();
}

bool CaptureFeed::ended() const {
  return done_.load(std::memory_order_acquire) &&
         std::all_of(ports_.begin(), ports_.end(), [](const CapturePort* port) { return port->all_received(); });
}

void CaptureFeed::read() {
  try {
    input_.open({&stop_, [this] {
                   ready_.store(true, std::memory_order_release);
                   return true;
                 }});
    const std::int64_t passes = bindings_[0].loop;
    Nanos base = 0;
    for (std::int64_t pass = 0; passes == 0 || pass < passes; pass++) {
      if (pass > 0) input_.rewind();
      if (!read_pass(base)) break;
    }
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
  ready_.store(true, std::memory_order_release);
  done_.store(true, std::memory_order_release);
}

// Sends all once; `base` is the time of its first packet since the start, and then that of the next pass: as far behind
// the last packet as packets are from each other. False when there is no point in another one.
bool CaptureFeed::read_pass(Nanos& base) {
  const double pace = bindings_[0].pace;
  CaptureRecord record;
  FabricPort to{};
  Nanos last = 0;
  std::uint64_t packets = 0;
  while (input_.next(record, to)) {
    last = record.at - input_.origin();
    // Each from the timestamp itself: no rounding adds up.
    const Nanos offset = pace == 0 ? 0 : base + static_cast<Nanos>(static_cast<double>(last) / pace);
    if (!put(record, *ports_[to.device], offset)) return false;
    packets++;
  }
  const auto gap = packets > 1 ? static_cast<double>(last) / static_cast<double>(packets - 1) : 0.0;
  if (pace != 0) base += static_cast<Nanos>((static_cast<double>(last) + gap) / pace);
  return packets > 0 && !stop_.requested();
}

bool CaptureFeed::put(const CaptureRecord& record, CapturePort& port, Nanos offset) {
  PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(record.bytes.size()));
  for (unsigned tries = 0; !packet; packet = pool_.allocate(static_cast<std::uint32_t>(record.bytes.size())))
    if (!pause(tries++)) return false;
  rte_memcpy(packet->data(), record.bytes.data(), record.bytes.size());
  packet->meta().wire_bytes = record.wire_bytes;
  packet->meta().arrival = offset;
  for (unsigned tries = 0; !port.offer(*packet);)
    if (!pause(tries++)) return false;
  packet.release();
  return true;
}

// False when the run is to end.
bool CaptureFeed::pause(unsigned tries) {
  ready_.store(true, std::memory_order_release);
  if (stop_.requested()) return false;
  std::this_thread::sleep_for(std::min(kPauseMax, kPause * (1 << std::min(tries, 5u))));
  return true;
}

void CaptureFeed::report(Json& inputs) const {
  Json rows;
  input_.report(rows);
  for (Json& row : rows) inputs.push_back(std::move(row));
}

}  // namespace rocebox
