// SPDX-License-Identifier: BSD-3-Clause
// A ToR with Themis alone: ports p0 and p1 to NICs, p2 and p3 two equal paths to the fabric.
#pragma once
#include <string>

#include "kernels/themis/limits.h"
#include "kernels/themis/themis.h"
#include "runtime/roce/icrc.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::themis {

inline constexpr std::uint32_t kLocalQpn = 0x11, kRemoteQpn = 0x12;
inline const auto kLocal = roce::ipv4(10, 0, 0, 1), kRemote = roce::ipv4(10, 0, 1, 1);

inline std::string tor_yaml(const std::string& themis, const std::string& more = "") {
  return "strict: true\nprograms: [forward, themis]\n" + more +
         R"(
forward:
  learning: false
  macs:
    - {mac: 02:00:00:00:00:01, ports: [p0]}
    - {mac: 02:00:00:00:00:02, ports: [p2, p3]}
    - {mac: 02:00:00:00:00:01, vlan: 7, ports: [p0]}
    - {mac: 02:00:00:00:00:02, vlan: 7, ports: [p2, p3]}
themis: {hosts: [p0, p1], paths: 2, window: 8, ooo_threshold: 5, )" +
         (themis.find("qps:") == std::string::npos ? "qps: 8, " : "") + themis + "}\n";
}
/// The same ToR as a router between the racks 10.0.0.0/24 and 10.0.1.0/24.
inline std::string router_yaml(const std::string& themis, const std::string& more = "") {
  std::string yaml = tor_yaml(themis, more);
  const std::size_t macs = yaml.find("  macs:"), end = yaml.find("themis: {");
  return yaml.replace(macs, end - macs, R"(  router_mac: 02:00:00:00:ff:01
  routes:
    - {prefix: 10.0.0.0/24, via: [{port: p0, mac: 02:00:00:00:00:01}]}
    - {prefix: 10.0.1.0/24, via: [{port: p2, mac: 02:00:00:00:01:02}, {port: p3, mac: 02:00:00:00:01:03}]}
)");
}
/// The same ToR with one way to the other rack: it sprays nothing itself, and judges what a sender with any N sprayed.
inline std::string one_way(std::string yaml) {
  const std::string ways = "[p2, p3]";
  for (std::size_t at; (at = yaml.find(ways)) != std::string::npos;) yaml.replace(at, ways.size(), "[p2]");
  return yaml;
}
inline constexpr const char* kConnection =
    "connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12, first_psn: 0}]";

/// From the NIC in this rack; with `inbound` to it.
inline roce::PacketSpec packet(bool inbound, std::uint8_t opcode, std::uint32_t psn) {
  roce::PacketSpec spec;
  spec.underlay.addresses = {kLocal, kRemote};
  if (inbound) {
    std::swap(spec.underlay.addresses.source, spec.underlay.addresses.destination);
    spec.underlay.source_mac.swap(spec.underlay.destination_mac);
  }
  spec.underlay.tos = 0x6A;  // DSCP 26, ECT(0)
  spec.opcode = opcode;
  spec.destination_qp = inbound ? kLocalQpn : kRemoteQpn;
  spec.psn = psn;
  return spec;
}
inline roce::PacketSpec write(bool inbound, std::uint32_t psn) {
  static const std::vector<std::uint8_t> payload(1024, 0x5A);
  roce::PacketSpec spec = packet(inbound, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn);
  spec.payload = payload;
  return spec;
}
inline roce::PacketSpec response(bool inbound, std::uint32_t psn, std::uint8_t syndrome) {
  roce::PacketSpec spec = packet(inbound, IBV_OPCODE_RC_ACKNOWLEDGE, psn);
  spec.underlay.tos = 0x68;
  spec.syndrome = syndrome;
  spec.msn = 5;
  return spec;
}
inline constexpr std::uint8_t kAckSyndrome = 0x1F, kNackSyndrome = 0x60, kRnrSyndrome = 0x2E;

struct Tor : test::SwitchBox {
  explicit Tor(const std::string& themis, const std::string& more = "") : SwitchBox(tor_yaml(themis, more).c_str()) {}
  /// With all options of the switch.
  static Tor with(const std::string& yaml) { return Tor(yaml, Whole{}); }
  ~Tor() { EXPECT_EQ(stats.read("strict_violations"), 0u); }

  Nanos now = 0;

  /// A request of the NIC in this rack: the connection has state before the first request to it.
  void meet() { give(0, write(false, 0)); }
  /// Ports by which the packet, and what it caused, left.
  std::vector<int> give(Port in, const roce::PacketSpec& spec) {
    send(now += 100, in, spec);
    return ports();
  }
  std::vector<int> data(std::uint32_t psn) { return give(psn % 2 ? 3 : 2, write(true, psn)); }
  std::vector<int> nack(std::uint32_t epsn) { return give(0, response(false, epsn, kNackSyndrome)); }
  std::vector<int> ack(std::uint32_t psn) { return give(0, response(false, psn, kAckSyndrome)); }
  std::uint64_t count(std::string_view name) const { return stats.read(name); }

 private:
  struct Whole {};
  Tor(const std::string& yaml, Whole) : SwitchBox(yaml.c_str()) {}
};

using Ports = std::vector<int>;

/// A test for a ToR of one pipe, and of more.
struct InPipes : testing::TestWithParam<int> {
  std::string pipes() const { return "pipes: " + std::to_string(GetParam()); }
};

}  // namespace rocebox::themis
