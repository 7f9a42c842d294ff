// SPDX-License-Identifier: BSD-3-Clause
// Simulations of configurations with stations and shouts.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/drives/virtual/sim.h"
#include "runtime/packet/pool.h"
#include "tests/unit/virtual/station.h"

namespace rocebox::sim_test {

/// A registry with both.
inline Registry& registry() {
  static const Component rows[] = {device_kind<StationOptions>("station", "sends messages"),
                                   workload_component<ShoutOptions>("shout", "each to the next")};
  static Registry* const with_both = [] {
    auto* made = new Registry;
    made->add(rows, "the test");
    return made;
  }();
  return *with_both;
}

inline config::RunConfig load(const std::string& yaml, std::string* mistakes = nullptr,
                              const std::vector<config::Setting>& settings = {}) {
  config::Mistakes found("f.yaml");
  config::RunConfig config = config::load_text(yaml, "f.yaml", registry(), found, false, settings);
  if (mistakes)
    *mistakes = found.text();
  else
    EXPECT_TRUE(found.none()) << found.text();
  return config;
}

/// A simulation of a configuration, with a pool of its own.
struct SimBox {
  explicit SimBox(const std::string& yaml, const StopRequest* stop = nullptr)
      : config(load(yaml)), pool({.small = 4096, .large = 64, .giant = 2}), sim(config, pool, options(stop)) {}
  Json run() {
    sim.open();
    sim.run();
    return sim.report();
  }
  static SimOptions options(const StopRequest* stop) {
    SimOptions all;
    all.stop = stop;
    return all;
  }

  config::RunConfig config;
  Pool pool;
  Sim sim;
};

}  // namespace rocebox::sim_test
