// SPDX-License-Identifier: BSD-3-Clause
// How the two NICs of nic_fuzz.cc are set up.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "nic_model/nic.h"
#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "tests/fuzz/fuzz.h"

namespace rocebox::fuzz::nic_bed {

inline roce::IpAddress address_of(unsigned side) { return roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(side + 1)); }
inline constexpr roce::IpAddress kStranger = roce::ipv4(10, 0, 0, 9), kNobody = roce::ipv4(10, 0, 0, 8);
inline roce::Mac mac_of(unsigned side) { return {2, 0x72, 10, 0, 0, static_cast<std::uint8_t>(side + 1)}; }

/// What both NICs have in common.
struct NicSetup {
  nic_model::Recovery recovery = nic_model::Recovery::kGoBackN;
  bool header_only = false, credits = false, dcqcn = false;
  bool pcie = false, greedy = false, paced_loopback = false, limits = false;
  bool short_waits = false;  ///< of RDMA CM
  bool meddles = false;      ///< its observer does what the input says, and is not DCQCN's
  unsigned group_reports = 0;
  auto operator<=>(const NicSetup&) const = default;

  static NicSetup draw(Input& input) {
    const std::uint8_t one = input.take(), two = input.take();
    NicSetup setup;
    setup.recovery = static_cast<nic_model::Recovery>(one & 3);
    setup.header_only = one & 4;
    // The others count packets in the MSN, and have no credits.
    setup.credits = (one & 8) && setup.recovery == nic_model::Recovery::kGoBackN;
    setup.dcqcn = one & 16;
    setup.pcie = two & 1, setup.greedy = two & 2, setup.paced_loopback = two & 4, setup.limits = two & 8;
    setup.short_waits = two & 16, setup.meddles = two & 32;
    setup.group_reports = two >> 6 & 3;
    return setup;
  }
  std::string yaml(unsigned side) const {
    static constexpr const char* kReports[] = {"off", "old", "new", "off"};
    const std::string near = std::to_string(side + 1), far = std::to_string(2 - side), mac = "'02:72:0a:00:00:0" + far;
    std::string yaml = "address: 10.0.0." + near + "\naddress6: fd00::" + near + "\nneighbors: [{address: 10.0.0." +
                       far + ", mac: " + mac + "'}, {address: 'fd00::" + far + "', mac: " + mac +
                       "'}]\nrate: 100Gbps\nqueue_pairs: 24\nrecovery: " + std::string(nic_model::word_of(recovery)) +
                       "\ngroup_reports: " + kReports[group_reports] + "\n";
    if (header_only) yaml += "header_only: true\n";
    if (credits) yaml += "credits: true\n";
    if (dcqcn) yaml += "congestion_control: dcqcn\n";
    if (pcie) yaml += "pcie: {bandwidth: 60Gbps, read_latency: 300ns, outstanding_reads: 3}\n";
    if (greedy) yaml += "scheduler: {policy: greedy, turn: 2000, ahead: 8000}\n";
    if (paced_loopback) yaml += "loopback: {rate: 20Gbps, latency: 300ns}\n";
    if (limits) yaml += "limiter: {qp_rate: 20Gbps, qp_burst: 4000, port_rate: 50Gbps, port_burst: 8000}\n";
    if (short_waits) yaml += "cm_response_timeout: 4\ncm_retries: 2\n";
    return yaml;
  }
};

/// Options are parsed once for each setup.
inline const KernelOptions& options_of(unsigned side, const NicSetup& setup) {
  static const Registry registry;
  static std::map<std::pair<unsigned, NicSetup>, std::unique_ptr<Options>> known;
  std::unique_ptr<Options>& options = known[{side, setup}];
  if (!options) {
    config::Mistakes mistakes("nic");
    const config::Node node = config::parse_yaml(setup.yaml(side), mistakes);
    config::FieldsReader reader(&node, mistakes);
    options = registry.find("nic")->options(registry);
    options->fields(reader);
    require(mistakes.none(), "the NICs' options are right");
  }
  return static_cast<const KernelOptions&>(*options);
}

}  // namespace rocebox::fuzz::nic_bed
