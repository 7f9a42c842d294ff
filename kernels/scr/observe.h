// SPDX-License-Identifier: BSD-3-Clause
// Observe: the kernel `scr`: packets that pass become the events of their flows, a policy sees them, and what it would
// have said stands in the report beside what the flows did. Nothing is changed. README.md has the events.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "kernels/scr/engine.h"
#include "runtime/flows/pairing.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::scr {

struct ObserveConfig : FrameworkConfig {
  void fields(Fields& fields);
  std::uint64_t rate = 100'000'000'000;
  Nanos interval = kMillisecond;
  std::int64_t samples = 64;
};

class Observe final : public Kernel, private EngineOwner {
 public:
  using Config = ObserveConfig;
  /// Throws ConfigError: the policy cannot be had.
  Observe(const ObserveConfig& config, Stats& stats);

  void process(Context& context, Port in, Batch& batch) override;
  void on_timer(Context& context, Timer& timer) override;
  void report(Report& report) const override;

 private:
  static constexpr unsigned kAsked = 8;  // requests of a flow that asked for an ACK and wait for it: the last ones
  struct Asked {
    std::uint32_t psn = 0;
    Nanos at = kNever;
  };
  struct Sample {
    Nanos at;
    std::uint64_t seen, policy;  // bits per second
  };
  // Of requests in one direction.
  struct Flow {
    std::uint64_t packets = 0, bytes = 0, rate = 0;
    Nanos bucket = 0;  // its beginning
    std::uint64_t bucket_bytes = 0;
    std::uint32_t samples = 0;
    std::uint8_t next_asked = 0;
    std::array<Asked, kAsked> asked{};
  };
  void act(const scr_action& action, Nanos now) override;
  void on_stop(Nanos) override {}
  void look(Packet packet, Nanos now);
  void request(std::uint32_t number, Packet packet, Nanos now);
  void response(std::uint32_t number, Packet packet, Nanos now);
  void put(Event& event, std::uint32_t flow, scr_kind kind, Nanos now);
  void roll(std::uint32_t number, Nanos now);

  const Nanos interval_;
  const std::uint32_t samples_max_;
  Counter &packets_, &others_, &flows_full_, &unpaired_, &asked_of_;
  flows::Pairing pairing_;
  std::vector<Flow> flows_;
  std::vector<Sample> samples_;  // samples_max_ of each flow
  std::unique_ptr<Engine> engine_;
  Timer timer_;
};

}  // namespace rocebox::scr
