// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/opcodes.h"

#include <cstdio>

#include "runtime/roce/headers.h"

namespace rocebox::roce {
namespace {

struct Row {
  std::uint8_t opcode;
  const char* name;
  std::uint16_t flags;
};

constexpr std::uint16_t kRequest = kIsRequest | kIsKnown, kResponse = kIsResponse | kIsKnown;
constexpr std::uint16_t kFirst = kStartsMessage | kHasPayload, kMiddle = kHasPayload,
                        kLast = kEndsMessage | kHasPayload, kOnly = kStartsMessage | kEndsMessage | kHasPayload;
constexpr std::uint16_t kSend = kRequest | kIsSend, kWrite = kRequest | kIsWrite;
constexpr std::uint16_t kRead = kResponse | kIsReadResponse;

// IB specification, volume 1, table 38; the order within a service is the opcode's.
constexpr Row kRows[] = {
    {IBV_OPCODE_RC_SEND_FIRST, "RC SEND First", kSend | kFirst},
    {IBV_OPCODE_RC_SEND_MIDDLE, "RC SEND Middle", kSend | kMiddle},
    {IBV_OPCODE_RC_SEND_LAST, "RC SEND Last", kSend | kLast},
    {IBV_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE, "RC SEND Last with Immediate", kSend | kLast | kHasImmDt},
    {IBV_OPCODE_RC_SEND_ONLY, "RC SEND Only", kSend | kOnly},
    {IBV_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE, "RC SEND Only with Immediate", kSend | kOnly | kHasImmDt},
    {IBV_OPCODE_RC_RDMA_WRITE_FIRST, "RC RDMA WRITE First", kWrite | kFirst | kHasReth},
    {IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, "RC RDMA WRITE Middle", kWrite | kMiddle},
    {IBV_OPCODE_RC_RDMA_WRITE_LAST, "RC RDMA WRITE Last", kWrite | kLast},
    {IBV_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, "RC RDMA WRITE Last with Immediate", kWrite | kLast | kHasImmDt},
    {IBV_OPCODE_RC_RDMA_WRITE_ONLY, "RC RDMA WRITE Only", kWrite | kOnly | kHasReth},
    {IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, "RC RDMA WRITE Only with Immediate",
     kWrite | kOnly | kHasReth | kHasImmDt},
    {IBV_OPCODE_RC_RDMA_READ_REQUEST, "RC RDMA READ Request", kRequest | kStartsMessage | kEndsMessage | kHasReth},
    {IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, "RC RDMA READ Response First", kRead | kFirst | kHasAeth},
    {IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, "RC RDMA READ Response Middle", kRead | kMiddle},
    {IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, "RC RDMA READ Response Last", kRead | kLast | kHasAeth},
    {IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, "RC RDMA READ Response Only", kRead | kOnly | kHasAeth},
    {IBV_OPCODE_RC_ACKNOWLEDGE, "RC Acknowledge", kResponse | kHasAeth},
    {IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE, "RC ATOMIC Acknowledge", kResponse | kHasAeth | kHasAtomicAckEth},
    {IBV_OPCODE_RC_COMPARE_SWAP, "RC CmpSwap", kRequest | kStartsMessage | kEndsMessage | kHasAtomicEth},
    {IBV_OPCODE_RC_FETCH_ADD, "RC FetchAdd", kRequest | kStartsMessage | kEndsMessage | kHasAtomicEth},
    {0x16, "RC SEND Last with Invalidate", kSend | kLast | kHasIeth},  // rdma-core has no constant for these two
    {0x17, "RC SEND Only with Invalidate", kSend | kOnly | kHasIeth},
    {IBV_OPCODE_UC_SEND_FIRST, "UC SEND First", kSend | kFirst},
    {IBV_OPCODE_UC_SEND_MIDDLE, "UC SEND Middle", kSend | kMiddle},
    {IBV_OPCODE_UC_SEND_LAST, "UC SEND Last", kSend | kLast},
    {IBV_OPCODE_UC_SEND_LAST_WITH_IMMEDIATE, "UC SEND Last with Immediate", kSend | kLast | kHasImmDt},
    {IBV_OPCODE_UC_SEND_ONLY, "UC SEND Only", kSend | kOnly},
    {IBV_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE, "UC SEND Only with Immediate", kSend | kOnly | kHasImmDt},
    {IBV_OPCODE_UC_RDMA_WRITE_FIRST, "UC RDMA WRITE First", kWrite | kFirst | kHasReth},
    {IBV_OPCODE_UC_RDMA_WRITE_MIDDLE, "UC RDMA WRITE Middle", kWrite | kMiddle},
    {IBV_OPCODE_UC_RDMA_WRITE_LAST, "UC RDMA WRITE Last", kWrite | kLast},
    {IBV_OPCODE_UC_RDMA_WRITE_LAST_WITH_IMMEDIATE, "UC RDMA WRITE Last with Immediate", kWrite | kLast | kHasImmDt},
    {IBV_OPCODE_UC_RDMA_WRITE_ONLY, "UC RDMA WRITE Only", kWrite | kOnly | kHasReth},
    {IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, "UC RDMA WRITE Only with Immediate",
     kWrite | kOnly | kHasReth | kHasImmDt},
    {IBV_OPCODE_UD_SEND_ONLY, "UD SEND Only", kSend | kOnly | kHasDeth},
    {IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE, "UD SEND Only with Immediate", kSend | kOnly | kHasDeth | kHasImmDt},
    {kOpcodeCnp, "CNP", kResponse},
};

constexpr std::uint8_t kRdLast = 0x15;   // RESYNC
constexpr std::uint8_t kXrcLast = 0x17;  // SEND Only with Invalidate; it has no RESYNC

constexpr Service service_of(std::uint8_t opcode) {
  if (opcode == kOpcodeCnp) return Service::kCnp;
  const unsigned operation = opcode & 0x1Fu;
  switch (opcode >> 5) {
    case IBV_OPCODE_RC >> 5:
      return Service::kRc;
    case IBV_OPCODE_UC >> 5:
      return Service::kUc;
    case IBV_OPCODE_UD >> 5:
      return Service::kUd;
    case IBV_OPCODE_RD >> 5:
      return operation <= kRdLast ? Service::kRd : Service::kUnknown;
    case first_opcode(Service::kXrc) >> 5:
      return operation <= kXrcLast && operation != kRdLast ? Service::kXrc : Service::kUnknown;
    case first_opcode(Service::kManufacturerC0) >> 5:
      return Service::kManufacturerC0;
    case first_opcode(Service::kManufacturerE0) >> 5:
      return Service::kManufacturerE0;
    default:
      return Service::kUnknown;
  }
}

constexpr std::uint8_t extension_bytes(std::uint8_t opcode, std::uint16_t flags) {
  unsigned bytes = opcode == kOpcodeCnp ? sizeof(Cnp) : 0;
  if (flags & kHasDeth) bytes += sizeof(Deth);
  if (flags & kHasReth) bytes += sizeof(Reth);
  if (flags & kHasAtomicEth) bytes += sizeof(AtomicEth);
  if (flags & kHasAeth) bytes += sizeof(Aeth);
  if (flags & kHasAtomicAckEth) bytes += sizeof(AtomicAckEth);
  if (flags & kHasImmDt) bytes += sizeof(ImmDt);
  if (flags & kHasIeth) bytes += sizeof(Ieth);
  return static_cast<std::uint8_t>(bytes);
}

constexpr std::array<OpcodeInfo, 256> make_table() {
  std::array<OpcodeInfo, 256> table{};
  for (unsigned opcode = 0; opcode < 256; opcode++)
    table[opcode].service = service_of(static_cast<std::uint8_t>(opcode));
  for (const Row& row : kRows)
    table[row.opcode] = {row.flags, extension_bytes(row.opcode, row.flags), service_of(row.opcode)};
  return table;
}

}  // namespace

constinit const std::array<OpcodeInfo, 256> kOpcodes = make_table();
static_assert(make_table()[kOpcodeReserved].flags == 0, "0x1F is left free for gateways");

std::string_view opcode_name(std::uint8_t opcode) {
  for (const Row& row : kRows)
    if (row.opcode == opcode) return row.name;
  return "unknown";
}

std::string opcode_text(std::uint8_t opcode) {
  if (kOpcodes[opcode].has(kIsKnown)) return std::string(opcode_name(opcode));
  char text[16];
  std::snprintf(text, sizeof text, "opcode 0x%02x", unsigned{opcode});
  return text;
}

std::string_view service_name(Service service) {
  constexpr std::string_view kNames[] = {
      "RC", "UC", "UD", "CNP", "unknown", "RD", "XRC", "manufacturer 0xC0", "manufacturer 0xE0"};
  return kNames[static_cast<unsigned>(service)];
}

std::string_view nak_code_name(unsigned code) {
  constexpr std::string_view kNames[] = {"PSN sequence error", "invalid request", "remote access error",
                                         "remote operational error", "invalid RD request"};
  return code < std::size(kNames) ? kNames[code] : "reserved";
}

std::int64_t rnr_timer_nanos(unsigned code) {
  // Table 45, in units of 10 us.
  constexpr std::int64_t kTens[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return kTens[code & 31] * 10'000;
}

}  // namespace rocebox::roce
