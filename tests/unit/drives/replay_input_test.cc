// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay_input.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

using test::Record;

class ReplayInputTest : public testing::Test {
 protected:
  std::string capture(const std::string& name, const std::vector<Nanos>& times, std::uint8_t mark,
                      std::uint32_t size = 60) {
    CaptureWriter writer(folder / name, {"x"});
    for (Nanos at : times) {
      Record record{at, std::vector<std::uint8_t>(size, mark), size};
      if (size >= 14) record.bytes[12] = 8, record.bytes[13] = mark % 2 ? 6 : 0;  // odd marks are ARP
      test::write_record(writer, pool, record);
    }
    writer.finish();
    return folder / name;
  }
  static FabricPort resolve(const config::PortName& name) { return {0, static_cast<Port>(name.port[0] - 'a')}; }
  static std::vector<std::pair<Nanos, int>> all(ReplayInput& input) {
    input.open();
    std::vector<std::pair<Nanos, int>> records;
    CaptureRecord record;
    FabricPort to{};
    while (input.next(record, to)) records.emplace_back(record.at, record.bytes.back() * 10 + to.port);
    EXPECT_FALSE(input.next(record, to)) << "the end stays the end";
    return records;
  }
  test::TemporaryFolder folder;
  Pool pool{{.small = 64, .large = 16, .giant = 2}};
};

TEST_F(ReplayInputTest, MergesByTimeAndEqualTimesByOrderOfTheFiles) {
  const std::string x = capture("x.pcap", {10, 20, 20, 40}, 1), y = capture("y.pcapng", {5, 20, 30}, 2);
  ReplayInput input({{{"d", "b"}, {y}, "", ""}, {{"d", "a"}, {x}, "", ""}}, resolve);
  EXPECT_EQ(all(input),
            (std::vector<std::pair<Nanos, int>>{{5, 21}, {10, 10}, {20, 21}, {20, 10}, {20, 10}, {30, 21}, {40, 10}}));
  EXPECT_EQ(input.origin(), 5);
}

TEST_F(ReplayInputTest, RewoundItBeginsAgainAndCountsOn) {
  const std::string x = capture("x.pcap", {10, 20}, 1), y = capture("y.pcapng", {15}, 2);
  ReplayInput input({{{"d", "a"}, {x}, "", ""}, {{"d", "b"}, {y}, "", ""}}, resolve);
  const auto once = all(input);
  input.rewind();
  CaptureRecord record;
  FabricPort to{};
  for (const auto& [at, mark] : once) {
    ASSERT_TRUE(input.next(record, to));
    EXPECT_EQ(record.at, at);
    EXPECT_EQ(record.bytes.back() * 10 + to.port, mark);
  }
  EXPECT_FALSE(input.next(record, to));
  Json report;
  input.report(report);
  EXPECT_EQ(report[0]["packets"], 4);
  EXPECT_EQ(report[0]["time_went_back"], 0);
}

TEST_F(ReplayInputTest, TimeThatGoesBackArrivesWithTheLatestAndIsCounted) {
  const std::string x = capture("x.pcap", {100, 90, 95, 110}, 1);
  ReplayInput input({{{"d", "a"}, {x}, "", ""}}, resolve);
  EXPECT_EQ(all(input), (std::vector<std::pair<Nanos, int>>{{100, 10}, {100, 10}, {100, 10}, {110, 10}}));
  Json report;
  input.report(report);
  EXPECT_EQ(report[0]["time_went_back"], 2);
  EXPECT_EQ(report[0]["packets"], 4);
  EXPECT_EQ(report[0]["last_ns"], 10);
}

TEST_F(ReplayInputTest, OneFileForTwoPortsGoesToTheFirstFilterThatMatches) {
  const std::string x = capture("x.pcap", {1}, 1);
  {
    CaptureWriter writer(folder / "mixed.pcap", {});
    for (std::uint8_t mark = 1; mark <= 3; mark++) {
      Record record{mark, std::vector<std::uint8_t>(60, mark), 60};
      record.bytes[12] = 8, record.bytes[13] = mark % 2 ? 6 : 0;
      test::write_record(writer, pool, record);
    }
    writer.finish();
  }
  const std::string mixed = folder / "mixed.pcap";
  ReplayInput input({{{"d", "a"}, {mixed}, "arp", ""}, {{"d", "b"}, {mixed}, "", ""}}, resolve);
  EXPECT_EQ(all(input), (std::vector<std::pair<Nanos, int>>{{1, 10}, {2, 21}, {3, 30}}));
  ReplayInput arps({{{"d", "a"}, {mixed}, "arp", ""}}, resolve);
  EXPECT_EQ(all(arps).size(), 2u);
  Json report;
  arps.report(report);
  EXPECT_EQ(report[0]["unselected"], 1);
  EXPECT_THROW(ReplayInput({{{"d", "a"}, {mixed}, "nonsense (", ""}}, resolve), ConfigError);
}

TEST_F(ReplayInputTest, EmptyFilesAndCutFiles) {
  const std::string none = capture("none.pcap", {}, 1), x = capture("x.pcap", {7, 8}, 1);
  test::write_bytes(folder / "cut.pcap", test::read_bytes(x).substr(0, 24 + 76 + 30));
  ReplayInput empty({{{"d", "a"}, {none}, "", ""}}, resolve);
  EXPECT_TRUE(all(empty).empty());
  EXPECT_EQ(empty.origin(), 0);
  ReplayInput cut({{{"d", "a"}, {folder / "cut.pcap", none}, "", ""}}, resolve);
  EXPECT_EQ(all(cut).size(), 1u);
  Json report;
  cut.report(report);
  EXPECT_EQ(report[0]["cut"], true);
  EXPECT_EQ(report[1]["cut"], false);
}

TEST_F(ReplayInputTest, ABrokenFileEndsTheRunWithItsNameAndRecord) {
  std::string bytes = test::read_bytes(capture("x.pcap", {7, 8, 9}, 1));
  bytes.replace(24 + 76 + 8, 4, "\xFF\xFF\xFF\x7F");
  test::write_bytes(folder / "broken.pcap", bytes);
  ReplayInput input({{{"d", "a"}, {folder / "broken.pcap"}, "", ""}}, resolve);
  input.open();
  CaptureRecord record;
  FabricPort to{};
  EXPECT_TRUE(input.next(record, to));
  try {
    input.next(record, to);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("broken.pcap: record 2"), std::string::npos) << error.what();
  }
}

TEST_F(ReplayInputTest, ALongRecordIsHeldCutWithItsWireLength) {
  // Written by hand: no packet is this long.
  std::string bytes = test::read_bytes(capture("x.pcap", {}, 1));
  const std::uint32_t head[4] = {0, 9, 100'000, 100'000};
  bytes.append(reinterpret_cast<const char*>(head), sizeof head);
  bytes.append(100'000, '\x01');
  test::write_bytes(folder / "long.pcap", bytes);
  ReplayInput input({{{"d", "a"}, {folder / "long.pcap"}, "", ""}}, resolve);
  input.open();
  CaptureRecord record;
  FabricPort to{};
  ASSERT_TRUE(input.next(record, to));
  EXPECT_EQ(record.bytes.size(), kPacketBytesMax);
  EXPECT_EQ(record.wire_bytes, 100'000u);
  EXPECT_EQ(record.at, 9);
  Json report;
  input.report(report);
  EXPECT_EQ(report[0]["too_long"], 1);
}

}  // namespace
}  // namespace rocebox
