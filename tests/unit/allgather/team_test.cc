// SPDX-License-Identifier: BSD-3-Clause
// Multicast collectives over NICs, a switch and wires that lose, reorder and double, with all their bytes.
#include <gtest/gtest.h>

#include "tests/unit/allgather/judge.h"

namespace rocebox::allgather::test {
namespace {

TeamOptions small(unsigned subgroups = 1) {
  TeamOptions options;
  options.mtu = 256;
  options.subgroups = subgroups;
  options.staging = 64 << 10;
  options.batch = 4;
  options.timeout_exponent = 5;  // 131 us
  return options;
}

TEST(AllgatherTeam, AllgatherAndBroadcast) {
  Star star(6, "", "delay: 1us");
  Judge judge(star, small(2), {{0, 0, -1, 2, 5000}, {0, 1, 3, 1, 70000}, {0, 2, -1, 6, 1}});
  judge.run();
  EXPECT_EQ(judge.whole, 18u);
  EXPECT_EQ(judge.wrong, 0u);
  const TeamCounters c = judge.team.counters();
  // 20 chunks of 5000 bytes and 274 of 70000, and one byte: each left its root once, and came to the five others.
  EXPECT_EQ(c.datagrams_sent, 6 * 20 + 274u + 6);
  EXPECT_EQ(c.chunks, 5 * c.datagrams_sent);
  EXPECT_EQ(c.copies, c.chunks);
  // Each half of a block by itself, four datagrams a doorbell: 3 + 3 of 10 + 10 chunks, 35 + 35 of 137 + 137, 1.
  EXPECT_EQ(c.doorbells, 6 * 6 + 70u + 6);
  EXPECT_EQ(c.send_completions, c.doorbells);
  EXPECT_EQ(c.reads + c.requests + c.duplicates + c.stale + c.bad_messages + c.stale_messages, 0u);
  EXPECT_EQ(judge.team.test(0, 0, 2), End::kWhole);
}

// Chunks of one and of several packets, written where they belong.
TEST(AllgatherTeam, UnreliableConnectionsWriteWithoutCopies) {
  for (const char* link : {"delay: 1us", "{delay: 1us, loss: 3%}", "{delay: 1us, loss: 100%, match: {opcode: 0x29}}"})
    for (const std::uint64_t chunk : {0, 1000, 4096}) {
      TeamOptions options = small(2);
      options.transport = Transport::kUc;
      options.chunk = chunk;
      options.outstanding = 2;
      options.timeout = 10 * kSecond;
      Star star(5, "", link);
      Judge judge(star, options, {{0, 0, -1, 2, 20000}, {0, 1, 3, 1, 30001}, {0, 2, -1, 5, 700}, {0, 3, -1, 1, 20000}});
      judge.run();
      EXPECT_EQ(judge.whole, 20u) << link << chunk;
      EXPECT_EQ(judge.wrong, 0u) << link << chunk;
      const TeamCounters c = judge.team.counters();
      EXPECT_EQ(c.copies, 0u);
      EXPECT_EQ(c.bad_messages, 0u);
      if (std::string(link) != "delay: 1us") continue;
      EXPECT_EQ(c.reads, 0u);
      EXPECT_EQ(c.chunks, 4 * c.datagrams_sent);
    }
}

// As many receives are posted as staging would have slots of an MTU, however long a chunk is.
TEST(AllgatherTeam, ReceivesOfWritesDoNotDependOnTheChunk) {
  for (const Receiver receiver : {Receiver::kHost, Receiver::kDpa}) {
    TeamOptions options = small();
    options.transport = Transport::kUc;
    options.receiver = receiver;
    options.chunk = 1000;
    options.staging = 32 * 296;  // nine chunks, and 20 come at once
    options.worker_time = 500;
    Star star(3, "dpa: {heap: 4MiB}", "delay: 1us");
    Judge judge(star, options, {{0, 0, -1, 3, 10000}});
    judge.run();
    EXPECT_EQ(judge.whole, 3u);
    EXPECT_EQ(judge.wrong, 0u);
    EXPECT_EQ(judge.team.counters().staging_slots, 32u);
    EXPECT_EQ(judge.team.counters().reads, 0u);
  }
}

// Workers on the DPA give what the host's own code gives: by datagrams and by WRITEs, with and without loss.
TEST(AllgatherTeam, WorkersOnTheDpaGiveTheSame) {
  for (const Transport transport : {Transport::kUd, Transport::kUc})
    for (const char* link : {"delay: 1us", "{delay: 1us, loss: 3%}", "{delay: 1us, loss: 20%, match: {opcode: 0x65}}",
                             "{delay: 1us, reorder: 20%, duplicate: 10%, match: {opcode: 0x65}}"}) {
      TeamCounters counters[2];
      for (const Receiver receiver : {Receiver::kHost, Receiver::kDpa}) {
        TeamOptions options = small(3);
        options.transport = transport;
        options.receiver = receiver;
        options.outstanding = 2;
        options.communicators = 2;
        options.timeout = 10 * kSecond;
        Star star(4, "dpa: {heap: 4MiB}", link);
        Judge judge(
            star, options,
            {{0, 0, -1, 2, 20000}, {0, 1, 3, 1, 30001}, {0, 2, -1, 4, 700}, {1, 0, -1, 1, 9000}, {1, 1, 0, 1, 1}});
        judge.run();
        EXPECT_EQ(judge.whole, 20u) << link;
        EXPECT_EQ(judge.wrong, 0u) << link;
        counters[receiver == Receiver::kDpa] = judge.team.counters();
      }
      if (std::string(link) != "delay: 1us") continue;
      EXPECT_EQ(counters[0].chunks, counters[1].chunks);
      EXPECT_EQ(counters[0].copies, counters[1].copies);
      EXPECT_EQ(counters[1].reads + counters[1].stale + counters[1].strangers, 0u);
    }
}

}  // namespace
}  // namespace rocebox::allgather::test
