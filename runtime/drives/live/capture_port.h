// SPDX-License-Identifier: BSD-3-Clause
// CapturePort: captures as one port of a live run.
#pragma once
#include <array>
#include <atomic>

#include "runtime/drives/live/clock.h"
#include "runtime/drives/live/live_port.h"
#include "runtime/limits.h"
#include "runtime/telemetry/histogram.h"

struct rte_ring;

namespace rocebox {

/// The cores see two bounded queues and never a file: a reader's thread fills one ahead of time (CaptureFeed), a
/// writer's thread empties the other (LiveCaptures). A page fault or a slow disk then costs those threads time, and the
/// schedule stays with the core, which hands over what is due when it looks: start of the run + (t - t0) / pace,
/// absolute, so that a late packet does not delay the ones behind it.
class CapturePort final : public LivePort {
 public:
  /// `serial` makes the names of its queues unique. Throws ConfigError.
  CapturePort(const config::CaptureBinding& binding, const std::string& by, unsigned serial, const Clock& clock);
  ~CapturePort() override;

  LivePortAbility ability() const override { return {}; }
  std::uint64_t packets_needed(unsigned queues) const override;
  void set_up(unsigned, unsigned, Pool&) override {}
  void start() override {}
  unsigned receive(unsigned queue, std::span<Packet> room) override;
  Sent send(unsigned queue, std::span<Packet> packets) override;
  bool fills_metadata() const override { return true; }
  Nanos next_due() const override;
  bool tolerates_waiting() const override { return in_ && pace_ == 0; }
  LivePortCounts counts() const override { return {.tx_errors = unwritten_.read()}; }
  LinkState link() const override { return LinkState::kUp; }
  void add_to(Json& row) const override;
  std::string text() const override { return text_; }

  // For the reader's thread, and those that wait for it.

  /// `packet` leaves `meta().arrival` nanoseconds after the start. False, and nothing has happened, when as many as may
  /// are waiting.
  bool offer(Packet packet);
  /// The start of the schedule, which ports that are read together share: 0 until the first packet is there.
  void set_start(std::atomic<Nanos>& start) { start_ = &start; }
  /// Whether all that was offered has been received.
  bool all_received() const { return received_.read() == offered_.read(); }
  /// Frees and counts what was not received. After the core has stopped.
  void discard();

  // For the writer's thread.

  bool writes() const { return out_ != nullptr; }
  /// The next packet that has left, at the time `meta().arrival`; an empty one when there is none. The caller frees it.
  Packet next_sent();
  /// It was not written.
  void count_unwritten() { unwritten_.add(); }

 private:
  bool look_ahead();

  const Clock& clock_;
  std::string text_;
  double pace_;
  rte_ring *in_ = nullptr, *out_ = nullptr;
  std::atomic<Nanos>* start_ = nullptr;
  Counter offered_, received_, unsent_, unwritten_;
  // The core's own: packets taken from the queue that may not be due yet.
  std::array<Packet, kBatchMax> ahead_{};
  unsigned ahead_at_ = 0, ahead_count_ = 0;
  Histogram late_;  // what was received, behind its time
};

}  // namespace rocebox
