// SPDX-License-Identifier: BSD-3-Clause
// The option `entropy`: UDP source ports of queue pairs.
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::entropy {
namespace {

// Of the first queue pairs of a pair of NICs, which have the same number.
std::pair<unsigned, unsigned> ports(const std::string& entropy, std::uint64_t seed) {
  NicBox box("rate: 100Gbps\nentropy: " + entropy, "delay: 1us", seed);
  box.connect();
  return {box.sides[0].qp->attributes.udp_source_port, box.sides[1].qp->attributes.udp_source_port};
}

TEST(Entropy, DrawnPortsDifferByRunAndByHost) {
  const auto first = ports("drawn", 1), again = ports("drawn", 1), other = ports("drawn", 2);
  EXPECT_EQ(first, again);
  EXPECT_NE(first.first, other.first);
  EXPECT_NE(first.second, other.second);
  EXPECT_NE(first.first, first.second);
  for (const unsigned port : {first.first, first.second, other.first, other.second}) {
    EXPECT_GE(port, 0xC000u);
    EXPECT_LE(port, 0xFFFFu);
  }
}

TEST(Entropy, AQueuePairThatIsConnectedAnewToTheSameOneKeepsItsPort) {
  NicBox box;
  box.connect();
  const unsigned before = box.sides[0].qp->attributes.udp_source_port;
  const std::uint32_t qpn = box.sides[0].qp->number();
  box.disconnect();
  box.connect();
  ASSERT_EQ(box.sides[0].qp->number(), qpn);
  EXPECT_EQ(box.sides[0].qp->attributes.udp_source_port, before);
}

// Hosts that number their queue pairs alike have the same ports, then, as Linux's have.
TEST(Entropy, PortsOfNumbersAloneAreTheSameInEachRun) {
  const auto first = ports("qpns", 1);
  EXPECT_EQ(first, ports("qpns", 2));
  EXPECT_EQ(first.first, first.second);
}

// rdma_calc_flow_label() and rdma_flow_label_to_udp_sport() of Linux, computed by hand from their definition.
TEST(Entropy, PortsOfNumbersAreLinuxs) {
  const Registry registry;
  nic_model::NicConfig config(registry);
  config.entropy = nic_model::Entropy::kQpns;
  CounterSet stats;
  const nic_model::Core core(config, stats);
  const struct {
    std::uint32_t qpn;
    unsigned port;
  } rows[] = {{0x11, 0xC121},    {0x12, 0xC132},     {0x4000, 0xC011},
              {0x12345, 0xD799}, {0xabcdef, 0xEC4B}, {0xffffff, 0xFEDF}};
  for (const auto& row : rows) EXPECT_EQ(core.udp_source_port(row.qpn, 0x11), row.port) << row.qpn;
}

}  // namespace
}  // namespace rocebox::test::entropy
