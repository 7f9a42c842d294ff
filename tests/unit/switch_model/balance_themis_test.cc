// SPDX-License-Identifier: BSD-3-Clause
// Load balancing with Themis behind: it chooses for what it sprays, and `balance` for everything else.
#include "tests/unit/switch_model/balance_kit.h"

namespace rocebox::switch_model::balance_themis_test {
namespace {

using namespace balance_kit;

// The first packet shows where the NIC is; from the next on Themis chooses, by PSN and the flow's path.
TEST(BalanceThemis, SpraysAsItDoesAlone) {
  const auto yaml = [](std::string_view balance, const std::string& spray) {
    return routed(balance, "programs: [forward, themis]") +
           "themis: {hosts: [p0], paths: 3, qps: 8, window: 64, ooo_threshold: 32, " + spray +
           "connections: [{local: 10.0.0.1, local_qpn: 0x10, remote: 10.0.1.1, remote_qpn: 0x11, first_psn: 7}]}\n";
  };
  for (const std::string spray : {"", "spray: udp_source_port, path_map: ['0', '0x0101', '0x0202'], "}) {
    std::vector<std::vector<int>> runs;
    for (const std::string_view balance : {kFlow, kRandom, kFlowlet, kLeastQueue}) {
      Box box((balance == kLeastQueue ? "" : "strict: true\n") + yaml(balance, spray));
      std::vector<int>& run = runs.emplace_back();
      for (std::uint32_t psn = 7; psn < 200; psn++) {
        const int port = box.give(psn * 100'000, write(psn));
        ASSERT_TRUE(box.mac_is_the_ports());
        if (psn > 7) run.push_back(port);
      }
      EXPECT_GE(box.stats.read("sprayed"), 192u);
      EXPECT_EQ(run, runs[0]) << balance << ", " << spray;
      for (std::size_t i = 3; spray.empty() && i < run.size(); i++) ASSERT_EQ(run[i], run[i - 3]) << "equation 1";
      std::map<int, unsigned> others;  // of a QP that Themis does not know
      for (std::uint32_t psn = 0; psn < kPackets; psn++) {
        roce::PacketSpec unknown = write(psn);
        unknown.destination_qp = 0x99;
        others[box.give(kSecond + psn * 100'000, unknown)]++;
        ASSERT_TRUE(box.mac_is_the_ports());
      }
      if (balance == kFlow)
        EXPECT_EQ(others.size(), 1u);
      else
        expect_even(others);
    }
  }
}

// An ACK of the rack's NIC whose way out is in another pipe than its data's turns back first; then it leaves by that
// way.
TEST(BalanceThemis, TurnsAcksByTheirFlowletsPort) {
  std::string yaml = routed(kFlowlet, "strict: true\npipes: 2\nprograms: [forward, themis]");
  yaml.replace(yaml.find("routes: ["), 9,
               "routes: [{prefix: 10.0.0.0/24, via: [{port: p0, mac: '02:00:00:00:01:00'}]}, ");
  Box box(yaml +
          "themis: {hosts: [p0], paths: 3, qps: 8, window: 64, ooo_threshold: 32, connections: [{local: 10.0.0.1, "
          "local_qpn: 0x10, remote: 10.0.1.1, remote_qpn: 0x11, first_psn: 7}]}\n");
  Nanos now = 0;
  std::map<int, unsigned> by_port;
  for (std::uint32_t psn = 7; psn < 7 + kPackets; psn++) {
    roce::PacketSpec data = write(psn);
    std::swap(data.underlay.addresses.source, data.underlay.addresses.destination);
    data.destination_qp = 0x10;
    box.send(now += 20'000, 1, data);
    ASSERT_EQ(box.ports(), std::vector<int>{0});
    box.send(now += 20'000, 0, packet(IBV_OPCODE_RC_ACKNOWLEDGE, psn));
    box.run_until(now + 10'000);
    const std::vector<int> left = box.ports();
    ASSERT_EQ(left.size(), 1u);
    ASSERT_TRUE(box.mac_is_the_ports());
    by_port[left[0]]++;
  }
  expect_even(by_port);
  EXPECT_EQ(box.stats.read("turned"), by_port[2] + by_port[3]) << "p0 and p1 are one pipe";
}

}  // namespace
}  // namespace rocebox::switch_model::balance_themis_test
