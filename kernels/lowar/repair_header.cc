// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/repair_header.h"

#include <algorithm>
#include <cstring>

#include "kernels/lowar/limits.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::lowar {
namespace {

constexpr std::uint8_t kHasFirst = 1, kHasLast = 2, kResponses = 4, kAnew = 8, kFlags = 15;

HeaderBytes common(std::uint8_t type, std::uint32_t qpn, Coding coding, std::uint32_t base_psn, unsigned flags) {
  HeaderBytes bytes{};
  bytes.opcode = roce::kOpcodeReserved;
  bytes.qpn = qpn;
  bytes.type = type;
  bytes.version_flags = static_cast<std::uint8_t>(kVersion << 4 | flags);
  bytes.r = coding.r;
  bytes.c = coding.c;
  bytes.base_psn = base_psn;
  return bytes;
}

// What both types have; false when it is impossible.
bool read(std::span<const std::uint8_t> bytes, std::uint8_t type, HeaderBytes& header, Coding& coding) {
  if (bytes.size() < sizeof(HeaderBytes)) return false;
  std::memcpy(&header, bytes.data(), sizeof(HeaderBytes));
  coding = {static_cast<std::uint16_t>(header.r), header.c};
  return header.opcode == roce::kOpcodeReserved && header.type == type && header.version_flags >> 4 == kVersion &&
         coding.c <= kInterleavingMax && coding.r >= coding.c && coding.r <= kBlockPacketsMax &&
         (coding.off() ? type == kTypeNegotiation && coding.r == 0 : true);
}

}  // namespace

HeaderBytes encode(const RepairHeader& header) {
  const Block& block = header.block;
  const unsigned flags = (block.has_first ? kHasFirst : 0u) | (block.has_last ? kHasLast : 0u) |
                         (block.responses ? kResponses : 0u) | (block.anew ? kAnew : 0u);
  HeaderBytes bytes = common(kTypeRepair, header.qpn, block.coding, block.base_psn, flags);
  bytes.isn = header.isn;
  bytes.packets = block.packets;
  bytes.last_bytes = block.last_bytes;
  bytes.hop_sum = header.hop_sum;
  bytes.set_sum = header.set_sum;
  bytes.sent = header.sent;
  return bytes;
}

HeaderBytes encode(const NegotiationHeader& header) {
  HeaderBytes bytes =
      common(kTypeNegotiation, header.qpn, header.coding, header.base_psn, header.responses ? kResponses : 0u);
  bytes.isn = static_cast<std::uint8_t>(header.kind);
  bytes.packets = header.serial;
  bytes.last_bytes = header.sent;
  bytes.set_sum = header.token;
  return bytes;
}

std::optional<RepairHeader> parse_repair(std::span<const std::uint8_t> bytes) {
  HeaderBytes raw;
  RepairHeader header;
  if (!read(bytes, kTypeRepair, raw, header.block.coding)) return {};
  Block& block = header.block;
  const unsigned flags = raw.version_flags & kFlags;
  header.qpn = static_cast<std::uint32_t>(raw.qpn);
  header.isn = raw.isn;
  header.sent = raw.sent;
  header.hop_sum = static_cast<std::uint16_t>(raw.hop_sum);
  header.set_sum = static_cast<std::uint32_t>(raw.set_sum);
  block.base_psn = static_cast<std::uint32_t>(raw.base_psn);
  block.packets = static_cast<std::uint16_t>(raw.packets);
  block.last_bytes = static_cast<std::uint16_t>(raw.last_bytes);
  block.has_first = flags & kHasFirst;
  block.has_last = flags & kHasLast;
  block.responses = flags & kResponses;
  block.anew = flags & kAnew;
  constexpr std::size_t kTransportMin = sizeof(roce::Bth) + roce::kIcrcBytes;
  if (bytes.size() < sizeof(HeaderBytes) + sizeof(CodedPrefix) + kTransportMin) return {};
  const std::size_t transport_max = bytes.size() - sizeof(HeaderBytes) - sizeof(CodedPrefix);
  if (block.packets < 1 || block.packets > block.coding.r) return {};
  if (header.isn >= std::min<unsigned>(block.coding.c, block.packets)) return {};
  if (block.has_last ? block.last_bytes < kTransportMin : block.last_bytes != 0) return {};
  // The last packet is in the share whose number it has.
  const bool covers_last = (block.packets - 1u) % block.coding.c == header.isn;
  if (block.has_last && covers_last && block.last_bytes > transport_max) return {};
  return header;
}

std::optional<NegotiationHeader> parse_negotiation(std::span<const std::uint8_t> bytes) {
  HeaderBytes raw;
  NegotiationHeader header;
  if (bytes.size() != sizeof(HeaderBytes) || !read(bytes, kTypeNegotiation, raw, header.coding)) return {};
  const unsigned flags = raw.version_flags & kFlags;
  if (flags & ~unsigned{kResponses}) return {};
  header.kind = static_cast<NegotiationKind>(raw.isn);
  if (header.kind < NegotiationKind::kAnnounce || header.kind > NegotiationKind::kStatus) return {};
  if (raw.sent || raw.hop_sum) return {};
  header.sent = static_cast<std::uint16_t>(raw.last_bytes);
  if (header.sent && header.kind == NegotiationKind::kRequest) return {};
  header.serial = static_cast<std::uint16_t>(raw.packets);
  header.token = static_cast<std::uint32_t>(raw.set_sum);
  header.qpn = static_cast<std::uint32_t>(raw.qpn);
  header.base_psn = static_cast<std::uint32_t>(raw.base_psn);
  header.responses = flags & kResponses;
  return header;
}

}  // namespace rocebox::lowar
