// SPDX-License-Identifier: BSD-3-Clause
// Scenario: a random configuration, as YAML: a row of devices, each a bump with kernels or a switch, joined by links.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox::swarm {

/// What a configuration promises of what comes out; what its kernels are told to do takes promises away.
struct Promises {
  bool order = true;         ///< packets of one flow leave a port as they came, none twice
  bool repeats_stay = true;  ///< what comes again while the first one waits leaves where it came, not right behind that
  bool whole = true;         ///< nothing is cut, and no bit is flipped
  bool genuine = true;       ///< no packet has a right ICRC over bytes that were changed
  bool equal_batches = true;  ///< any cut of the input into batches gives the same output
};

struct Scenario {
  std::string yaml;
  config::RunConfig config;
  std::vector<config::PortName> edges;  ///< ports that no link joins
  Promises promises;
  std::vector<std::string> components;  ///< kernels and programs that take part
};

/// A function of the seed. Throws std::logic_error when it finds none that loads.
std::unique_ptr<Scenario> make_scenario(std::uint64_t seed);

}  // namespace rocebox::swarm
