// SPDX-License-Identifier: BSD-3-Clause
// PacketGenerator: when its applications send, and what. Times are exact: those of a packet follow from its numbers,
// not from when the packet before it was made.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/pipeline.h"
#include "runtime/roce/parse.h"
#include "switch_model/packet_generator/config.h"
#include "switch_model/packet_state.h"

namespace rocebox {
class Report;
}

namespace rocebox::switch_model {

/// When one application sends. Time 0 is the start of the run.
class Schedule {
 public:
  Schedule() = default;
  Schedule(const ApplicationConfig& config, Nanos origin);

  /// When its next packet is due; kNever when there is none.
  Nanos due() const { return due_; }
  std::uint16_t batch() const { return static_cast<std::uint16_t>(packet_ / packets_); }
  std::uint16_t packet() const { return static_cast<std::uint16_t>(packet_ % packets_); }
  /// Triggers that have begun.
  std::uint64_t triggers() const { return trigger_ + (packet_ > 0); }
  void advance();
  /// Leaves out packets that are due before `limit`; gives how many.
  std::uint64_t skip_to(Nanos limit);

 private:
  std::uint64_t all() const { return batches_ * packets_; }
  std::uint64_t due_before(Nanos limit) const;
  void next_trigger(std::uint64_t count);
  void set_due();

  std::uint64_t batches_ = 1, packets_ = 1, times_ = 1;  // times_ 0: without end
  Nanos batch_period_ = 0, packet_gap_ = 0, every_ = 0;
  Nanos trigger_at_ = 0, due_ = kNever;
  std::uint64_t trigger_ = 0, packet_ = 0;  // numbers of the trigger, and of the packet within it
};

/// All applications of a switch.
class PacketGenerator {
 public:
  PacketGenerator(const std::vector<ApplicationConfig>& applications, const SwitchInfo& info, Stats& stats);

  bool idle() const { return applications_.empty(); }
  /// The run begins now. Before all that follows.
  void begin(Nanos now);
  bool begun() const { return begun_; }
  /// The time of the earliest packet to come; kNever when there is none.
  Nanos next() const;
  /// Makes packets that are due, as many as `states` has room for: fills their states, and gives how many. The earliest
  /// comes first, and of those that are due at one time application by application. Leaves out, and counts, what is
  /// later than kGeneratorLagMax, and all that is due when the pool is dry.
  unsigned make(Context& context, std::span<PacketState> states);
  void report(Report& report) const;

 private:
  struct Application {
    std::string name;
    ApplicationConfig config;
    std::vector<std::uint8_t> frame;
    Port port;
    Schedule schedule;
    std::uint64_t made = 0;
  };
  bool make_one(Context& context, Application& application, PacketState& state);

  std::vector<Application> applications_;
  bool begun_ = false;
  Counter &generated_, &missed_, &pool_empty_;
};

}  // namespace rocebox::switch_model
