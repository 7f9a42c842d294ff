// SPDX-License-Identifier: BSD-3-Clause
// One QP of Themis-S and Themis-D without a switch: an event in, its decision out as text, as the Python model says it.
#pragma once
#include <string>
#include <vector>

#include "kernels/themis/destination.h"
#include "runtime/kernel/counter_set.h"

namespace rocebox::themis {

struct RigConfig {
  std::uint32_t paths = 1, window = 8, first_psn = 0, ooo_threshold = 0, base = 0, avoidance_window = 1;
  bool strict = false, reroute_timeouts = true;
};

struct RigEvent {
  enum class Kind { kData, kAck, kNack, kOtherNak, kAge, kSourceData, kSourceNack, kPaths } kind;
  std::uint32_t psn = 0;  ///< kPaths: N from now on
  bool sprayed = true;
  std::uint32_t width = 1;
  bool avoid = false;
  std::uint64_t draw = 0;
};

class Rig {
 public:
  static constexpr std::uint32_t kSlots = 3;
  static constexpr unsigned kPipe = 1;

  explicit Rig(const RigConfig& config)
      : config_(config),
        source_({kSlots, config.paths, config.paths, config.avoidance_window, config.reroute_timeouts}, named(layout_)),
        destination_({kSlots, config.paths, config.paths, config.window, config.ooo_threshold}, layout_) {
    slot_ = {1, config.first_psn};
    state_[0].pipe = kPipe;
    destination_.begin(kPipe, slot_, roce::psn_add(slot_.origin, -1));
  }

  /// "action ePSN reason[ avoid]", "path N", or nothing.
  std::string event(const RigEvent& event) {
    if (config_.strict) {
      strict_.begin(event.kind >= RigEvent::Kind::kSourceData ? Gress::kIngress : Gress::kEgress, state_);
      return run(strict_, event);
    }
    switch_model::Fast fast;
    return run(fast, event);
  }

  std::uint32_t start() { return destination_.window_base(kPipe, slot_.number); }
  bool stash_valid() { return destination_.has_stash(kPipe, slot_.number); }
  std::string bits() {
    std::string text;
    for (std::uint32_t i = 0; i < 2 * config_.window; i++) text += destination_.bit(kPipe, slot_.number, i) ? '1' : '0';
    return text;
  }
  std::vector<int> bases() {
    return {destination_.half_base(kPipe, slot_.number, 0), destination_.half_base(kPipe, slot_.number, 1)};
  }
  const std::vector<switch_model::Violation>& violations() const { return violations_.list(); }
  const Layout& layout() const { return layout_; }

 private:
  static Layout& named(Layout& layout) {
    layout.begin("themis");
    return layout;
  }
  static std::string text(const Decision& decision) {
    if (!decision) return {};
    return std::string(action_name(decision.action)) + " " + std::to_string(decision.stash.epsn) + " " +
           std::string(reason_name(decision.reason)) + (decision.avoid ? " avoid" : "");
  }

  // What the control plane does behind an ACK of more than a window.
  std::string answered(const Decision& decision, std::uint32_t to) {
    if (decision.begins_anew) {
      slot_.origin = to;
      destination_.begin(kPipe, slot_, destination_.highest(kPipe, slot_));
    }
    return text(decision);
  }
  template <class Access>
  std::string run(Access& access, const RigEvent& event) {
    const PacketState& p = state_[0];
    using Kind = RigEvent::Kind;
    switch (event.kind) {
      case Kind::kData: {
        Decision decision = destination_.data(access, p, slot_, event.psn, event.sprayed, event.width);
        if (decision.begins_anew) {  // what the control plane does
          switch_model::Fast fast;
          slot_.origin = event.psn;
          destination_.begin(kPipe, slot_, roce::psn_add(slot_.origin, -1));
          decision = destination_.data(fast, p, slot_, event.psn, event.sprayed, 1);
        }
        return text(decision);
      }
      case Kind::kAck:
        return answered(destination_.ack(access, p, slot_, event.psn), roce::psn_add(event.psn, 1));
      case Kind::kNack:
        return text(destination_.nack(access, p, slot_, {event.psn, 7, 0x60000001, 3}, 0));
      case Kind::kOtherNak:
        return answered(destination_.other_nak(access, p, slot_, event.psn), event.psn);
      case Kind::kAge:
        return text(destination_.age(kPipe, slot_, 0));
      case Kind::kSourceData: {
        const auto choice = source_.data(access, p, slot_.number, event.psn, config_.base, [&] { return event.draw; });
        return "path " + std::to_string(choice.path);
      }
      case Kind::kSourceNack:
        source_.nack(access, p, slot_.number, event.psn, event.avoid);
        return {};
      case Kind::kPaths:
        config_.base %= event.psn;
        source_.change(event.psn, config_.avoidance_window, config_.reroute_timeouts);
        destination_.change(event.psn, config_.ooo_threshold);
        return {};
    }
    return {};
  }

  RigConfig config_;
  CounterSet stats_;
  switch_model::Violations violations_{stats_.counter("strict_violations", "")};
  switch_model::Strict strict_{violations_};
  Layout layout_{2};
  Source source_;
  Destination destination_;
  Slot slot_;
  std::vector<PacketState> state_{1};
};

}  // namespace rocebox::themis
