// SPDX-License-Identifier: BSD-3-Clause
// Captures that others have made, and streams that end because they are told to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/kernel/kernel.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

using Status = CaptureReader::Status;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string pcap_header(std::uint32_t link_type) {
  return raw(0xA1B23C4Du) + raw(std::uint16_t{2}) + raw(std::uint16_t{4}) + std::string(8, '\0') + raw(65535u) +
         raw(link_type);
}
std::string pcap_record(const std::string& bytes, std::size_t wire) {
  return raw(1u) + raw(2u) + raw(static_cast<std::uint32_t>(bytes.size())) + raw(static_cast<std::uint32_t>(wire)) +
         bytes;
}

class CaptureInput : public testing::Test {
 protected:
  test::Contents read(const std::string& bytes) {
    test::write_bytes(folder / "x", bytes);
    return test::read_capture(folder / "x");
  }
  test::TemporaryFolder folder;
};

// The Ethernet frame is 60 bytes of 'f'; `front` and `back` stand around it.
TEST_F(CaptureInput, LinkTypesThatHoldAnEthernetFrame) {
  struct Row {
    std::uint32_t link_type;
    std::size_t front, back;
  };
  constexpr std::uint32_t kFcsPresent = 1u << 26, kTwoWords = 2u << 28;
  const Row rows[] = {
      {1, 0, 0},  {1 | kFcsPresent | kTwoWords, 0, 4}, {1 | kTwoWords, 0, 0}, {240, 4, 4}, {241, 12, 4}, {274, 8, 4},
      {282, 4, 0}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.link_type);
    const std::string frame(60, 'f');
    const std::string record = std::string(row.front, 'h') + frame + std::string(row.back, 'c');
    const test::Contents contents =
        read(pcap_header(row.link_type) + pcap_record(record, record.size()) +
             pcap_record(record.substr(0, row.front + 40), record.size()) + pcap_record(record.substr(0, 2), 3));
    ASSERT_EQ(contents.records.size(), 3u);
    EXPECT_EQ(contents.records[0].bytes, std::vector<std::uint8_t>(60, 'f'));
    EXPECT_EQ(contents.records[0].wire_bytes, 60u);
    EXPECT_EQ(contents.records[1].bytes, std::vector<std::uint8_t>(40, 'f')) << "snapped before the FCS";
    EXPECT_EQ(contents.records[1].wire_bytes, 60u);
    EXPECT_EQ(contents.end, Status::kEnd);
  }
}

TEST_F(CaptureInput, LinkTypesThatDoNotAreRefusedWithTheReason) {
  struct Row {
    std::uint32_t link_type;
    const char* words;
  };
  for (const Row& row : {Row{113, "-i INTERFACE"},
                         {276, "-i INTERFACE"},
                         {281, "switch's tag"},
                         {284, "switch's tag"},
                         {285, "switch's tag"},
                         {197, "Endace"},
                         {105, "none with whole Ethernet frames"}}) {
    try {
      read(pcap_header(row.link_type));
      FAIL() << row.link_type;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(row.words), std::string::npos) << error.what();
    }
  }
}

TEST_F(CaptureInput, ATimeBefore1970IsNamedAsThatWithItsRecord) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    CaptureWriter writer(folder / "a.pcapng", {"x"});
    test::write_record(writer, pool, {-1'000'000'000, std::vector<std::uint8_t>(30), 30});
    writer.finish();
  }
  std::string bytes = test::read_bytes(folder / "a.pcapng");
  // if_tsresol and its end become if_tsoffset = -3 s over microseconds, in a block of equal size.
  const std::size_t option = bytes.find(std::string("\x09\x00\x01\x00\x09", 5));
  ASSERT_NE(option, std::string::npos);
  const std::size_t name = option - 8;
  bytes.replace(name, 16,
                raw(std::uint16_t{14}) + raw(std::uint16_t{8}) + raw(std::int64_t{-3}) + std::string(4, '\0'));
  bytes.replace(bytes.size() - 64 + 12, 8, std::string(8, '\0'));
  test::write_bytes(folder / "b.pcapng", bytes);
  CaptureReader reader(folder / "b.pcapng");
  CaptureRecord record;
  EXPECT_EQ(reader.next(record), Status::kBroken);
  EXPECT_NE(reader.error().find("before 1970"), std::string::npos) << reader.error();
  EXPECT_EQ(reader.records(), 0u) << "the first record is the broken one";
}

TEST_F(CaptureInput, AFilterSeesFramesWithoutTheirTags) {
  std::string frame = std::string(12, '\0') + "\x08\x06" + std::string(46, '\0');
  const std::string tag("\x81\x00\x00\x64", 4);
  const CaptureFilter arp("arp"), not_arp("not arp"), vlan("vlan 100"), raw_type("ether [ 12 : 2 ] = 0x8100");
  for (unsigned tags = 0; tags < 5; tags++, frame.insert(12, tag)) {
    const std::vector<std::uint8_t> bytes(frame.begin(), frame.end());
    const CaptureRecord record{0, static_cast<std::uint32_t>(bytes.size()), bytes};
    EXPECT_EQ(arp.matches(record), tags <= 3) << tags;
    EXPECT_EQ(not_arp.matches(record), tags > 3) << tags;
    EXPECT_EQ(vlan.matches(record), tags > 0) << tags;
    EXPECT_EQ(raw_type.matches(record), tags > 0) << tags;
    for (std::size_t size = 0; size < bytes.size(); size++)  // snapped anywhere
      arp.matches({0, record.wire_bytes, std::span(bytes).first(size)});
  }
}

TEST_F(CaptureInput, AStreamEndsWhenItIsToldTo) {
  for (const std::size_t size : {0u, 10u, 24u, 30u, 100u, 110u}) {  // one record ends at 24 + 16 + 60
    SCOPED_TRACE(size);
    const std::string bytes = pcap_header(1) + pcap_record(std::string(60, 'f'), 60) + std::string(16, '\0');
    const std::string fifo = folder / ("fifo" + std::to_string(size));
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const int writer = open(fifo.c_str(), O_RDWR);
    ASSERT_EQ(write(writer, bytes.data(), size), static_cast<ssize_t>(size));
    StopRequest stop;
    // The first wait that finds nothing to read asks for the end, as a signal would.
    unsigned waits = 0;
    CaptureReader reader(fifo, {&stop, [&] {
                                  waits++;
                                  stop.request();
                                  return true;
                                }});
    CaptureRecord record;
    if (size >= 100) {
      EXPECT_EQ(reader.next(record), Status::kPacket);
    }
    EXPECT_EQ(reader.next(record), Status::kEnd);
    EXPECT_EQ(reader.next(record), Status::kEnd);
    EXPECT_EQ(waits, 1u);
    close(writer);
  }
}

}  // namespace
}  // namespace rocebox
