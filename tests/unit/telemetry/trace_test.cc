// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/trace.h"

#include <gtest/gtest.h>

#include "runtime/kernel/kernel.h"
#include "tests/unit/harness.h"

namespace rocebox {
namespace {

PacketPtr packet(Pool& pool, std::uint32_t qpn, std::uint32_t psn, std::uint8_t opcode = IBV_OPCODE_RC_SEND_ONLY,
                 std::uint8_t version = 4) {
  roce::PacketSpec spec;
  spec.underlay.ip_version = version;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
  spec.destination_qp = qpn;
  spec.psn = psn;
  spec.opcode = opcode;
  PacketPtr made = pool.allocate(roce::built_bytes(spec));
  roce::build(*made, spec);
  return made;
}

TEST(TraceFilter, WordsAndRanges) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  struct Row {
    const char* filter;
    std::uint32_t qpn, psn;
    bool matches;
  };
  constexpr Row kRows[] = {{"all", 1, 1, true},
                           {"  all  ", 1, 1, true},
                           {"qpn=0x11", 17, 5, true},
                           {"qpn=17", 17, 5, true},
                           {"qpn=17", 18, 5, false},
                           {"psn=5", 1, 5, true},
                           {"psn=1,5,9", 1, 5, true},
                           {"psn=1,6,9", 1, 5, false},
                           {"psn=4-6", 1, 5, true},
                           {"psn=4-6", 1, 4, true},
                           {"psn=4-6", 1, 6, true},
                           {"psn=4-6", 1, 7, false},
                           {"psn=4-6", 1, 3, false},
                           {"psn=0xfffff0-0x10", 1, 0xFFFFF0, true},
                           {"psn=0xfffff0-0x10", 1, 0xFFFFFF, true},
                           {"psn=0xfffff0-0x10", 1, 0, true},
                           {"psn=0xfffff0-0x10", 1, 0x10, true},
                           {"psn=0xfffff0-0x10", 1, 0x11, false},
                           {"psn=0xfffff0-0x10", 1, 0xFFFFEF, false},
                           {"qpn=1 psn=5", 1, 5, true},
                           {"qpn=1 psn=5", 2, 5, false},
                           {"qpn=1 psn=5", 1, 6, false},
                           {"qpn=1 qpn=2", 2, 5, true},
                           {"opcode=4", 1, 1, true},
                           {"opcode=5-255", 1, 1, false},
                           {"src=10.0.0.1", 1, 1, true},
                           {"src=10.0.0.2", 1, 1, false},
                           {"dst=10.0.0.2 src=10.0.0.1", 1, 1, true},
                           {"dst=::ffff:10.0.0.2", 1, 1, true},
                           {"dst=fe80::1", 1, 1, false}};
  for (const Row& row : kRows)
    EXPECT_EQ(TraceFilter(row.filter).matches(*packet(pool, row.qpn, row.psn)), row.matches)
        << row.filter << ' ' << row.qpn << ' ' << row.psn;
}

TEST(TraceFilter, OtherTraffic) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  PacketPtr arp = pool.allocate(60);
  std::fill_n(arp->data(), 60, std::uint8_t{0});
  arp->data()[12] = 8, arp->data()[13] = 6;
  roce::parse(*arp);
  EXPECT_TRUE(TraceFilter("all").matches(*arp));
  for (const char* text : {"qpn=0", "psn=0-0xffffff", "opcode=0", "src=0.0.0.0", "dst=::"})
    EXPECT_FALSE(TraceFilter(text).matches(*arp)) << text;
  PacketPtr reserved = packet(pool, 1, 1, 0x1F), unread = packet(pool, 1, 1, IBV_OPCODE_RD_SEND_ONLY);
  EXPECT_TRUE(TraceFilter("opcode=0x1f").matches(*reserved));
  for (const char* text : {"qpn=1", "psn=1", "opcode=0x1f qpn=1", "qpn=0-0xffffff"}) {
    EXPECT_FALSE(TraceFilter(text).matches(*reserved)) << "behind a reserved opcode may stand anything: " << text;
  }
  EXPECT_TRUE(TraceFilter("qpn=1 psn=1").matches(*unread)) << "RD has a BTH";
}

TEST(TraceFilter, WordsThatCannotBeRead) {
  for (const char* text :
       {"",       " ",         "qpn",           "qpn=",     "qpn=x", "qpn=1,",     "qpn=,1",         "qpn=1-",
        "qpn=-1", "qpn=1-2-3", "qpn=0x1000000", "psn=1--2", "src=",  "src=10.0.0", "src=10.0.0.1/8", "dst=host",
        "port=1", "ALL",       "all=1",         "qpn==1"})
    EXPECT_THROW(TraceFilter{text}, ConfigError) << text;
  try {
    TraceFilter filter("qpn=1 psm=2");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("psm=2"), std::string::npos) << error.what();
  }
}

