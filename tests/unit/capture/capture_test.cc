// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/kernel/kernel.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

using test::Record;
using Status = CaptureReader::Status;

class Capture : public testing::TestWithParam<const char*> {
 protected:
  std::string file(const std::string& stem = "a") const { return folder / (stem + GetParam()); }
  std::string written(const std::vector<Record>& records) {
    CaptureWriter writer(file(), {"tap.host"});
    for (const Record& record : records) test::write_record(writer, pool, record);
    writer.finish();
    return file();
  }
  test::TemporaryFolder folder;
  Pool pool{{.small = 64, .large = 16, .giant = 2}};
};

std::vector<Record> samples() {
  std::vector<Record> records;
  for (std::uint32_t size : {14u, 60u, 61u, 62u, 63u, 1500u, 9000u})
    records.push_back(
        {1'700'000'000'123'456'789 + size, std::vector<std::uint8_t>(size, static_cast<std::uint8_t>(size)), size});
  records.push_back({1'700'000'001'999'999'999, std::vector<std::uint8_t>(64, 7), 4096});  // snapped
  records.push_back({2'147'483'647'000'000'001, std::vector<std::uint8_t>(20, 8), 20});
  records.push_back({0, std::vector<std::uint8_t>(20, 9), 0xFFFFFFFF});
  return records;
}

TEST_P(Capture, WhatIsWrittenReadsBackToTheNanosecond) {
  const auto contents = test::read_capture(written(samples()));
  EXPECT_EQ(contents.records, samples());
  EXPECT_EQ(contents.end, Status::kEnd);
  EXPECT_EQ(folder.files(), 1u);
}

TEST_P(Capture, NoPacketsIsACapture) {
  const auto contents = test::read_capture(written({}));
  EXPECT_TRUE(contents.records.empty());
  EXPECT_EQ(contents.end, Status::kEnd);
}

TEST_P(Capture, AppearsUnderItsNameWhenItIsWhole) {
  test::write_bytes(file(), "old");
  {
    CaptureWriter writer(file(), {"x"});
    test::write_record(writer, pool, samples()[0]);
    EXPECT_EQ(test::read_bytes(file()), "old");
    EXPECT_EQ(writer.packets(), 1u);
    EXPECT_EQ(writer.bytes(), 14u);
  }
  EXPECT_EQ(test::read_bytes(file()), "old") << "an abandoned writer leaves the old file";
  EXPECT_EQ(folder.files(), 1u) << "and no .part";
  written(samples());
  EXPECT_NE(test::read_bytes(file()), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST_P(Capture, PlacesThatCannotBeWrittenAreConfigErrors) {
  EXPECT_THROW(CaptureWriter(folder / ("none/x" + std::string(GetParam())), {}), ConfigError);
  std::filesystem::create_directory(file());
  EXPECT_THROW(CaptureWriter(file(), {}), ConfigError);
  EXPECT_THROW(CaptureWriter("/proc/nowhere" + std::string(GetParam()), {}), ConfigError);
  EXPECT_EQ(folder.files(), 1u);
}

TEST_P(Capture, AFullDiskIsReportedAtTheEndAndLeavesNothing) {
  std::filesystem::create_symlink("/dev/full", file());
  {
    CaptureWriter writer(file(), {"x"});
    test::write_record(writer, pool, samples()[0]);
    EXPECT_THROW(writer.finish(), std::runtime_error);
    EXPECT_NE(writer.file().failed().find("No space left"), std::string::npos) << writer.file().failed();
  }
  {
    CaptureWriter writer(file("b"), {"x"});
    std::filesystem::remove(file("b") + ".part");  // finish() cannot give it its name
    EXPECT_THROW(writer.finish(), std::runtime_error);
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST_P(Capture, AFullDiskIsReportedEarlyInALongRun) {
  std::filesystem::create_symlink("/dev/full", file());
  CaptureWriter writer(file(), {"x"});
  for (int i = 0; i < 300 && writer.file().failed().empty(); i++)
    test::write_record(writer, pool, {0, std::vector<std::uint8_t>(9000), 9000});
  EXPECT_FALSE(writer.file().failed().empty());
}

INSTANTIATE_TEST_SUITE_P(Formats, Capture, testing::Values(".pcap", ".pcapng"),
                         [](const auto& tested) { return std::string(tested.param).substr(1); });

TEST(CaptureReader, APcapCutAnywhereIsReadUpToTheCut) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  std::vector<Record> records(3, {5, std::vector<std::uint8_t>(30, 1), 30});
  {
    CaptureWriter writer(folder / "a.pcap", {});
    for (const Record& record : records) test::write_record(writer, pool, record);
    writer.finish();
  }
  const std::string bytes = test::read_bytes(folder / "a.pcap");
  for (std::size_t size = 0; size <= bytes.size(); size++) {
    test::write_bytes(folder / "cut.pcap", bytes.substr(0, size));
    if (size < 24) {
      EXPECT_THROW(CaptureReader(folder / "cut.pcap"), ConfigError) << size;
      continue;
    }
    const auto contents = test::read_capture(folder / "cut.pcap");
    EXPECT_EQ(contents.records.size(), (size - 24) / 46) << size;
    EXPECT_EQ(contents.end, (size - 24) % 46 ? Status::kCut : Status::kEnd) << size;
  }
}

TEST(CaptureReader, ARecordThatIsNoneIsBroken) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    CaptureWriter writer(folder / "a.pcap", {});
    for (int i = 0; i < 3; i++) test::write_record(writer, pool, {i, std::vector<std::uint8_t>(30), 30});
    writer.finish();
  }
  std::string bytes = test::read_bytes(folder / "a.pcap");
  bytes.replace(24 + 46 + 8, 4, "\xFF\xFF\xFF\x7F");
  test::write_bytes(folder / "b.pcap", bytes);
  const auto contents = test::read_capture(folder / "b.pcap");
  EXPECT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.end, Status::kBroken);
}

