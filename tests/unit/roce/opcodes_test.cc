// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/opcodes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace rocebox::roce {
namespace {

// IB specification, volume 1, 9.2 tables 38 and 39, retyped: opcode, headers behind BTH in order (D DETH 8, R RETH 16,
// T AtomicETH 28, A AETH 4, K AtomicAckETH 8, I ImmDt 4, V IETH 4, C 16 reserved bytes), payload, place in the message
// (f first, m middle, l last, o only, - none), request or response, name.
struct OpcodeRow {
  unsigned opcode;
  const char* headers;
  bool payload;
  char place;
  char side;
  const char* name;
};
constexpr OpcodeRow kTable[] = {
    {0x00, "", true, 'f', 'q', "RC SEND First"},
    {0x01, "", true, 'm', 'q', "RC SEND Middle"},
    {0x02, "", true, 'l', 'q', "RC SEND Last"},
    {0x03, "I", true, 'l', 'q', "RC SEND Last with Immediate"},
    {0x04, "", true, 'o', 'q', "RC SEND Only"},
    {0x05, "I", true, 'o', 'q', "RC SEND Only with Immediate"},
    {0x06, "R", true, 'f', 'q', "RC RDMA WRITE First"},
    {0x07, "", true, 'm', 'q', "RC RDMA WRITE Middle"},
    {0x08, "", true, 'l', 'q', "RC RDMA WRITE Last"},
    {0x09, "I", true, 'l', 'q', "RC RDMA WRITE Last with Immediate"},
    {0x0A, "R", true, 'o', 'q', "RC RDMA WRITE Only"},
    {0x0B, "RI", true, 'o', 'q', "RC RDMA WRITE Only with Immediate"},
    {0x0C, "R", false, 'o', 'q', "RC RDMA READ Request"},
    {0x0D, "A", true, 'f', 's', "RC RDMA READ Response First"},
    {0x0E, "", true, 'm', 's', "RC RDMA READ Response Middle"},
    {0x0F, "A", true, 'l', 's', "RC RDMA READ Response Last"},
    {0x10, "A", true, 'o', 's', "RC RDMA READ Response Only"},
    {0x11, "A", false, '-', 's', "RC Acknowledge"},
    {0x12, "AK", false, '-', 's', "RC ATOMIC Acknowledge"},
    {0x13, "T", false, 'o', 'q', "RC CmpSwap"},
    {0x14, "T", false, 'o', 'q', "RC FetchAdd"},
    {0x16, "V", true, 'l', 'q', "RC SEND Last with Invalidate"},
    {0x17, "V", true, 'o', 'q', "RC SEND Only with Invalidate"},
    {0x20, "", true, 'f', 'q', "UC SEND First"},
    {0x21, "", true, 'm', 'q', "UC SEND Middle"},
    {0x22, "", true, 'l', 'q', "UC SEND Last"},
    {0x23, "I", true, 'l', 'q', "UC SEND Last with Immediate"},
    {0x24, "", true, 'o', 'q', "UC SEND Only"},
    {0x25, "I", true, 'o', 'q', "UC SEND Only with Immediate"},
    {0x26, "R", true, 'f', 'q', "UC RDMA WRITE First"},
    {0x27, "", true, 'm', 'q', "UC RDMA WRITE Middle"},
    {0x28, "", true, 'l', 'q', "UC RDMA WRITE Last"},
    {0x29, "I", true, 'l', 'q', "UC RDMA WRITE Last with Immediate"},
    {0x2A, "R", true, 'o', 'q', "UC RDMA WRITE Only"},
    {0x2B, "RI", true, 'o', 'q', "UC RDMA WRITE Only with Immediate"},
    {0x64, "D", true, 'o', 'q', "UD SEND Only"},
    {0x65, "DI", true, 'o', 'q', "UD SEND Only with Immediate"},
    {0x81, "C", false, '-', 's', "CNP"},
};

const std::map<char, std::pair<std::uint16_t, unsigned>> kHeaders = {
    {'D', {kHasDeth, 8}},         {'R', {kHasReth, 16}}, {'T', {kHasAtomicEth, 28}}, {'A', {kHasAeth, 4}},
    {'K', {kHasAtomicAckEth, 8}}, {'I', {kHasImmDt, 4}}, {'V', {kHasIeth, 4}},       {'C', {0, 16}}};

TEST(Opcodes, TableAgreesWithTheSpecification) {
  for (const OpcodeRow& row : kTable) {
    const OpcodeInfo& info = opcode_info(static_cast<std::uint8_t>(row.opcode));
    unsigned bytes = 0, flags = 0;
    for (const char* h = row.headers; *h; h++) bytes += kHeaders.at(*h).second, flags |= kHeaders.at(*h).first;
    EXPECT_TRUE(info.has(kIsKnown)) << row.name;
    EXPECT_EQ(info.extension_bytes, bytes) << row.name;
    EXPECT_EQ(info.flags & 0x7Fu, flags) << row.name;
    EXPECT_EQ(info.has(kHasPayload), row.payload) << row.name;
    EXPECT_EQ(info.has(kStartsMessage), row.place == 'f' || row.place == 'o') << row.name;
    EXPECT_EQ(info.has(kEndsMessage), row.place == 'l' || row.place == 'o') << row.name;
    EXPECT_EQ(info.has(kIsRequest), row.side == 'q') << row.name;
    EXPECT_EQ(info.has(kIsResponse), row.side == 's') << row.name;
    EXPECT_EQ(info.has(kIsSend), std::strstr(row.name, "SEND") != nullptr) << row.name;
    EXPECT_EQ(info.has(kIsWrite), std::strstr(row.name, "WRITE") != nullptr) << row.name;
    EXPECT_EQ(info.has(kIsReadResponse), std::strstr(row.name, "READ Response") != nullptr) << row.name;
    EXPECT_EQ(opcode_name(static_cast<std::uint8_t>(row.opcode)), row.name);
    const std::string service(row.name, row.opcode == 0x81 ? 3 : 2);
    EXPECT_EQ(service_name(info.service), service) << row.name;
  }
}

TEST(Opcodes, AllOthersAreUnknownWithNothingBehindBth) {
  std::map<unsigned, bool> known;
  for (const OpcodeRow& row : kTable) known[row.opcode] = true;
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    if (known[opcode]) continue;
    const OpcodeInfo& info = opcode_info(static_cast<std::uint8_t>(opcode));
    EXPECT_EQ(info.flags, 0u) << opcode;
    EXPECT_EQ(info.extension_bytes, 0u) << opcode;
    EXPECT_EQ(opcode_name(static_cast<std::uint8_t>(opcode)), "unknown") << opcode;
  }
  EXPECT_FALSE(opcode_info(kOpcodeReserved).has(kIsKnown));
  EXPECT_EQ(opcode_info(kOpcodeReserved).service, Service::kRc);
}

