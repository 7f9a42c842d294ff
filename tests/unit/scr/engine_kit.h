// SPDX-License-Identifier: BSD-3-Clause
// An engine with a policy, and an owner that models senders: each sends at its rate or its demand, whichever is less.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/scr/engine.h"
#include "nic_model/dpa/program.h"
#include "runtime/kernel/counter_set.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox::scr {

inline std::string policy_path(const std::string& name) {
  return std::string(ROCEBOX_DPA_PROGRAMS) + "/" + name + ".so";
}
inline std::string probe_policy_path() { return std::string(ROCEBOX_DPA_TEST_PROGRAMS) + "/scr_probe.so"; }

class EngineBox final : public EngineOwner {
 public:
  static constexpr double kLine = 100e9;

  EngineBox(const std::string& path, const std::vector<ParameterValue>& parameters, FrameworkConfig config = {}) {
    config.policy = "fair";
    for (const auto& [name, value] : parameters) {
      ParameterConfig one;
      one.name = name;
      one.value = value;
      config.parameters.push_back(one);
    }
    engine = std::make_unique<Engine>(config, path, nic_model::dpa::Program::read(path),
                                      static_cast<std::uint64_t>(kLine), stats);
    rates.assign(static_cast<std::size_t>(config.flows), 0);
  }

  void act(const scr_action& action, Nanos at) override {
    actions.emplace_back(at, action);
    if (action.kind == SCR_SET_RATE) rates[action.flow] = static_cast<double>(action.value);
    if (action.kind == SCR_PROBE) engine->await_probe(action.flow, action.udp_source_port, at);
    if (on_act) on_act(action, at);
  }
  bool look_at_host(Event& event, Nanos at) override {
    if (event.detail != SCR_HOST_PCIE) return false;
    event.value = pcie_latency;
    event.value2 = static_cast<std::uint64_t>(port_rate * static_cast<double>(at) / 8e9);
    return true;
  }
  void on_stop(Nanos) override { stopped++; }

  void put(unsigned kind, std::uint32_t flow, Nanos at, std::uint64_t bytes = 0, std::uint8_t detail = 0,
           std::uint16_t port = 0, std::uint64_t value = 0, std::uint64_t value2 = 0) {
    engine->run(at, *this);
    Event event{};
    event.time = event.since = at;
    event.flow = flow;
    event.kind = static_cast<std::uint8_t>(kind);
    event.bytes = bytes;
    event.count = 1;
    event.detail = detail;
    event.udp_source_port = port;
    event.value = value;
    event.value2 = value2;
    engine->put(event);
  }

  /// The answer to a probe.
  void put_rtt(std::uint32_t flow, Nanos at, std::uint32_t rtt) {
    engine->run(at, *this);
    Event event{};
    event.time = event.since = at;
    event.flow = flow;
    event.kind = SCR_RTT;
    event.count = 1;
    event.rtt = event.network_rtt = rtt;
    engine->put(event);
  }

  /// Runs flows until `end`: packets of so many bytes, at the least of rate and demand (bits per second; 0: silent);
  /// all together send no more than the line.
  void run_flows(const std::vector<double>& demands, Nanos end, std::uint64_t bytes = 1098) {
    std::vector<double> next(demands.size(), static_cast<double>(now));
    while (now < end) {
      std::size_t who = demands.size();
      double sum = 0;
      for (std::size_t i = 0; i < demands.size(); i++) {
        if (demands[i] > 0) sum += speed(i, demands[i]);
        if (demands[i] > 0 && (who == demands.size() || next[i] < next[who])) who = i;
      }
      now = std::max(now, std::min(end, static_cast<Nanos>(next[who])));
      engine->run(now, *this);
      if (next[who] > static_cast<double>(end)) break;
      put(SCR_TX, static_cast<std::uint32_t>(who), now, bytes);
      const double share = std::min(1.0, kLine / sum);
      next[who] = std::max(next[who], static_cast<double>(now)) +
                  static_cast<double>(bytes) * 8e9 / (speed(who, demands[who]) * share);
    }
    now = end;
    engine->run(now, *this);
  }
  double speed(std::size_t i, double demand) const {
    const double rate = rates[i] > 0 ? rates[i] : kLine;
    return std::min({rate, demand, kLine});
  }
  std::uint64_t count(std::string_view name) const { return stats.read(name); }

  CounterSet stats;
  std::unique_ptr<Engine> engine;
  std::vector<double> rates;
  std::vector<std::pair<Nanos, scr_action>> actions;
  std::function<void(const scr_action&, Nanos)> on_act;
  std::uint64_t pcie_latency = 0;
  double port_rate = 0;  // that the node's port receives, bits per second
  Nanos now = 0;
  int stopped = 0;
};

/// A counter of the policy's own.
inline std::uint64_t counter_of(const EngineBox& box, const std::string& name) {
  Json json;
  JsonReport report(json);
  box.engine->report(report);
  return json["policy_counters"][name].get<std::uint64_t>();
}

}  // namespace rocebox::scr
