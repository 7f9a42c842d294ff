// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are workloads of their own, as in processes of their own: they find each other by RDMA CM, and leave
// together.
#include "tests/unit/nic/star_kit.h"

namespace rocebox::test {
namespace {

// One workload a host. Each has a report of its own.
class Apart {
 public:
  Apart(Star& star, unsigned ranks, const std::string& type, const std::string& options,
        const std::string& last_options = "") {
    for (unsigned i = 0; i < ranks; i++) {
      std::string list;
      for (unsigned r = 0; r < ranks; r++) list += (r ? ", 10.0.0." : "10.0.0.") + std::to_string(r + 1);
      options_.push_back(
          workload_options(type, "{ranks: [" + list + "], " + options + (i + 1 == ranks ? last_options : "") + "}"));
      workloads.push_back(options_.back()->make({&star.all[i], 1}, 1));
    }
  }
  NumbersOf report_of(unsigned rank) const {
    NumbersOf report;
    workloads[rank]->report(report);
    return report;
  }
  std::map<std::string, double> report(unsigned rank) const { return report_of(rank).values; }
  std::string error(unsigned rank) const { return report_of(rank).texts["error"]; }
  bool finished() const {
    return std::ranges::all_of(workloads, [](const auto& one) { return one->finished(); });
  }