TEST(CaptureReader, WhatIsNoCaptureIsAConfigErrorThatNamesTheFile) {
  test::TemporaryFolder folder;
  test::write_bytes(folder / "empty", "");
  test::write_bytes(folder / "text", "devices: {}\n# not a capture at all\n");
  std::string linux_cooked("\x4d\x3c\xb2\xa1\x02\x00\x04\x00", 8);
  linux_cooked +=
      std::string(8, '\0') + std::string("\xFF\xFF\0\0", 4) + std::string("\x71\0\0\0", 4);  // DLT_LINUX_SLL
  test::write_bytes(folder / "cooked", linux_cooked);
  struct Row {
    std::string path;
    const char* words;
  };
  const Row rows[] = {{folder / "none", "No such file"},
                      {folder / "empty", "no capture"},
                      {folder / "text", "neither pcap nor pcapng"},
                      {folder / ".", "folder"},
                      {folder / "cooked", "LINUX_SLL (`tcpdump -i any`) has no Ethernet header"}};
  for (const Row& row : rows) {
    try {
      CaptureReader reader(row.path);
      FAIL() << row.path;
    } catch (const ConfigError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(row.path)) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.words), std::string::npos) << error.what();
    }
  }
}

TEST(CaptureFilter, RefusesNonsenseWithLibpcapsWords) {
  EXPECT_THROW(CaptureFilter("ip src 300.0.0.1"), ConfigError);
  EXPECT_THROW(CaptureFilter("no such word ("), ConfigError);
  const CaptureFilter everything(""), arp("arp"), udp("udp port 4791");
  std::vector<std::uint8_t> bytes(60);
  bytes[12] = 8, bytes[13] = 6;
  const CaptureRecord record{0, 60, bytes};
  EXPECT_TRUE(everything.matches(record));
  EXPECT_TRUE(arp.matches(record));
  EXPECT_FALSE(udp.matches(record));
  EXPECT_FALSE(arp.matches({0, 60, {}})) << "no bytes held";
}

TEST(CaptureWriter, CommentsAndInterfacesOfAPcapng) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    CaptureWriter writer(folder / "a.pcapng", {"tap.host", "tap.wire"});
    for (std::size_t length : {0u, 1u, 2u, 3u, 4u, 5u, 65535u, 70000u})
      test::write_record(writer, pool, {1, std::vector<std::uint8_t>(15, 1), 15}, 1, std::string(length, 'c'));
    writer.finish();
  }
  EXPECT_EQ(test::read_capture(folder / "a.pcapng").records.size(), 8u) << "libpcap walks every block";
  const std::string bytes = test::read_bytes(folder / "a.pcapng");
  auto u32 = [&](std::size_t at) {
    std::uint32_t v;
    std::memcpy(&v, bytes.data() + at, 4);
    return v;
  };
  std::vector<std::size_t> comments;
  unsigned interfaces = 0;
  for (std::size_t at = 0; at < bytes.size(); at += u32(at + 4)) {
    ASSERT_EQ(u32(at + 4) % 4, 0u);
    ASSERT_EQ(u32(at + 4), u32(at + u32(at + 4) - 4)) << "both lengths of a block agree";
    interfaces += u32(at) == 1;
    if (u32(at) != 6) continue;
    EXPECT_EQ(u32(at + 8), 1u) << "the interface";
    const std::size_t option = at + 28 + 16;
    if (option + 4 == at + u32(at + 4)) {
      comments.push_back(0);
      continue;
    }
    comments.push_back(u32(option) >> 16);
    EXPECT_EQ(u32(option) & 0xFFFF, 1u);
  }
  EXPECT_EQ(interfaces, 2u);
  EXPECT_EQ(comments, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 65535, 65535}));
}

}  // namespace
}  // namespace rocebox
