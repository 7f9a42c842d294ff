// SPDX-License-Identifier: BSD-3-Clause
// QPs that get no state because all slots are taken: for them the switch is as if Themis were not there.
#include <fmt/format.h>

#include <set>

#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

constexpr std::uint32_t kFlows = 16, kTrips = 8;

// Ways to have more QPs than slots: pairs are learnt; or they are known, and their NICs are in one of the pipes that
// share the slots. The first flows to be paired get them.
struct Full {
  std::string themis, more;
  std::uint32_t slots;
};

Full full(int which) {
  if (which == 0) return {"qps: 1", "pipes: 1", 1};
  if (which == 1) return {"qps: 1", "pipes: 2", 1};
  std::string rows;
  for (std::uint32_t flow = 0; flow < kFlows; flow++)
    rows += fmt::format("{{local: 10.0.0.1, local_qpn: {0}, remote: 10.0.1.1, remote_qpn: {0}}},", 0x100 + flow);
  return {fmt::format("learning: false, qps: {}, connections: [{}]", kFlows, rows), "pipes: 4", kFlows / 2};
}

// Flows differ in their source port, which ECMP hashes, and in their PSNs, by which learning tells them apart.
roce::PacketSpec of_flow(roce::PacketSpec spec, std::uint32_t flow) {
  spec.destination_qp = 0x100 + flow;
  spec.underlay.udp_source_port = static_cast<std::uint16_t>(0xC000 + 4099 * flow);
  spec.psn += 100'000 * flow;
  return spec;
}

class ThemisFull : public testing::TestWithParam<int> {
 protected:
  Full how = full(GetParam());
  Tor plain{"spray: off", how.more};

  Tor tor_with(const std::string& options) {
    return Tor("qp_timeout: 10s, stash_timeout: 0ns, " + options + how.themis, how.more);
  }
  // Requests that are all acknowledged, so that the pair can be learnt.
  static void converse(Tor& tor, std::uint32_t flow) {
    for (std::uint32_t psn = 0; psn < kTrips; psn++) {
      tor.give(0, of_flow(write(false, psn), flow));
      tor.give(2, of_flow(response(true, psn, kAckSyndrome), flow));
    }
  }
  void fill(Tor& tor) {
    for (std::uint32_t flow = 0; flow < kFlows; flow++) converse(tor, flow);
    EXPECT_EQ(tor.count("qps_made"), how.slots);
    // QPs, not packets. Learning looks at few more connections than there are slots, and forgets those that are silent.
    const bool learns = how.slots == 1;
    EXPECT_EQ(tor.count("pairing_full"), 0u);
    EXPECT_EQ(tor.count("pairing_displaced") > 0, learns);
    EXPECT_EQ(tor.count("qp_full"), kFlows - how.slots);
  }
  // All refused QPs, one after the other; gives the ports that were seen.
  std::set<int> expect_plain(Tor& tor) {
    const std::uint64_t before = tor.count("sprayed");
    std::set<int> seen;
    for (std::uint32_t flow = how.slots; flow < kFlows; flow++)
      for (std::uint32_t psn = kTrips; psn < kTrips + 4; psn++) {
        const roce::PacketSpec spec = of_flow(write(false, psn), flow);
        const Ports left = tor.give(0, spec);
        EXPECT_EQ(left, plain.give(0, spec)) << "flow " << flow << ", packet " << psn;
        EXPECT_EQ(tor.out.back().bytes, test::frame(spec));
        seen.insert(left.begin(), left.end());
      }
    EXPECT_EQ(tor.count("sprayed"), before);
    return seen;
  }
  // Those that have a slot are sprayed all the while.
  void expect_sprayed(Tor& tor, std::uint32_t first_psn) {
    for (std::uint32_t flow = 0; flow < how.slots; flow++) {
      std::set<int> seen;
      for (std::uint32_t psn = first_psn; psn < first_psn + 4; psn++)
        seen.insert(tor.give(0, of_flow(write(false, psn), flow)).at(0));
      EXPECT_EQ(seen.size(), 2u) << "flow " << flow;
    }
  }
};

TEST_P(ThemisFull, ARefusedQpKeepsThePortOfPlainEcmp) {
  Tor tor = tor_with("");
  fill(tor);
  expect_sprayed(tor, kTrips);
  EXPECT_EQ(expect_plain(tor), (std::set<int>{2, 3})) << "else these flows do not tell one port from another";
  expect_sprayed(tor, kTrips + 4);
}

TEST_P(ThemisFull, NacksOfARefusedQpPassAndRerouteNothing) {
  Tor tor = tor_with("");
  fill(tor);
  expect_plain(tor);
  for (std::uint32_t flow = how.slots; flow < kFlows; flow++) {
    const roce::PacketSpec to_nic = of_flow(response(true, kTrips, kNackSyndrome), flow);
    EXPECT_EQ(tor.give(2, to_nic), Ports{0});
    EXPECT_EQ(tor.out.back().bytes, test::frame(to_nic));
    const std::uint64_t unpaired = tor.count("nack_unpaired");
    const roce::PacketSpec of_nic = of_flow(response(false, kTrips, kNackSyndrome), flow);
    EXPECT_EQ(tor.give(0, of_nic), plain.give(0, of_nic)) << "in doubt it passes";
    EXPECT_EQ(tor.count("nack_unpaired"), unpaired + 1);
  }
  EXPECT_EQ(tor.count("drop_nack_undetermined") + tor.count("drop_nack_invalid"), 0u);
  expect_plain(tor);  // sent again
  EXPECT_EQ(tor.count("rerouted_nacked") + tor.count("rerouted_again"), 0u);
}

TEST_P(ThemisFull, ARefusedQpKeepsItsSourcePort) {
  Tor tor = tor_with("spray: udp_source_port, path_map: ['0x0101', '0x0102'], ");
  fill(tor);
  const roce::PacketSpec sprayed = of_flow(write(false, kTrips), 0);
  tor.give(0, sprayed);
  EXPECT_NE(tor.out.back().bytes, test::frame(sprayed)) << "one with a slot";
  expect_plain(tor);
}

INSTANTIATE_TEST_SUITE_P(Ways, ThemisFull, testing::Values(0, 1, 2));

}  // namespace
}  // namespace rocebox::themis
