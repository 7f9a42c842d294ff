// SPDX-License-Identifier: BSD-3-Clause
// A QP whose first PSN is known is judged from its first packet on, in whatever order its packets arrive.
#include <fmt/format.h>

#include "tests/unit/themis/themis_cm_kit.h"

namespace rocebox::themis {
namespace {

class ThemisFirstPsn : public InPipes {
 protected:
  // Each packet is overtaken by the one behind it, for some rounds of the bitmap: none of the NACKs is of a loss.
  static void expect_no_nack(Tor& tor) {
    for (std::uint32_t psn = 0; psn < 64; psn += 2) {
      EXPECT_EQ(tor.data(psn + 1), Ports{0});
      EXPECT_EQ(tor.nack(psn), Ports{}) << psn << ": undetermined";
      EXPECT_EQ(tor.data(psn), Ports{0}) << psn << ": it was invalid";
      EXPECT_EQ(tor.nack(psn), Ports{}) << psn << ": it has left";
      tor.ack(psn + 1);
    }
    EXPECT_EQ(tor.count("undetermined_invalid"), 32u);
    EXPECT_EQ(tor.count("drop_nack_invalid"), 32u);
    EXPECT_EQ(tor.count("nack_doubt") + tor.count("nack_unpaired") + tor.count("nack_valid"), 0u);
  }
};

TEST_P(ThemisFirstPsn, Configured) {
  Tor tor(kConnection, pipes());
  expect_no_nack(tor);
}

TEST_P(ThemisFirstPsn, ToldByTheConnectionManager) {
  Tor tor("learning: false", pipes());
  connect(tor, 7, kLocalQpn, kRemoteQpn);
  expect_no_nack(tor);
}

TEST_P(ThemisFirstPsn, ALossAtTheStart) {
  Tor tor(kConnection, pipes());
  tor.data(3);
  EXPECT_EQ(tor.nack(0), Ports{});
  tor.data(1);
  EXPECT_EQ(tor.data(2).size(), 2u) << "of the path of 0";
}

// What arrives in the instant that makes the state has left before there is any.
TEST_P(ThemisFirstPsn, SeveralPacketsInTheFirstInstant) {
  Tor tor(kConnection, pipes());
  tor.now += 100;
  for (const std::uint32_t psn : {3u, 0u, 4u}) tor.send(tor.now, 2, write(true, psn));
  EXPECT_EQ(tor.ports(), (Ports{0, 0, 0}));
  EXPECT_EQ(tor.nack(0), Ports{}) << "it has left";
  EXPECT_EQ(tor.count("drop_nack_invalid"), 1u);
  EXPECT_EQ(tor.nack(1).size(), 1u) << "3 of its path has left";
  EXPECT_EQ(tor.count("nack_valid"), 1u);
}

// A first PSN that is wrong does no harm.
TEST_P(ThemisFirstPsn, ThatIsNotTheFirst) {
  Tor tor(kConnection, pipes());
  tor.data(5000);
  EXPECT_EQ(tor.nack(4999).size(), 1u) << "not understood";
  tor.data(5002);
  EXPECT_EQ(tor.nack(5001), Ports{});
  EXPECT_EQ(tor.data(5003).size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Pipes, ThemisFirstPsn, testing::Values(1, 2, 4));

// More than one instant can send: stashes of QPs that end together.
TEST(ThemisAgeing, StashesOfManyQpsThatEndInOneInstant) {
  constexpr std::uint32_t kMany = 150;
  std::string rows;
  for (std::uint32_t qp = 0; qp < kMany; qp++)
    rows += fmt::format("{{local: 10.0.0.1, local_qpn: {0}, remote: 10.0.1.1, remote_qpn: {0}, first_psn: 0}},",
                        0x100 + qp);
  Tor tor(fmt::format("qps: {}, stash_timeout: 0ns, qp_timeout: 1ms, connections: [{}]", kMany, rows), "pipes: 1");
  for (std::uint32_t qp = 0; qp < kMany; qp++) {
    tor.give(3, to(write(true, 1), 0x100 + qp));
    EXPECT_EQ(tor.give(0, to(response(false, 0, kNackSyndrome), 0x100 + qp)), Ports{});
  }
  tor.drain();
  EXPECT_EQ(tor.count("qps_aged"), kMany);
  EXPECT_EQ(tor.ports().size(), kMany);
  EXPECT_EQ(tor.count("undetermined_released"), kMany);
  EXPECT_EQ(tor.count("stash_lost"), 0u);
}

}  // namespace
}  // namespace rocebox::themis
