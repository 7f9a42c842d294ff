// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/kernel/kernel.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

// A pcapng that ends inside a block is cut, as a pcap is: libpcap's words are "truncated pcapng dump file".
TEST(CaptureEdge, ACutPcapngIsReadUpToTheCut) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    CaptureWriter writer(folder / "a.pcapng", {"x"});
    for (int i = 0; i < 3; i++) test::write_record(writer, pool, {i, std::vector<std::uint8_t>(30), 30});
    writer.finish();
  }
  const std::string bytes = test::read_bytes(folder / "a.pcapng");
  const std::size_t block = 32 + 32, first = bytes.size() - 3 * block;
  for (std::size_t size = first; size <= bytes.size(); size++) {
    test::write_bytes(folder / "cut.pcapng", bytes.substr(0, size));
    const auto contents = test::read_capture(folder / "cut.pcapng");
    EXPECT_EQ(contents.records.size(), (size - first) / block) << size;
    ASSERT_EQ(contents.end, (size - first) % block ? CaptureReader::Status::kCut : CaptureReader::Status::kEnd) << size;
  }
}

// pcap's seconds are unsigned (until 2106); libpcap 1.10 reads them as signed, so a late time comes back negative.
TEST(CaptureEdge, PcapTimesAfter2038) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  const test::Record late{4'294'967'295'000'000'001, std::vector<std::uint8_t>(30), 30};
  {
    CaptureWriter writer(folder / "a.pcap", {"x"});
    test::write_record(writer, pool, late);
    writer.finish();
  }
  EXPECT_EQ(test::read_capture(folder / "a.pcap").records, std::vector<test::Record>{late});
}

// Seconds beyond 2^63 ns: found by capture_fuzz. Anything but a time that has wrapped round to a wrong one.
TEST(CaptureEdge, ATimeThatDoesNotFitIsNotWrappedRound) {
  test::TemporaryFolder folder;
  Pool pool({.small = 64, .large = 16, .giant = 2});
  {
    CaptureWriter writer(folder / "a.pcapng", {"x"});
    test::write_record(writer, pool, {5, std::vector<std::uint8_t>(30), 30});
    writer.finish();
  }
  std::string bytes = test::read_bytes(folder / "a.pcapng");
  const std::size_t resolution = bytes.find(std::string("\x09\x00\x01\x00\x09", 5)) + 4;
  ASSERT_LT(resolution, bytes.size());
  bytes[resolution] = 0;                                                   // whole seconds
  bytes.replace(bytes.size() - 64 + 12, 4, std::string("\x10\0\0\0", 4));  // upper half of the time: 16 << 32 s
  test::write_bytes(folder / "b.pcapng", bytes);
  const auto contents = test::read_capture(folder / "b.pcapng");
  EXPECT_EQ(contents.end, CaptureReader::Status::kBroken);
  for (const test::Record& record : contents.records)
    EXPECT_EQ(record.at, INT64_MAX) << "16 * 2^32 s and 5 s have no place in 64 bits of nanoseconds";
}

}  // namespace
}  // namespace rocebox
