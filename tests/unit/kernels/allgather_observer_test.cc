// SPDX-License-Identifier: BSD-3-Clause
// The observer of multicast collectives: chunks by hand, and random ones against sets of numbers.
#include "kernels/allgather/observer/observer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "runtime/roce/multicast.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/harness.h"

namespace rocebox::allgather::observer_test {
namespace {

constexpr Nanos kUs = kMicrosecond;

struct Chunk {
  std::uint8_t group = 1, source = 1;
  std::uint32_t number = 0, collective = 0, generation = 0;
  std::size_t bytes = 100;
};

struct Box : test::KernelBox {
  explicit Box(const ObserverConfig& config = {})
      : KernelBox([&](Stats& s) { return std::make_unique<Observer>(config, s); }), layout(config) {}

  roce::PacketSpec spec(const Chunk& chunk) {
    roce::PacketSpec spec;
    spec.opcode = IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE;
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, chunk.source), roce::ipv4(239, 1, 0, chunk.group)};
    spec.destination_qp = 0xFFFFFF, spec.source_qp = 0x100u + chunk.source;
    const std::uint64_t tag = std::uint64_t{chunk.generation} << layout.collective_bits | chunk.collective;
    spec.immediate = static_cast<std::uint32_t>(tag << layout.chunk_bits | chunk.number);
    spec.payload = {zeros, chunk.bytes};
    return spec;
  }
  void at(Nanos now, const Chunk& chunk) { send(now, 0, spec(chunk)); }
  void numbers(std::initializer_list<std::uint32_t> all) {
    for (const std::uint32_t number : all) at(clock += kUs, {.number = number});
  }
  Json report() {
    Json json = Json::object();
    JsonReport out_report(json);
    kernel->report(out_report);
    return json;
  }
  std::uint64_t count(std::string_view name) { return stats.read(std::string(name)); }

  ObserverConfig layout;
  std::uint8_t zeros[4096] = {};
  Nanos clock = 0;
};

TEST(AllgatherObserver, TellsWhatCameAndWhatDidNot) {
  Box box;
  box.numbers({100, 101, 104, 102, 104, 106, 106});
  const Json report = box.report();
  const Json& row = report["collectives"][0];
  EXPECT_EQ(row["chunks"], 5);
  EXPECT_EQ(row["missing"], 2) << "103 and 105";
  EXPECT_EQ(row["duplicates"], 2);
  EXPECT_EQ(row["out_of_order"], 1);
  EXPECT_EQ(row["sources"], 1);
  EXPECT_EQ(row["bytes"], 500);
  EXPECT_EQ(row["first_at_ns"], 1 * kUs);
  EXPECT_EQ(row["last_at_ns"], 7 * kUs);
  EXPECT_EQ(report["streams"][0]["gaps"].dump(), R"([{"chunk_number":103,"count":1},{"chunk_number":105,"count":1}])");
  std::string events;
  for (const Json& event : report["events"])
    events += event["what"].get<std::string>() + " " + std::to_string(event["chunk_number"].get<int>()) + "+" +
              std::to_string(event["chunks"].get<int>()) + " ";
  EXPECT_EQ(events, "skipped 102+2 out_of_order 102+1 duplicate 104+1 skipped 105+1 duplicate 106+1 ");
  EXPECT_EQ(box.out.size(), 7u) << "all pass";
}

TEST(AllgatherObserver, KnowsWhatIsMissingAtTheEndsWhereABlockHasASize) {
  ObserverConfig config;
  config.block_chunks = 8;
  Box box(config);
  box.numbers({17, 18, 20});
  EXPECT_EQ(box.report()["collectives"][0]["missing"], 5);
}