// "psn=9,524,366" copied from a table of counts would follow three other packets.
TEST(TraceFilter, AListThatReadsAsOneNumberIsRefused) {
  for (const char* text : {"psn=9,524,366", "psn=1,024", "qpn=16,777,215", "psn=100,200", "src=10.0.0.1 psn=12,345"}) {
    try {
      TraceFilter filter(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("one number or a list"), std::string::npos) << error.what();
    }
  }
  try {
    TraceFilter filter("psn=9,524,366");
  } catch (const ConfigError& error) {
    for (const char* mend : {"`psn=9524366`", "`psn=9 psn=524 psn=366`"})
      EXPECT_NE(std::string(error.what()).find(mend), std::string::npos) << error.what();
  }
  // Not one number: groups of other sizes, above 2^24 - 1, a leading 0, ranges, hexadecimal.
  for (const char* text : {"psn=1,5,9", "psn=100,200,300", "psn=16,777,216", "psn=1234,567", "psn=0,100",
                           "psn=1,024-030", "psn=0x1,024", "psn=1,24", "psn=1,1000", "psn=9 psn=524 psn=366"})
    EXPECT_NO_THROW(TraceFilter{text}) << text;
}

TEST(TraceLine, ATrimmedPacketKeepsItsName) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  const std::vector<std::uint8_t> payload(100, 1);
  roce::PacketSpec spec;
  spec.opcode = IBV_OPCODE_RC_RDMA_WRITE_MIDDLE;
  spec.destination_qp = 0x11;
  spec.psn = 42;
  spec.payload = payload;
  PacketPtr p = pool.allocate(roce::built_bytes(spec));
  roce::build(*p, spec);
  p->trim_to(p->meta().payload_offset);
  roce::parse(*p);
  ASSERT_EQ(p->meta().status, ParseStatus::kShorterThanIpLength);
  const TraceEvent event{0, {}, TraceVerdict::kLeave, 1, nullptr, trace_info(*p), *p};
  const std::string line = trace_line(event, "tap", "b", "");
  EXPECT_NE(line.find("RC RDMA WRITE Middle qpn 0x11 psn 42"), std::string::npos) << line;
}

TEST(TraceLine, AReservedOpcodeIsShownAsANumberAlone) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  PacketPtr p = packet(pool, 0x11, 42, 0x1F);
  const TraceEvent event{0, {}, TraceVerdict::kArrive, 0, nullptr, trace_info(*p), *p};
  const std::string line = trace_line(event, "tap", "a", "");
  EXPECT_TRUE(line.ends_with("opcode 0x1f")) << line;
}

TEST(TraceLine, ANoteStandsInThePlaceOfTheVerdict) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  PacketPtr p = packet(pool, 0x11, 42);
  const TraceEvent event{0, "link", TraceVerdict::kNote, 0, nullptr, trace_info(*p), *p, "trim"};
  const std::string line = trace_line(event, "tap", "", "");
  EXPECT_NE(line.find("tap.link             trim  "), std::string::npos) << line;
}

TEST(TraceLine, SaysWhereWhatAndWhich) {
  Pool pool({.small = 64, .large = 16, .giant = 2});
  PacketPtr p = packet(pool, 0x11, 42);
  p->meta().identity = 9;
  TraceEvent event{1'500'000'000, "inspect", TraceVerdict::kDrop, 1, nullptr, trace_info(*p), *p};
  std::string line = trace_line(event, "tap", "", "drop_loss");
  for (const char* word : {"1.500000000", "tap.inspect", "drop drop_loss", "#9", "RC SEND Only", "qpn 0x11", "psn 42"})
    EXPECT_NE(line.find(word), std::string::npos) << word << " in " << line;
  event.stage = {};
  event.verdict = TraceVerdict::kArrive;
  event.info.made = true;
  line = trace_line(event, "tap", "host", "");
  for (const char* word : {"tap ", "arrive host", "#9 made"})
    EXPECT_NE(line.find(word), std::string::npos) << word << " in " << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  for (int i = 0; i <= static_cast<int>(TraceVerdict::kNote); i++)
    EXPECT_FALSE(trace_verdict_name(static_cast<TraceVerdict>(i)).empty());
}

}  // namespace
}  // namespace rocebox
