// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/stimuli.h"

#include <algorithm>

namespace rocebox::switch_model::forward {
namespace {

constexpr std::size_t kStimuliMax = 8;  // of each kind: they only have to reach every table

void add_macs(const Config& config, const SwitchInfo& info, Stimulus stimulus, std::vector<Stimulus>& all) {
  for (std::size_t i = 0; i < std::min(config.macs.size(), kStimuliMax); i++) {
    stimulus.underlay.destination_mac = *config.macs[i].mac;
    stimulus.underlay.vlans = {static_cast<std::uint16_t>(config.macs[i].vlan), 0};
    stimulus.leads_to.clear();
    for (const std::string& port : config.macs[i].ports) stimulus.leads_to.push_back(info.find(port));
    all.push_back(stimulus);
  }
}

// To the router: into no prefix, where it routes, and into each.
void add_routes(const Config& config, const SwitchInfo& info, Stimulus stimulus, std::vector<Stimulus>& all) {
  stimulus.underlay.destination_mac = config.router_mac.value_or(Mac{});
  for (const std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
    stimulus.underlay.ip_version = version;
    if (config.router_mac) all.push_back(stimulus);
  }
  for (std::size_t i = 0; i < std::min(config.routes.size(), kStimuliMax); i++) {
    const roce::Prefix& prefix = *config.routes[i].prefix;
    stimulus.underlay.ip_version = prefix.is_ipv4 ? 4 : 6;
    stimulus.underlay.addresses.destination = prefix.address;
    stimulus.leads_to.clear();
    for (const HopConfig& via : config.routes[i].via) stimulus.leads_to.push_back(info.find(via.port));
    all.push_back(stimulus);
  }
}

}  // namespace

std::vector<Stimulus> stimuli_of(const Config& config, const SwitchInfo& info) {
  Stimulus stimulus;
  stimulus.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  stimulus.underlay.source_mac = {0x02, 0, 0, 0, 0x7E, 0};  // to be learnt: nobody's
  std::vector<Stimulus> all = {stimulus};
  add_macs(config, info, stimulus, all);
  add_routes(config, info, stimulus, all);
  return all;
}

}  // namespace rocebox::switch_model::forward
