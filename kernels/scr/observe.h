// SPDX-License-Identifier: BSD-3-Clause
// Observe: the kernel `scr`: packets that pass become the events of their flows, a policy sees them, and what it would
// have said stands in the report beside what the flows did. Nothing is changed. README.md has the events.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/scr/engine.h"
#include "nic_model/pcc/config.h"
#include "nic_model/pcc/process.h"
#include "runtime/component/option_values.h"
#include "runtime/flows/pairing.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::scr {

struct ObserveConfig : FrameworkConfig {
  static constexpr std::string_view kChangeable[] = {"parameters", "pcc.parameters", "pcc.mailbox"};
  void fields(Fields& fields);
  nic_model::pcc::PccConfig pcc;  ///< a program for DOCA PCC in the policy's place
  FlatValues fixed;               ///< all options that cannot be changed while it runs
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
  /// Throws ConfigError: something other than parameters is changed, or the program has no such.
  std::unique_ptr<Change> prepare(const ObserveConfig& config) const;

 private:
  class NewOptions;
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
    std::uint32_t serial = 0;  // of a program's events
    std::uint8_t next_asked = 0;
    bool wants_rtt = false;  // a program has asked for a probe
    std::array<Asked, kAsked> asked{};
  };
  void act(const scr_action& action, Nanos now) override;
  void on_stop(Nanos) override {}
  void look(Packet packet, Nanos now);
  void request(std::uint32_t number, Packet packet, Nanos now);
  void response(std::uint32_t number, Packet packet, Nanos now);
  void put(Event& event, std::uint32_t flow, scr_kind kind, Nanos now, std::uint8_t syndrome = 0);
  void tell_program(const Event& event, std::uint8_t syndrome);
  void begin(std::uint32_t flow, Nanos now);
  void give(std::span<const nic_model::pcc::ParameterValue> values, const std::vector<std::string>& mailbox, Nanos now);
  bool is_on() const { return (engine_ && !engine_->stopped()) || (process_ && !process_->stopped()); }
  void roll(std::uint32_t number, Nanos now);

  const FlatValues fixed_;
  const Nanos interval_;
  const std::uint32_t samples_max_;
  const double rate_unit_;  // of a program's rates, bits per second
  Counter &packets_, &others_, &flows_full_, &unpaired_, &asked_of_, &wrong_rates_, &refused_parameters_,
      &refused_mails_, &program_stops_;
  flows::Pairing pairing_;
  std::vector<Flow> flows_;
  std::unique_ptr<Sample[]> samples_;  // samples_max_ of each flow; written before they are read
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<nic_model::pcc::Process> process_;
  std::vector<std::string> mailbox_;  // what the host has said to it so far
  bool port_is_told_ = false;
  std::uint64_t seen_bytes_ = 0;  // of requests
  Timer timer_;
};

}  // namespace rocebox::scr
