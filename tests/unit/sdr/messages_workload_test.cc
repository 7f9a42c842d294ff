// SPDX-License-Identifier: BSD-3-Clause
// Reliable messages over SDR between two NICs in virtual time: every byte arrives, and as soon as the model says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/sdr/model/erasure_coding.h"
#include "runtime/component/registry.h"
#include "runtime/drives/virtual/sim.h"
#include "runtime/packet/pool.h"

namespace rocebox::sdr {
namespace {

Json simulate(const std::string& workload, const std::string& link) {
  Registry registry;
  config::Mistakes mistakes("f.yaml");
  const config::RunConfig config =
      config::load_text(fmt::format("devices:\n"
                                    "  a: {{nic: {{address: 10.0.0.1, rate: 10Gbps, dpa: {{heap: 64MiB}}}}}}\n"
                                    "  b: {{nic: {{address: 10.0.0.2, rate: 10Gbps, dpa: {{heap: 64MiB}}}}}}\n"
                                    "links:\n"
                                    "  line: {{between: [a.wire, b.wire], {}}}\n"
                                    "workloads:\n"
                                    "  w: {{type: sdr_messages, hosts: [a, b], rtt: 2ms, ack_timeout: 11, {}}}\n",
                                    link, workload),
                        "f.yaml", registry, mistakes);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  if (!mistakes.none()) return {};
  Pool pool({.small = 16384, .large = 16384, .giant = 2});
  Sim sim(config, pool, {});
  sim.open();
  sim.run();
  return sim.report()["workloads"]["w"]["details"];
}

void expect_whole(const Json& details, std::int64_t messages) {
  EXPECT_EQ(details["sent"], messages) << details;
  EXPECT_EQ(details["received"], messages);
  EXPECT_EQ(details["failed"], 0);
  EXPECT_EQ(details["mismatches"], 0);
  EXPECT_EQ(details["lost_chunks"], 0);
}

constexpr const char* kBadLine = "delay: 1ms, loss: 1%, duplicate: 1%, jitter: 20us, jitter_reorders: true";

TEST(SdrWorkload, ArriveWholeOverABadLine) {
  for (const char* layer : {"selective_repeat", "selective_repeat_nack", "erasure_coding, data: 8, parity: 4",
                            "erasure_coding, code: xor, data: 8, parity: 4"}) {
    SCOPED_TRACE(layer);
    const Json details = simulate(
        fmt::format("messages: 60, in_flight: 6, max_size: 200KiB, mtu: 1024, chunk: 4KiB, reliability: {}", layer),
        kBadLine);
    expect_whole(details, 60);
  }
}

// A message that is sent as another one ends leaves without waiting for something else to happen.
TEST(SdrWorkload, WhatIsSentAsAnotherEndsLeavesAtOnce) {
  for (const char* layer : {"erasure_coding", "erasure_coding, code: xor", "selective_repeat"}) {
    SCOPED_TRACE(layer);
    const Json details = simulate(fmt::format("messages: 300, in_flight: 4, max_size: 60KiB, mtu: 1024, chunk: 4KiB, "
                                              "data: 16, parity: 8, reliability: {}",
                                              layer),
                                  kBadLine);
    expect_whole(details, 300);
  }
}

// Two message IDs a submessage, and more of them than there are IDs; parts of Selective Repeat that are shorter than
// the message; over RC; IDs that go round often.
TEST(SdrWorkload, LongOnesGoInPartsUnderTheLimitOfIds) {
  for (const char* layer : {"reliability: erasure_coding, data: 4, parity: 2, message_ids: 16, message_bytes: 16KiB",
                            "message_ids: 4, message_bytes: 32KiB", "uc: false, message_ids: 4",
                            "message_ids: 8, message_bits: 8, offset_bits: 22, fragment_bits: 2"}) {
    SCOPED_TRACE(layer);
    const Json details = simulate(
        fmt::format("messages: 8, in_flight: 3, min_size: 300000, max_size: 1000000, mtu: 1024, chunk: 1KiB, {}",
                    layer),
        kBadLine);
    expect_whole(details, 8);
  }
}

// Threads of the DPA post what the host would.
TEST(SdrWorkload, TransmitWorkersMakeNoDifferenceToWhatArrives) {
  for (const char* layer : {"selective_repeat", "erasure_coding, data: 8, parity: 4"}) {
    SCOPED_TRACE(layer);
    const std::string what =
        fmt::format("messages: 60, in_flight: 6, max_size: 200KiB, mtu: 1024, chunk: 4KiB, reliability: {}", layer);
    const Json by_host = simulate(what, kBadLine), by_workers = simulate(what + ", dpa_senders: 3", kBadLine);
    expect_whole(by_workers, 60);
    EXPECT_EQ(by_host["dpa_packets"], 0);
    EXPECT_GT(by_workers["dpa_packets"], by_workers["packets"]);
    // Other packets of other queue pairs are lost, for they leave in another order; the means are the same within that.
    const double ratio = by_workers["mean_completion_ns"].get<double>() / by_host["mean_completion_ns"].get<double>();
    EXPECT_NEAR(ratio, 1, 0.1) << by_host << by_workers;
  }
}

TEST(SdrWorkload, WithoutALayerWhatIsLostIsCounted) {
  const Json details =
      simulate("reliability: none, messages: 50, max_size: 200KiB, mtu: 1024, chunk: 1KiB", "delay: 1ms, loss: 2%");
  EXPECT_EQ(details["received"], 50) << details;
  EXPECT_EQ(details["failed"], 0);
  EXPECT_EQ(details["mismatches"], 0);
  EXPECT_GT(details["lost_chunks"], 20);
}

// What cannot be recovered is repeated, and submessages whose parity came are not.
TEST(SdrWorkload, FallBackWhereTheCodeDoesNotSuffice) {
  const Json details = simulate(
      "reliability: erasure_coding, data: 16, parity: 1, messages: 20, max_size: 500KiB, mtu: 1024, chunk: 1KiB",
      "delay: 1ms, loss: 5%");
  expect_whole(details, 20);
  EXPECT_GT(details["fallbacks"], 5);
  EXPECT_GT(details["recovered_chunks"], 20);
}

TEST(SdrWorkload, GiveUpAtTheGlobalTimeout) {
  const Json details = simulate("messages: 3, in_flight: 1, global_timeout: 30ms, max_size: 100KiB",
                                "delay: 1ms, forward: {loss: 100%}");
  EXPECT_EQ(details["failed"], 6) << details;
}

// Parts of a message that has failed still have their numbers: what comes behind it does not go into its buffers. All
// messages are as long, so nothing else would tell.
TEST(SdrWorkload, WhatFollowsAMessageThatFailedGoesWhereItBelongs) {
  struct Case {
    const char *layer, *link;
  };
  for (const Case& one : {Case{"selective_repeat", "delay: 1ms, reverse: {loss: 30%}"},
                          Case{"selective_repeat_nack", "delay: 1ms, forward: {loss: 20%}"}}) {
    SCOPED_TRACE(one.layer);
    const Json details = simulate(
        fmt::format(
            "messages: 60, in_flight: 4, global_timeout: 12ms, min_size: 128KiB, max_size: 128KiB, message_ids: 16, "
            "message_bytes: 16KiB, mtu: 1024, chunk: 1KiB, reliability: {}",
            one.layer),
        one.link);
    EXPECT_GT(details["failed"], 0) << details;
    EXPECT_EQ(details["mismatches"], 0) << details;
    EXPECT_EQ(details["sent"], 60);
    EXPECT_EQ(details["received"], 60);
    EXPECT_EQ(details["error"].get<std::string>().find("another length"), std::string::npos) << details;
  }
}

// Buffers stand posted for longer than their messages are under way, so a receiver gives up first: its sender must not
// be told that all has come.
TEST(SdrWorkload, WhatAReceiverHasGivenUpIsNoSuccessOfItsSender) {
  for (const char* loss : {"10%", "15%"}) {
    const Json details = simulate(
        "messages: 40, in_flight: 16, global_timeout: 16ms, min_size: 100KiB, max_size: 200KiB, "
        "mtu: 1024, chunk: 64KiB",
        fmt::format("delay: 1ms, forward: {{loss: {}}}", loss));
    const auto failed = details["failed"].get<std::int64_t>(),
               receives = details["failed_receives"].get<std::int64_t>();
    EXPECT_GT(receives, 5) << details;
    EXPECT_LT(receives, 40) << details;
    EXPECT_GE(failed - receives, receives) << details;
    EXPECT_EQ(details["mismatches"], 0);
  }
}

// One message after the other, each chunk a packet, losses on the way of the data alone: what the model assumes.
TEST(SdrWorkload, TakeAsLongAsTheModelSays) {
  constexpr std::uint32_t kChunks = 256;
  const double wire = (1024 + 82 + 24) * 8 / 10e9;  // with headers and what a frame takes on the wire
  for (const double drop : {0.001, 0.02}) {
    const Channel channel{1024 * 8 / wire, 2e-3, 1024, drop};
    const std::string common =
        "messages: 100, in_flight: 1, min_size: 256KiB, max_size: 256KiB, mtu: 1024, chunk: 1KiB, poll: 10us, ";
    const std::string link = fmt::format("delay: 1ms, forward: {{loss: {}%}}", drop * 100);
    const auto ratio = [&](const std::string& layer, double model) {
      const Json details = simulate(common + layer, link);
      expect_whole(details, 100);
      return details["mean_completion_ns"].get<double>() / 1e9 / model;
    };
    EXPECT_NEAR(ratio("reliability: selective_repeat", SelectiveRepeat(channel, 3 * channel.rtt).mean(kChunks)), 1, 0.1)
        << drop;
    EXPECT_NEAR(ratio("reliability: erasure_coding, bandwidth: 9Gbps",
                      ErasureCoding(channel, {CodeKind::kMds, 32, 8}, 3 * channel.rtt, 1).mean(kChunks)),
                1, 0.1)
        << drop;
  }
}

}  // namespace
}  // namespace rocebox::sdr
