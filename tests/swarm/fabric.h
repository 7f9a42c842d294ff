// SPDX-License-Identifier: BSD-3-Clause
// FabricScenario: a random network of NICs with workloads, as YAML: a topology by name, hosts at one switch, or two
// hosts behind LoWAR gateways.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/packet/pool.h"
#include "tests/swarm/judge.h"

namespace rocebox::swarm {

/// What a network promises of a run; what its parts are told to do takes promises away.
struct FabricPromises {
  bool faultless = true;  ///< no link loses, changes or repeats a packet, or lets one overtake another
  bool ordered = true;    ///< packets of a flow go one way, so that none overtakes another
  bool patient = true;    ///< nobody gives up, or sends again, before a response can be there
  bool prompt = true;     ///< what was thrown away behind a gap is asked for again, whatever comes after it
  bool reliable = true;   ///< no workload sends what is lost without a word
  bool genuine = true;    ///< who receives a packet of which a bit was flipped can tell
  bool keyed = true;      ///< no queue pair gets datagrams with another Q_Key
  bool apart = true;      ///< no queue pair gets what is meant for one of another service
};

struct FabricScenario {
  std::string yaml;
  config::RunConfig config;
  FabricPromises promises;
  std::vector<std::string> components;  ///< that take part
};

/// One of four seeds draws a fabric; the others a row of bumps and switches.
constexpr bool draws_fabric(std::uint64_t seed) { return seed % 4 == 0; }

/// A function of the seed and the number of the try. Throws std::logic_error when it finds none that loads.
std::unique_ptr<FabricScenario> make_fabric(std::uint64_t seed, unsigned attempt);

/// All that is wrong with a run of it in the virtual drive, one a line; empty: nothing. Throws ConfigError for what
/// only making its devices and workloads shows.
std::string judge_fabric(const FabricScenario& scenario, Pool& pool, Looked& looked);

/// The components of the swarm's own, beside the registry's.
void add_own_components(Registry& registry);

}  // namespace rocebox::swarm
