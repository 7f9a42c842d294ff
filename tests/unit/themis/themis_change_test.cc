// SPDX-License-Identifier: BSD-3-Clause
// Options of a ToR that are changed while it runs.
#include "kernels/themis/modulo.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

// As `rocebox reload` does it.
void change(Tor& tor, const std::string& yaml) { test::prepare_change(tor, yaml)->apply(*tor.kernel, tor.now); }

std::string with_paths(std::string yaml, const std::string& paths) {
  const std::string old = "paths: 2";
  return one_way(yaml.replace(yaml.find(old), old.size(), "paths: " + paths + ", paths_max: 4"));
}

TEST(ThemisChange, TheFarEndCountsPathsAnew) {
  const std::string yaml = tor_yaml(kConnection);
  Tor tor = Tor::with(with_paths(yaml, "2"));
  tor.meet();
  tor.data(1);
  EXPECT_EQ(tor.nack(0), Ports{});
  change(tor, with_paths(yaml, "4"));
  EXPECT_EQ(tor.data(2), Ports{0}) << "another path now";
  EXPECT_EQ(tor.data(3), Ports{0});
  EXPECT_EQ(tor.data(4).size(), 2u) << "the path of 0";
  change(tor, with_paths(yaml, "3"));
  tor.ack(4);
  tor.data(6);
  EXPECT_EQ(tor.nack(5), Ports{});
  EXPECT_EQ(tor.data(7), Ports{0});
  EXPECT_EQ(tor.data(8).size(), 2u);
  EXPECT_EQ(tor.count("paths_changed"), 2u);
  change(tor, with_paths(yaml, "3"));
  EXPECT_EQ(tor.count("paths_changed"), 2u) << "as it was";
}

TEST(ThemisChange, AStashGoesOverToTheNewPaths) {
  const std::string yaml = tor_yaml(std::string(kConnection) + ", stash_timeout: 0ns");
  Tor tor = Tor::with(with_paths(yaml, "4"));
  tor.meet();
  for (std::uint32_t psn : {0, 1, 2, 4}) tor.data(psn);
  EXPECT_EQ(tor.nack(3), Ports{}) << "path 3 of 4";
  change(tor, with_paths(yaml, "2"));
  EXPECT_EQ(tor.data(5).size(), 2u) << "path 1 of 2";
}

TEST(ThemisChange, ATimeoutOf0SendsNothing) {
  const std::string yaml = tor_yaml(kConnection);
  Tor tor = Tor::with(yaml);
  tor.meet();
  tor.data(1);
  EXPECT_EQ(tor.nack(0), Ports{});
  change(tor, tor_yaml(std::string(kConnection) + ", stash_timeout: 0ns"));
  tor.run_until(tor.now += 10 * kMillisecond);
  EXPECT_EQ(tor.ports(), Ports{});
  EXPECT_EQ(tor.data(2).size(), 2u) << "it waits for its path";
}

TEST(ThemisChange, OnlyWhatNoArrayIsSizedByCanBeChanged) {
  const std::string yaml = tor_yaml(kConnection);
  Tor tor = Tor::with(with_paths(yaml, "2"));
  const auto refused = [&](const std::string& text) {
    try {
      change(tor, text);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      refused(with_paths(tor_yaml(std::string(kConnection) + ", qps: 9"), "2")).find("`themis.qps` cannot be changed"),
      std::string::npos);
  EXPECT_NE(refused("pipes: 2\n" + with_paths(yaml, "2")).find("`pipes` cannot be changed"), std::string::npos);
  std::string more = with_paths(yaml, "8");
  more.replace(more.find(", paths_max: 4"), 14, "");
  EXPECT_NE(refused(more).find("`themis.paths_max` cannot be changed"), std::string::npos);
  EXPECT_EQ(refused(with_paths(yaml, "4")), "");
  EXPECT_EQ(refused(with_paths(yaml, "1")), "") << "compared with what cannot be changed, not with the last change";
}

// A connection of the rack's QP `local`, as a row.
std::string row(int local, int remote) {
  return "{local: 10.0.0.1, local_qpn: " + std::to_string(local) +
         ", remote: 10.0.1.1, remote_qpn: " + std::to_string(remote) + ", first_psn: 0}";
}
std::string with_rows(const std::string& rows) {
  return tor_yaml("learning: false, qp_timeout: 10s, connections: [" + rows + "]");
}

TEST(ThemisChange, AConnectionThatIsAddedIsJudgedFromItsFirstPacketOn) {
  Tor tor = Tor::with(with_rows(""));
  tor.data(1);
  EXPECT_EQ(tor.nack(0).size(), 1u) << "unpaired";
  change(tor, with_rows(row(kLocalQpn, kRemoteQpn)));
  EXPECT_EQ(tor.count("qps_made"), 0u);
  tor.data(3);
  EXPECT_EQ(tor.nack(0), Ports{}) << "undetermined";
  EXPECT_EQ(tor.data(2).size(), 2u) << "valid";
  change(tor, with_rows(row(kLocalQpn, kRemoteQpn) + ", " + row(0x21, 0x22)));
  EXPECT_EQ(tor.nack(2), Ports{}) << "it has left: the connection goes on as it was";
  EXPECT_EQ(tor.count("qps_made"), 1u);
}

TEST(ThemisChange, AConnectionThatIsTakenAwayLetsItsStashPass) {
  Tor tor = Tor::with(with_rows(row(kLocalQpn, kRemoteQpn)));
  tor.data(1);
  EXPECT_EQ(tor.nack(0), Ports{}) << "undetermined";
  change(tor, with_rows(""));
  EXPECT_EQ(tor.data(3).size(), 2u) << "a packet, and the NACK";
  EXPECT_EQ(tor.count("undetermined_released"), 1u);
  EXPECT_EQ(tor.nack(0).size(), 1u) << "unpaired";
  EXPECT_EQ(tor.count("nack_unpaired"), 1u);
}

TEST(ThemisChange, AQpThatIsAnothersIsJudgedForThat) {
  Tor tor = Tor::with(with_rows(row(kLocalQpn, 0x77) + ", " + row(0x21, 0x22)));
  tor.data(1);
  EXPECT_EQ(tor.nack(0).size(), 1u) << "its requester is told to be 0x77";
  change(tor, with_rows(row(kLocalQpn, kRemoteQpn) + ", " + row(0x21, 0x77)));
  tor.data(3);
  EXPECT_EQ(tor.nack(0), Ports{});
  change(tor, with_rows(row(0x21, kRemoteQpn) + ", " + row(kLocalQpn, 0x22)));
  EXPECT_EQ(tor.data(5).size(), 2u) << "a packet, and the NACK of the pair that is no more";
  EXPECT_EQ(tor.nack(4).size(), 1u) << "not to this QP";
}

TEST(ThemisModulo, IsTheRemainder) {
  for (std::uint32_t n = 1; n <= kPathsMax; n++) {
    const Modulo modulo(n);
    for (std::uint32_t psn = 0; psn < 1u << 24; psn += 4099) ASSERT_EQ(modulo(psn), psn % n) << psn << " mod " << n;
    for (const std::uint32_t psn : {n - 1, n, n + 1, (1u << 24) - 1, 0xFFFFFFFFu}) ASSERT_EQ(modulo(psn), psn % n);
  }
}

}  // namespace
}  // namespace rocebox::themis