TEST(Opcodes, ServiceIsTheUpperThreeBitsOfUnknownOpcodesToo) {
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    const bool rd = opcode >= 0x40 && opcode <= 0x55, xrc = opcode >= 0xA0 && opcode <= 0xB7 && opcode != 0xB5;
    const Service expected = opcode == 0x81                    ? Service::kCnp
                             : opcode < 0x20                   ? Service::kRc
                             : opcode < 0x40                   ? Service::kUc
                             : rd                              ? Service::kRd
                             : opcode >= 0x60 && opcode < 0x80 ? Service::kUd
                             : xrc                             ? Service::kXrc
                             : opcode >= 0xE0                  ? Service::kManufacturerE0
                             : opcode >= 0xC0                  ? Service::kManufacturerC0
                                                               : Service::kUnknown;
    if (is_unsupported(expected)) {
      EXPECT_EQ(first_opcode(expected), opcode & 0xE0u);
    }
    EXPECT_EQ(opcode_info(static_cast<std::uint8_t>(opcode)).service, expected) << opcode;
  }
}

TEST(Opcodes, RnrTimersInMilliseconds) {
  // Table 45 as printed, in milliseconds.
  constexpr double kMilliseconds[32] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                        0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                        2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                        40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (unsigned code = 0; code < 32; code++)
    EXPECT_EQ(rnr_timer_nanos(code), static_cast<std::int64_t>(kMilliseconds[code] * 1e6 + 0.5)) << code;
  EXPECT_EQ(rnr_timer_nanos(0x20 | 3), rnr_timer_nanos(3)) << "five bits";
}

TEST(Opcodes, AethSyndromes) {
  struct Case {
    std::uint8_t syndrome;
    AethKind kind;
    unsigned value;
  };
  constexpr Case kCases[] = {{0x00, AethKind::kAck, 0},      {0x1F, AethKind::kAck, 31},
                             {0x20, AethKind::kRnrNak, 0},   {0x3F, AethKind::kRnrNak, 31},
                             {0x40, AethKind::kReserved, 0}, {0x60, AethKind::kNak, 0},
                             {0x64, AethKind::kNak, 4},      {0x7F, AethKind::kNak, 31},
                             {0x80, AethKind::kAck, 0},      {0xE3, AethKind::kNak, 3}};
  for (const Case& c : kCases) {
    EXPECT_EQ(aeth_kind(c.syndrome), c.kind) << unsigned{c.syndrome};
    EXPECT_EQ(aeth_value(c.syndrome), c.value) << unsigned{c.syndrome};
  }
}

TEST(Opcodes, NakNames) {
  EXPECT_EQ(nak_code_name(0), "PSN sequence error");
  EXPECT_EQ(nak_code_name(static_cast<unsigned>(NakCode::kInvalidRequest)), "invalid request");
  EXPECT_EQ(nak_code_name(static_cast<unsigned>(NakCode::kRemoteAccessError)), "remote access error");
  EXPECT_EQ(nak_code_name(static_cast<unsigned>(NakCode::kRemoteOperationalError)), "remote operational error");
  EXPECT_EQ(nak_code_name(static_cast<unsigned>(NakCode::kInvalidRdRequest)), "invalid RD request");
  for (unsigned code : {5u, 31u, 32u, 0xFFFFFFFFu}) EXPECT_EQ(nak_code_name(code), "reserved");
}

}  // namespace
}  // namespace rocebox::roce