  std::vector<std::unique_ptr<WorkloadOptions>> options_;
  std::vector<std::unique_ptr<Workload>> workloads;
};

TEST(AllgatherApart, RanksFindEachOtherAndEveryByteIsRight) {
  const struct {
    unsigned ranks;
    const char *type, *options, *link;
  } cases[] = {
      {2, "multicast_allgather", "size: 5000, mtu: 256", "delay: 1us"},
      {5, "multicast_allgather",
       "size: 9000, mtu: 256, chains: 2, subgroups: 2, communicators: 2, iterations: 3, outstanding: 2",
       "{delay: 1us, loss: 2%}"},
      {4, "multicast_broadcast", "size: 30000, mtu: 1024, root: 2, iterations: 2",
       "{delay: 1us, loss: 5%, reorder: 5%}"},
      {3, "multicast_allgather", "size: 5000, mtu: 256, transport: uc", "{delay: 1us, loss: 2%}"},
      {4, "multicast_allgather", "size: 5000, mtu: 256, receive: dpa, poll: 50us", "{delay: 1us, loss: 2%}"},
  };
  for (const auto& one : cases) {
    Star star(one.ranks, "cm_response_timeout: 8\narp_timeout: 1ms\ndpa: {heap: 4MiB}", one.link);
    Apart apart(star, one.ranks, one.type, std::string(one.options) + ", staging: 64KiB, local_ack_timeout: 8");
    // One after the other: who begins first finds nobody.
    for (const auto& workload : apart.workloads) {
      EXPECT_FALSE(apart.workloads.front()->finished()) << "none can end without the others";
      workload->start(star.now);
      star.run([] { return false; }, star.now + 30 * kMillisecond);
    }
    star.run([&] { return apart.finished(); }, 100 * kSecond);
    EXPECT_TRUE(apart.finished());
    for (unsigned rank = 0; rank < one.ranks; rank++) {
      auto report = apart.report(rank);
      EXPECT_EQ(report["ranks"], one.ranks);
      EXPECT_EQ(report["rank_number"], rank);
      EXPECT_GT(report["released_whole"], 0) << one.options;
      EXPECT_EQ(report["not_released"] + report["wrong_bytes"] + report["wrong_blocks"], 0) << one.options;
      EXPECT_EQ(report["bad_messages"] + report["goodbyes_missing"], 0) << one.options;
    }
  }
}

TEST(AllgatherApart, WhoDoesNotJoinIsNamed) {
  Star star(4, "cm_response_timeout: 8", "delay: 1us");
  Apart apart(star, 4, "multicast_allgather", "size: 5000, mtu: 256, staging: 64KiB, join_timeout: 2s");
  for (const unsigned rank : {0u, 1u, 3u}) apart.workloads[rank]->start(0);
  star.run([&] { return apart.workloads[3]->finished(); }, 10 * kSecond);
  EXPECT_GE(star.now, 2 * kSecond);
  star.run([] { return false; }, star.now + kMillisecond);
  EXPECT_EQ(apart.error(1), "rank 2 (10.0.0.3) has not joined");
  EXPECT_EQ(apart.error(3), "rank 2 (10.0.0.3) has not joined");
  EXPECT_TRUE(apart.workloads[0]->finished());
  EXPECT_EQ(apart.report(1)["released_whole"], 0);
}

TEST(AllgatherApart, OptionsThatAreNotAlikeAreNamed) {
  Star star(3, "cm_response_timeout: 8", "delay: 1us");
  Apart apart(star, 3, "multicast_allgather", "size: 5000, mtu: 256, staging: 64KiB, join_timeout: 2s", ", chains: 2");
  for (const auto& workload : apart.workloads) workload->start(0);
  star.run([&] { return apart.finished(); }, 10 * kSecond);
  EXPECT_TRUE(apart.finished());
  EXPECT_EQ(apart.error(1),
            "rank 2 (10.0.0.3) has other options: all ranks need the same, but for where their NICs are");
  EXPECT_EQ(apart.error(2),
            "rank 0 (10.0.0.1) has other options: all ranks need the same, but for where their NICs are");
}

TEST(AllgatherApart, WhoDiesIsNamed) {
  Star star(3, "cm_response_timeout: 8", "delay: 1us");
  Apart apart(star, 3, "multicast_allgather",
              "size: 5000, mtu: 256, staging: 64KiB, iterations: 1000, local_ack_timeout: 5, timeout: 20ms, "
              "join_timeout: 2s");
  for (const auto& workload : apart.workloads) workload->start(0);
  star.run([&] { return apart.report(0)["released_whole"] > 10; }, kSecond);
  star.link(2, "up: false");
  star.run([&] { return apart.workloads[0]->finished() && apart.workloads[1]->finished(); }, 10 * kSecond);
  for (const unsigned rank : {0u, 1u}) {
    auto report = apart.report(rank);
    EXPECT_TRUE(apart.workloads[rank]->finished());
    EXPECT_EQ(report["wrong_bytes"] + report["wrong_blocks"], 0);
    EXPECT_GT(report["connection_lost"] + report["rnr_barrier_timeout"] + report["fetch_timeout"] +
                  report["final_handshake_timeout"],
              0);
    EXPECT_EQ(report["not_released"], 0);
  }
}

// Rank 1 has acknowledged nothing since its last collective ended, and leaves: who tries again is told.
TEST(AllgatherApart, ALostLastAcknowledgementKeepsNobody) {
  Star star(3, "cm_response_timeout: 8", "delay: 1us");
  Apart apart(star, 3, "multicast_allgather",
              "size: 5000, mtu: 256, staging: 64KiB, local_ack_timeout: 17");  // half a second, eight times
  for (const auto& workload : apart.workloads) workload->start(0);
  star.run([&] { return apart.report(1)["not_released"] == 0; }, kSecond);
  star.link(1, "{delay: 1us, forward: {loss: 100%, match: {opcode: 0x11}}}");
  const Nanos ended = star.now;
  star.run([&] { return apart.workloads[1]->finished(); }, 10 * kSecond);
  EXPECT_FALSE(apart.workloads[0]->finished() || apart.workloads[2]->finished());
  star.run([&] { return apart.finished(); }, 10 * kSecond);
  EXPECT_LT(star.now - ended, 10 * kMillisecond);
  for (unsigned rank = 0; rank < 3; rank++) {
    auto report = apart.report(rank);
    EXPECT_TRUE(apart.workloads[rank]->finished());
    EXPECT_EQ(report["released_whole"], 1);
    EXPECT_EQ(report["goodbyes_missing"] + report["connection_lost"], 0);
  }
}

TEST(AllgatherApart, RanksAreRefusedByName) {
  const auto mistake = [](const std::string& options) {
    Star star(2, "", "delay: 1us");
    try {
      workload_options("multicast_allgather", options)->make({&star.all[0], 1}, 1);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(mistake("{ranks: [10.0.0.7, 10.0.0.8], mtu: 256}"), "`ranks` has not the address of `h0`, 10.0.0.1");
  EXPECT_EQ(mistake("{ranks: [10.0.0.1, 10.0.0.2], mtu: 256}"), "");
}

}  // namespace
}  // namespace rocebox::test