TEST(AllgatherObserver, LateIsWhatComesBehindTheCutoffOfItsCollective) {
  ObserverConfig config;
  config.cutoff = 10 * kUs;
  Box box(config);
  box.at(100 * kUs, {.source = 1, .number = 0});
  box.at(109 * kUs, {.source = 2, .number = 8});
  box.at(110 * kUs, {.source = 2, .number = 9});
  box.at(111 * kUs, {.source = 2, .number = 8});
  box.at(111 * kUs, {.source = 2, .number = 8, .collective = 1});
  const Json report = box.report();
  EXPECT_EQ(report["collectives"][0]["late"], 1) << "chunk 9; what comes again is a duplicate";
  EXPECT_EQ(report["collectives"][1]["late"], 0);
  EXPECT_EQ(report["collectives"][0]["sources"], 2);
}

TEST(AllgatherObserver, CorruptAndStrangePacketsAreNotReceived) {
  Box box;
  std::vector<std::uint8_t> bad = test::frame(box.spec({.number = 3}));
  bad[60] ^= 1;
  box.send(kUs, 0, bad);
  box.numbers({4});
  roce::PacketSpec other = box.spec({.number = 5});
  other.opcode = IBV_OPCODE_UD_SEND_ONLY;
  box.send(2 * kUs, 0, other);
  other = box.spec({.number = 5});
  other.underlay.addresses.destination = roce::ipv4(10, 0, 0, 9);
  box.send(3 * kUs, 0, other);
  other = box.spec({.number = 5});
  other.opcode = IBV_OPCODE_UC_RDMA_WRITE_LAST_WITH_IMMEDIATE;
  box.send(4 * kUs, 0, other);
  const std::vector<std::uint8_t> whole = test::frame(box.spec({.number = 6}));
  box.send(5 * kUs, 0, std::span(whole).first(80), static_cast<std::uint32_t>(whole.size()));
  const Json report = box.report();
  EXPECT_EQ(box.count("rx_icrc_encapsulated"), 1u);
  EXPECT_EQ(box.count("without_immediate"), 1u);
  EXPECT_EQ(box.count("uc_parts"), 1u);
  EXPECT_EQ(box.count("icrc_unverified"), 1u) << "headers alone: received, and said so";
  EXPECT_EQ(report["collectives"][0]["chunks"], 2);
  EXPECT_EQ(report["collectives"][0]["missing"], 1);
  EXPECT_EQ(box.out.size(), 6u);
}

TEST(AllgatherObserver, ASilentNumberBeginsAnew) {
  ObserverConfig config;
  config.restart_after = kMillisecond;
  Box box(config);
  box.numbers({0, 2, 2});
  box.clock += 2 * kMillisecond;
  box.numbers({0, 1});
  const Json report = box.report();
  EXPECT_EQ(report["streams"][0]["chunks"], 2);
  EXPECT_EQ(report["streams"][0]["duplicates"], 0);
  EXPECT_EQ(report["streams"][0]["restarts"], 1);
  EXPECT_EQ(report["collectives"][0]["first_at_ns"], 2 * kMillisecond + 4 * kUs);
  EXPECT_EQ(box.count("missing_at_restart"), 1u);
  EXPECT_EQ(box.count("duplicates"), 1u);
}

TEST(AllgatherObserver, FullTablesCountAndPass) {
  ObserverConfig config;
  config.streams = 2, config.collectives = 2, config.groups = 2, config.window = 64, config.events = 1;
  Box box(config);
  box.at(1, {.group = 1, .number = 1});
  box.at(1, {.group = 2, .number = 1});
  box.at(1, {.group = 3, .number = 1});
  box.at(1, {.group = 1, .source = 3, .number = 1});
  box.at(1, {.group = 1, .number = 1, .collective = 1});
  box.at(1, {.group = 1, .number = 1, .collective = 2});
  box.at(1, {.group = 1, .number = 65});
  box.at(1, {.group = 1, .number = 1});
  EXPECT_EQ(box.count("groups_full"), 1u);
  EXPECT_EQ(box.count("streams_full"), 2u);
  EXPECT_EQ(box.count("collectives_full"), 1u);
  EXPECT_EQ(box.count("beyond_window"), 1u) << "64 away";
  EXPECT_EQ(box.report()["events"].size(), 1u);
  EXPECT_EQ(box.report()["events_unlisted"], 1);
  EXPECT_EQ(box.out.size(), 8u);
}

