// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/parse.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "tests/unit/roce/frame_kit.h"
#include "tests/unit/roce/guarded_packet.h"

namespace rocebox::roce {
namespace {

struct Case {
  const char* title;
  ParseStatus status;
  std::function<Bytes()> make;
  std::uint32_t wire_bytes = 0;
};

const Case kCases[] = {
    {"IPv4", ParseStatus::kRoce, [] { return frame(4); }},
    {"IPv6", ParseStatus::kRoce, [] { return frame(6); }},
    {"IPv4 options", ParseStatus::kRoce,
     [] {
       return changed(frame(4), [](Bytes& b) {
         insert(b, kUdp4, Bytes(40, 1));
         b[kNoTags] = 0x4F;
         put16(b, kNoTags + 2, get16(b, kNoTags + 2) + 40);
       });
     }},
    {"VLAN", ParseStatus::kRoce, [] { return changed(frame(4), [](Bytes& b) {
                                        insert(b, 12, {0x81, 0, 0, 5});
                                      }); }},
    {"QinQ", ParseStatus::kRoce,
     [] { return changed(frame(6), [](Bytes& b) {
            insert(b, 12, {0x88, 0xA8, 0, 5, 0x81, 0, 0, 6});
          }); }},
    {"old QinQ", ParseStatus::kRoce,
     [] { return changed(frame(4), [](Bytes& b) {
            insert(b, 12, {0x91, 0, 0, 5, 0x81, 0, 0, 6});
          }); }},
    {"three tags", ParseStatus::kRoce,
     [] {
       return changed(frame(4), [](Bytes& b) { insert(b, 12, {0x88, 0xA8, 0, 5, 0x88, 0xA8, 0, 6, 0x81, 0, 0, 7}); });
     }},
    {"four tags", ParseStatus::kNotIp,
     [] {
       return changed(frame(4), [](Bytes& b) {
         insert(b, 12, {0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x81, 0, 0, 4});
       });
     }},
    {"hop-by-hop", ParseStatus::kRoce,
     [] {
       return with_extensions({{0, extension(8, 0)}});
     }},
    {"routing", ParseStatus::kRoce,
     [] {
       return with_extensions({{43, extension(24, 2)}});
     }},
    {"destination options", ParseStatus::kRoce,
     [] {
       return with_extensions({{60, extension(16, 1)}});
     }},
    {"authentication", ParseStatus::kRoce,
     [] {
       return with_extensions({{51, extension(24, 4)}});
     }},
    {"all of them", ParseStatus::kRoce,
     [] {
       return with_extensions({{0, extension(8, 0)},
                               {60, extension(8, 0)},
                               {43, extension(8, 0)},
                               {51, extension(12, 1)},
                               {60, extension(8, 0)}});
     }},
    {"atomic fragment", ParseStatus::kRoce,
     [] {
       return with_extensions({{44, extension(8, 0)}});
     }},
    {"Ethernet padding behind", ParseStatus::kRoce,
     [] { return changed(frame(4), [](Bytes& b) { b.insert(b.end(), 18, 0xEE); }); }},
    {"FCS behind", ParseStatus::kRoce, [] { return changed(frame(6), [](Bytes& b) { b.insert(b.end(), 4, 0xEE); }); }},
    {"payload cut by the capture", ParseStatus::kRoce,
     [] { return changed(frame(4, 4, 1000), [](Bytes& b) { b.resize(80); }); }, 1100},
    {"ARP", ParseStatus::kNotIp, [] { return changed(frame(4), [](Bytes& b) { put16(b, 12, 0x0806); }); }},
    {"TCP", ParseStatus::kNotUdp, [] { return changed(frame(4), [](Bytes& b) { b[kNoTags + 9] = 6; }); }},
    {"TCP over IPv6", ParseStatus::kNotUdp, [] { return changed(frame(6), [](Bytes& b) { b[kNoTags + 6] = 6; }); }},
    {"later fragment of TCP", ParseStatus::kNotUdp,
     [] {
       return changed(frame(4), [](Bytes& b) {
         b[kNoTags + 9] = 6;
         put16(b, kNoTags + 6, 5);
       });
     }},
    {"DNS", ParseStatus::kOtherUdpPort, [] { return changed(frame(4), [](Bytes& b) { put16(b, kUdp4 + 2, 53); }); }},
    {"source port 4791 only", ParseStatus::kOtherUdpPort,
     [] {
       return changed(frame(6), [](Bytes& b) {
         put16(b, kUdp6, 4791);
         put16(b, kUdp6 + 2, 4790);
       });
     }},
    {"RoCE v1", ParseStatus::kRoceV1, [] { return changed(frame(4), [](Bytes& b) { put16(b, 12, 0x8915); }); }},
    {"first fragment", ParseStatus::kFirstFragment,
     [] { return changed(frame(4), [](Bytes& b) { put16(b, kNoTags + 6, 0x2000); }); }},
    {"first fragment, v6", ParseStatus::kFirstFragment,
     [] {
       return with_extensions({{44, Bytes{0, 0, 0, 1, 0, 0, 0, 9}}});
     }},
    {"later fragment", ParseStatus::kLaterFragment,
     [] { return changed(frame(4), [](Bytes& b) { put16(b, kNoTags + 6, 0x2001); }); }},
    {"last fragment", ParseStatus::kLaterFragment,
     [] { return changed(frame(4), [](Bytes& b) { put16(b, kNoTags + 6, 0x1FFF); }); }},
    {"later fragment, v6", ParseStatus::kLaterFragment,
     [] {
       return with_extensions({{44, Bytes{0, 0, 0, 8, 0, 0, 0, 9}}});
     }},
    {"fragment of another port", ParseStatus::kOtherUdpPort,
     [] {
       return changed(frame(4), [](Bytes& b) {
         put16(b, kNoTags + 6, 0x2000);
         put16(b, kUdp4 + 2, 53);
       });
     }},
    {"snapped in Ethernet", ParseStatus::kSnappedEthernet,
     [] { return changed(frame(4), [](Bytes& b) { b.resize(13); }); }, 90},
    {"snapped in a tag", ParseStatus::kSnappedEthernet,
     [] {
       return changed(frame(4), [](Bytes& b) {
         put16(b, 12, 0x8100);
         b.resize(17);
       });
     },
     90},
    {"snapped in IP", ParseStatus::kSnappedIp, [] { return changed(frame(4), [](Bytes& b) { b.resize(kUdp4 - 1); }); },
     90},
    {"snapped in UDP", ParseStatus::kSnappedUdp,
     [] { return changed(frame(4), [](Bytes& b) { b.resize(kBth4 - 1); }); }, 90},
    {"snapped in BTH", ParseStatus::kSnappedBth,
     [] { return changed(frame(4), [](Bytes& b) { b.resize(kBth4 + 11); }); }, 90},
    {"snapped in RETH", ParseStatus::kSnappedExtension,
     [] { return changed(frame(4), [](Bytes& b) { b.resize(kBth4 + 12 + 15); }); }, 90},
    {"trimmed on the wire", ParseStatus::kShorterThanIpLength,
     [] { return changed(frame(4, 4, 1000), [](Bytes& b) { b.resize(100); }); }},
    {"trimmed on the wire, then snapped", ParseStatus::kShorterThanIpLength,
     [] { return changed(frame(4, 4, 1000), [](Bytes& b) { b.resize(kBth4 + 12); }); }, 100},
    {"trimmed by the ICRC's last byte", ParseStatus::kShorterThanIpLength,
     [] { return changed(frame(6), [](Bytes& b) { b.pop_back(); }); }},
    {"IPv6 in an IPv4 frame", ParseStatus::kBadIpVersion,
     [] { return changed(frame(4), [](Bytes& b) { b[kNoTags] = 0x65; }); }},
    {"IPv4 in an IPv6 frame", ParseStatus::kBadIpVersion,
     [] { return changed(frame(6), [](Bytes& b) { b[kNoTags] = 0x45; }); }},
    {"IHL 4", ParseStatus::kBadIpHeaderLength, [] { return changed(frame(4), [](Bytes& b) { b[kNoTags] = 0x44; }); }},
    {"total length below IHL", ParseStatus::kBadIpLength,
     [] { return changed(frame(4), [](Bytes& b) { put16(b, kNoTags + 2, 19); }); }},
    {"extension beyond the datagram", ParseStatus::kBadIpv6Extension,
     [] {
       return changed(with_extensions({{0, extension(8, 0)}}), [](Bytes& b) { b[kUdp6 + 1] = 200; });
     }},
    {"nine extensions", ParseStatus::kBadIpv6Extension,
     [] {
       return with_extensions(std::vector<std::pair<std::uint8_t, Bytes>>(9, {60, extension(8, 0)}));
     }},
    {"jumbogram", ParseStatus::kBadIpv6Extension,
     [] {
       return changed(with_extensions({{0, extension(8, 0)}}), [](Bytes& b) { put16(b, kNoTags + 4, 0); });
     }},
    {"UDP longer than IP", ParseStatus::kBadUdpLength,
     [] { return changed(frame(4), [](Bytes& b) { put16(b, kUdp4 + 4, get16(b, kUdp4 + 4) + 1); }); }},
    {"UDP shorter than IP", ParseStatus::kBadUdpLength,
     [] { return changed(frame(6), [](Bytes& b) { put16(b, kUdp6 + 4, get16(b, kUdp6 + 4) - 1); }); }},
    {"UDP length 7", ParseStatus::kBadUdpLength,
     [] {
       return changed(frame(4), [](Bytes& b) {
         put16(b, kUdp4 + 4, 7);
         put16(b, kNoTags + 2, 27);
       });
     }},
    {"11 bytes of transport", ParseStatus::kNoRoomForBth,
     [] {
       return changed(frame(4), [](Bytes& b) {
         put16(b, kUdp4 + 4, 19);
         put16(b, kNoTags + 2, 39);
       });
     }},
    {"15 bytes of transport", ParseStatus::kNoRoomForExtension,
     [] {
       return changed(frame(4), [](Bytes& b) {
         put16(b, kUdp4 + 4, 23);
         put16(b, kNoTags + 2, 43);
       });
     }},
    {"LoWAR, whose QPN stands where others have TVer", ParseStatus::kReservedOpcode,
     [] { return changed(frame(4), [](Bytes& b) { b[kBth4] = kOpcodeReserved, b[kBth4 + 1] = 0xFF; }); }},
    {"TVer 1", ParseStatus::kBadTransportVersion,
     [] { return changed(frame(4), [](Bytes& b) { b[kBth4 + 1] |= 1; }); }},
    {"opcode 0x1F", ParseStatus::kReservedOpcode, [] { return frame(4, 0x1F); }},
    {"RD opcode", ParseStatus::kUnsupportedService, [] { return frame(6, 0x44); }},
    {"XRC opcode", ParseStatus::kUnsupportedService, [] { return frame(4, 0xA6); }},
    {"manufacturer's opcode", ParseStatus::kUnsupportedService, [] { return frame(4, 0xFF); }},
    {"reserved RD opcode", ParseStatus::kUnknownOpcode, [] { return frame(4, 0x56); }},
    {"reserved XRC opcode", ParseStatus::kUnknownOpcode, [] { return frame(4, 0xB5); }},
    {"WRITE without RETH", ParseStatus::kNoRoomForExtension,
     [] {
       return changed(frame(4, IBV_OPCODE_RC_SEND_ONLY, 8), [](Bytes& b) { b[kBth4] = IBV_OPCODE_RC_RDMA_WRITE_ONLY; });
     }},
    {"CNP of 15 bytes", ParseStatus::kNoRoomForExtension,
     [] { return changed(frame(4, IBV_OPCODE_RC_SEND_ONLY, 12), [](Bytes& b) { b[kBth4] = kOpcodeCnp; }); }},
    {"pad 3 of no payload", ParseStatus::kBadPadCount,
     [] { return changed(frame(4, IBV_OPCODE_RC_ACKNOWLEDGE, 0), [](Bytes& b) { b[kBth4 + 1] |= 0x30; }); }},
};

TEST(Parse, EveryStatusHasAPacket) {
  test::GuardedPacket guarded;
  std::set<ParseStatus> reached;
  for (const Case& c : kCases) {
    Packet packet = guarded.parse(c.make(), c.wire_bytes);
    EXPECT_EQ(packet.meta().status, c.status) << c.title << ": " << parse_status_name(packet.meta().status);
    reached.insert(packet.meta().status);
  }
  for (int status = 1; status < static_cast<int>(ParseStatus::kCount); status++)
    EXPECT_TRUE(reached.count(static_cast<ParseStatus>(status))) << parse_status_name(static_cast<ParseStatus>(status));
}

// Every case cut at every length, at the end of readable memory: once as a snapped capture, once as a short frame.
TEST(Parse, EveryTruncationIsSeenAndNothingBeyondIsRead) {
  test::GuardedPacket guarded;
  for (const Case& c : kCases) {
    const Bytes bytes = c.make();
    const auto full = static_cast<std::uint32_t>(bytes.size());
    Packet whole = guarded.parse(bytes, std::max(c.wire_bytes, full));
    const ParseStatus status = whole.meta().status;
    const PacketMeta meta = whole.meta();
    for (std::uint32_t held = 0; held <= full; held++) {
      Packet snapped = guarded.parse(std::span(bytes).first(held), std::max(c.wire_bytes, full));
      const PacketClass found = class_of(snapped.meta().status);
      if (held < full && snapped.meta().status != status) {
        EXPECT_EQ(found, PacketClass::kTruncated) << c.title << " held " << held;
        EXPECT_NE(snapped.meta().status, ParseStatus::kShorterThanIpLength) << c.title << " held " << held;
      }
      if (status == ParseStatus::kRoce) {
        EXPECT_EQ(snapped.meta().status == status, held >= meta.payload_offset) << c.title << ' ' << held;
      }
      Packet cut = guarded.parse(std::span(bytes).first(held), std::max(held, 1u));
      if (status == ParseStatus::kRoce && held >= meta.l3_offset + 20u && held > 14) {
        EXPECT_EQ(cut.meta().status, held < meta.datagram_end ? ParseStatus::kShorterThanIpLength : status)
            << c.title << " cut to " << held;
      }
    }
  }
}

TEST(Parse, DamagedPacketsNeverCrashAndStayConsistent) {
  test::GuardedPacket guarded;
  std::mt19937 random(7);
  for (int round = 0; round < 200'000; round++) {
    Bytes bytes = round % 4 ? kCases[random() % std::size(kCases)].make() : Bytes(random() % 200);
    if (round % 4 == 0)
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    for (unsigned i = 0; i < random() % 4 && !bytes.empty(); i++)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    Packet packet = guarded.parse(bytes, static_cast<std::uint32_t>(bytes.size() + random() % 2 * 100));
    const PacketMeta& meta = packet.meta();
    ASSERT_NE(meta.status, ParseStatus::kUnparsed);
    ASSERT_LT(meta.status, ParseStatus::kCount);
    if (meta.bth_offset) {
      ASSERT_LE(meta.bth_offset + sizeof(Bth), packet.size());
    }
    if (!is_roce(packet)) continue;
    ASSERT_LE(meta.payload_offset, packet.size());
    ASSERT_LE(meta.datagram_end, meta.wire_bytes);
    ASSERT_EQ(meta.payload_offset + meta.payload_bytes + meta.pad_bytes + 4, meta.datagram_end);
  }
}

}  // namespace
}  // namespace rocebox::roce
