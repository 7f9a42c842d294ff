// SPDX-License-Identifier: BSD-3-Clause
// BTH opcodes and what follows each (IB specification, volume 1, 9.2 table 38), on rdma-core's constants.
#pragma once
#include <infiniband/opcode.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rocebox::roce {

/// The transport service, from the opcode's upper three bits (table 38; XRC: annex A14). Of those from kRd on only BTH
/// is read; manufacturers have two values of the upper bits.
enum class Service : std::uint8_t { kRc, kUc, kUd, kCnp, kUnknown, kRd, kXrc, kManufacturerC0, kManufacturerE0 };
constexpr bool is_unsupported(Service service) { return service >= Service::kRd; }
/// A service's opcode whose lower five bits are 0; for services with opcodes of their own.
constexpr std::uint8_t first_opcode(Service service) {
  constexpr std::uint8_t kFirst[] = {0x00, 0x20, 0x60, 0x80, 0x80, 0x40, 0xA0, 0xC0, 0xE0};
  return kFirst[static_cast<unsigned>(service)];
}

/// CNP, IB specification annex A17.9.3; rdma-core has no constant for it.
inline constexpr std::uint8_t kOpcodeCnp = 0x81;
/// Reserved by the IB specification; left free for what gateways send each other, and never a known opcode here.
inline constexpr std::uint8_t kOpcodeReserved = 0x1F;

// What an opcode carries behind BTH, in wire order, and what it means.
inline constexpr std::uint16_t kHasDeth = 1 << 0, kHasReth = 1 << 1, kHasAtomicEth = 1 << 2, kHasAeth = 1 << 3,
                               kHasAtomicAckEth = 1 << 4, kHasImmDt = 1 << 5, kHasIeth = 1 << 6, kHasPayload = 1 << 7,
                               kStartsMessage = 1 << 8, kEndsMessage = 1 << 9, kIsRequest = 1 << 10,
                               kIsResponse = 1 << 11, kIsReadResponse = 1 << 12, kIsKnown = 1 << 13, kIsWrite = 1 << 14,
                               kIsSend = 1 << 15;

struct OpcodeInfo {
  std::uint16_t flags = 0;
  std::uint8_t extension_bytes = 0;  ///< extended transport headers, without payload
  Service service = Service::kUnknown;
  bool has(std::uint16_t flag) const { return flags & flag; }
};

/// One row for each of the 256 opcodes; unknown ones have flags 0.
extern const std::array<OpcodeInfo, 256> kOpcodes;

inline const OpcodeInfo& opcode_info(std::uint8_t opcode) { return kOpcodes[opcode]; }
/// The specification's name, such as "RC RDMA WRITE First"; "unknown" when it has none.
std::string_view opcode_name(std::uint8_t opcode);
/// The same for people to read: "opcode 0x1f" where there is no name.
std::string opcode_text(std::uint8_t opcode);
std::string_view service_name(Service service);

/// AETH syndrome, 9.7.5.1.2 table 45: bits 6:5 say what it is, 4:0 the value.
enum class AethKind : std::uint8_t { kAck = 0, kRnrNak = 1, kReserved = 2, kNak = 3 };
constexpr AethKind aeth_kind(std::uint8_t syndrome) { return static_cast<AethKind>(syndrome >> 5 & 3); }
constexpr unsigned aeth_value(std::uint8_t syndrome) { return syndrome & 0x1Fu; }

/// NAK codes, table 46.
enum class NakCode : std::uint8_t {
  kPsnSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccessError = 2,
  kRemoteOperationalError = 3,
  kInvalidRdRequest = 4,
};
/// "PSN sequence error", ...; "reserved" beyond the defined codes.
std::string_view nak_code_name(unsigned code);
/// The time that an RNR NAK's timer code asks for, table 45: 655.36 ms for 0, 10 us for 1 ... 491.52 ms for 31.
std::int64_t rnr_timer_nanos(unsigned code);

/// Payload bytes of a full packet for the five path MTUs.
inline constexpr std::array<std::uint32_t, 5> kPathMtus = {256, 512, 1024, 2048, 4096};
constexpr bool is_path_mtu(std::uint32_t bytes) { return std::ranges::find(kPathMtus, bytes) != kPathMtus.end(); }

}  // namespace rocebox::roce