// 1000 bytes at 8 Gbps are copied in 1000 ns, and their slot is free 500 ns later.
TEST(AllgatherObserver, StagingHoldsWhatIsNotCopied) {
  ObserverConfig config;
  config.staging_slots = 3, config.copy_rate = 8'000'000'000, config.copy_latency = 500, config.slot_bytes = 1040;
  Box box(config);
  std::uint32_t number = 0;
  for (const Nanos at : {0, 100, 200, 300, 1500, 10'000}) box.at(20'000 + at, {.number = number++, .bytes = 1000});
  const Json row = box.report()["groups"][0];
  // Free at 1500, 2500, 3500; none for the fourth; the fifth comes as the first is free: 3000 + 1000 + 500; 11500.
  EXPECT_EQ(row["slots_max"], 3);
  EXPECT_EQ(row["staging_bytes_max"], 3 * 1040);
  EXPECT_EQ(row["overruns"], 1);
  EXPECT_EQ(row["held_max_ns"], 3300);
  EXPECT_EQ(row["held_mean_ns"], (1500 + 2400 + 3300 + 3000 + 1500) / 5);
}

// What sets of numbers say of the same packets.
struct Model {
  std::set<std::uint32_t> came;
  std::uint32_t highest = 0;
  std::int64_t duplicates = 0, out_of_order = 0;
  void add(std::uint32_t number) {
    if (!came.empty() && number < highest && !came.contains(number)) out_of_order++;
    if (!came.insert(number).second) duplicates++;
    highest = std::max(highest, number);
  }
  std::int64_t missing() const { return *came.rbegin() - *came.begin() + 1 - static_cast<std::int64_t>(came.size()); }
};

TEST(AllgatherObserver, AgreesWithSetsOfNumbers) {
  for (unsigned seed = 1; seed <= 20; seed++) {
    std::minstd_rand random(seed);
    std::vector<Chunk> chunks;
    for (std::uint8_t group = 0; group < 2; group++)
      for (std::uint8_t source = 1; source <= 5; source++)
        for (std::uint32_t use = 0; use < 3; use++)
          for (std::uint32_t i = 0; i < 100; i++)
            for (unsigned copies = random() % 10 == 0 ? 0 : 1 + (random() % 8 == 0); copies > 0; copies--)
              chunks.push_back({group, source, source * 1000u + i, use % 2, use / 2, 64});
    // Chunks get out of order by up to so many.
    for (std::size_t i = 0; i < chunks.size(); i++)
      std::swap(chunks[i], chunks[std::min(chunks.size() - 1, i + random() % (seed % 4 == 0 ? chunks.size() : 8))]);
    ObserverConfig config;
    config.window = 128;
    Box box(config);
    std::map<std::tuple<unsigned, unsigned, unsigned, unsigned>, Model> models;
    for (const Chunk& chunk : chunks) {
      box.at(box.clock += 100, chunk);
      models[{chunk.group, chunk.source, chunk.collective, chunk.generation}].add(chunk.number);
    }
    const Json report = box.report();
    ASSERT_EQ(report["streams"].size(), models.size());
    for (const Json& row : report["streams"]) {
      const auto group = row["group"].get<std::string>(), source = row["source"].get<std::string>();
      const Model& model = models.at({group.back() - '0', source.back() - '0', row["collective_number"].get<unsigned>(),
                                      row["generation_number"].get<unsigned>()});
      ASSERT_EQ(row["chunks"], model.came.size());
      ASSERT_EQ(row["lowest_number"], *model.came.begin());
      ASSERT_EQ(row["highest_number"], *model.came.rbegin());
      ASSERT_EQ(row["missing"], model.missing());
      ASSERT_EQ(row["duplicates"], model.duplicates);
      ASSERT_EQ(row["out_of_order"], model.out_of_order);
    }
  }
}

}  // namespace
}  // namespace rocebox::allgather::observer_test
