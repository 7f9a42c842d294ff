// SPDX-License-Identifier: BSD-3-Clause
// Tap: what traces and captures take of one device on one core.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/drives/live/record_ring.h"
#include "runtime/engine/trace_sink.h"
#include "runtime/limits.h"
#include "runtime/telemetry/trace.h"

namespace rocebox {

/// What one trace or capture takes of one device. Counters are those of the device of one shard.
struct Selection {
  static constexpr std::uint8_t kRx = 1, kTx = 2;

  bool follow = false;                     ///< a trace: all events of packets that match when they arrive or are made
  const TraceFilter* filter = nullptr;     ///< null: all packets; a capture's looks at the packet as it is then
  std::vector<std::uint8_t> ports = {};    ///< of a capture, by device port: kRx, kTx or both
  std::vector<const Counter*> drops = {};  ///< of a capture: the reasons, sorted
  std::uint32_t snap_bytes = 0;            ///< of each packet so many bytes are kept

  bool takes_ports() const;
  /// Whether a capture takes the packet of this event.
  bool takes(const TraceEvent& event) const;
};

/// One event on its way to the writer; the packet's bytes follow it.
struct Record {
  Nanos at;
  std::string_view stage, note;  // texts of the device and its kernels, which live longer
  const Counter* reason;
  TraceInfo info;
  std::uint32_t device, wire_bytes, held_bytes;
  std::uint8_t takers;  ///< a bit for each slot
  TraceVerdict verdict;
  Port port, input;
};

/// What a shard records into. The shard's core writes, the recorder's thread reads.
struct RecordBox {
  explicit RecordBox(std::size_t bytes) : ring(bytes) {}
  RecordRing ring;
  std::array<Counter, kRecordingsMax> lost;  ///< by slot: events for which the ring had no room
};

/// Sees the events of one device, and copies those that are wanted. No lock, no allocation: to be changed between two
/// bursts by the core that runs the device.
class Tap final : public TraceSink {
 public:
  Tap(RecordBox& box, std::uint32_t device) : box_(box), device_(device) {}

  /// What slot `slot` takes from now on; null: nothing. It must live until it is replaced.
  void set(unsigned slot, const Selection* selection);
  /// Nobody wants anything: the device goes without a trace.
  bool idle() const;

  std::uint8_t follows(Packet packet) override;
  void record(const TraceEvent& event) override;

 private:
  RecordBox& box_;
  std::uint32_t device_;
  std::array<const Selection*, kRecordingsMax> selections_{};
};

}  // namespace rocebox
