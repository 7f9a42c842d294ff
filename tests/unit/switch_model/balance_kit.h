// SPDX-License-Identifier: BSD-3-Clause
// A switch with three equal paths, and packets for them.
#pragma once
#include <fmt/format.h>

#include <map>

#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::balance_kit {

// One host at p0; everything else is behind p1, p2 and p3. Bridged, or routed with a neighbour at each port.
inline std::string bridged(std::string_view balance, const std::string& more = "") {
  return more + "\nforward: {learning: false, macs: [{mac: '02:00:00:00:00:02', ports: [p1, p2, p3]}, {mac: " +
         "'02:00:00:00:00:07', ports: [p1]}], " + std::string(balance) + "}\n";
}
inline std::string routed(std::string_view balance, const std::string& more = "") {
  std::string via;
  for (int i = 1; i < 4; i++) via += fmt::format("{}{{port: p{}, mac: '02:00:00:00:01:0{}'}}", i > 1 ? ", " : "", i, i);
  return more + "\nforward: {learning: false, router_mac: '02:00:00:00:00:02', routes: [{prefix: 10.0.1.0/24, via: [" +
         via + "]}], " + std::string(balance) + "}\n";
}

inline roce::PacketSpec packet(std::uint8_t opcode, std::uint32_t psn, std::uint16_t flow = 0,
                               std::size_t bytes = 256) {
  static const std::vector<std::uint8_t> kPayload(4096, 0x5A);
  roce::PacketSpec spec;
  spec.underlay.destination_mac = {2, 0, 0, 0, 0, 2};
  spec.underlay.source_mac = {2, 0, 0, 0, 0, 1};
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 1, 1)};
  spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + flow);
  spec.opcode = opcode;
  spec.destination_qp = 0x11;
  spec.psn = psn;
  if (roce::opcode_info(opcode).has(roce::kHasPayload)) spec.payload = std::span(kPayload).first(bytes);
  return spec;
}
inline roce::PacketSpec write(std::uint32_t psn, std::uint16_t flow = 0) {
  return packet(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn, flow);
}

struct Box : test::SwitchBox {
  explicit Box(const std::string& yaml) : SwitchBox(yaml.c_str()) {}
  ~Box() { EXPECT_EQ(stats.read("strict_violations"), 0u); }
  /// The port by which a packet leaves at once.
  int give(Nanos now, const roce::PacketSpec& spec) { return give(now, test::frame(spec)); }
  int give(Nanos now, const std::vector<std::uint8_t>& frame) {
    send(now, 0, frame);
    const std::vector<int> left = ports();
    EXPECT_EQ(left.size(), 1u);
    return left.empty() ? -1 : left[0];
  }
  bool mac_is_the_ports() const { return out.back().bytes[4] == 1 && out.back().bytes[5] == out.back().port; }
};

constexpr unsigned kPackets = 3000;
// Five standard deviations of a third of them.
constexpr double kThird = kPackets / 3.0, kFar = 5 * 25.8;
inline void expect_even(const std::map<int, unsigned>& by_port) {
  ASSERT_EQ(by_port.size(), 3u);
  for (const auto& [port, count] : by_port) EXPECT_NEAR(count, kThird, kFar) << "p" << port;
}

constexpr std::string_view kFlow = "balance: flow", kRandom = "balance: random", kLeastQueue = "balance: least_queue",
                           kFlowlet = "balance: flowlet, flowlet_gap: 10us";

}  // namespace rocebox::switch_model::balance_kit
