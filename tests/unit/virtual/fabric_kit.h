// SPDX-License-Identifier: BSD-3-Clause
// Simulations of configurations with all that the tree has: NICs, switches, their workloads.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/drives/virtual/sim.h"
#include "runtime/packet/pool.h"

namespace rocebox::fabric_test {

inline Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

/// `follow`: files that it names lie beside `file`.
inline config::RunConfig load(const std::string& yaml, std::string* mistakes = nullptr,
                              const std::string& file = "f.yaml", bool follow = false,
                              const std::vector<config::Setting>& settings = {}) {
  config::Mistakes found(file);
  config::RunConfig config = config::load_text(yaml, file, registry(), found, follow, settings);
  if (mistakes)
    *mistakes = found.text();
  else
    EXPECT_TRUE(found.none()) << found.text();
  return config;
}

/// A simulation, with a pool of its own. Of a device's counters those of its one kernel are asked for by name.
struct FabricBox {
  explicit FabricBox(config::RunConfig loaded)
      : config(std::move(loaded)), pool({.small = 32768, .large = 64, .giant = 2}), sim(config, pool, {}) {}
  explicit FabricBox(const std::string& yaml) : FabricBox(load(yaml)) {}
  const Json& run() {
    sim.open();
    sim.run();
    return report = sim.report();
  }
  std::uint64_t count(const std::string& device, const std::string& counter) const {
    const Json& kernels = report.at("devices").at(device).at("kernels");
    return kernels.begin().value().at("counters").at(counter).get<std::uint64_t>();
  }
  std::uint64_t link(const std::string& name, const std::string& counter) const {
    return report.at("links").at(name).at("counters").at(counter).get<std::uint64_t>();
  }

  config::RunConfig config;
  Pool pool;
  Sim sim;
  Json report;
};

}  // namespace rocebox::fabric_test
