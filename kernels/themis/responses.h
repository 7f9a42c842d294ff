// SPDX-License-Identifier: BSD-3-Clause
// What an RC packet tells Themis.
#pragma once
#include <algorithm>

#include "kernels/themis/config.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::themis {

enum class ResponseKind : std::uint8_t { kNone, kAck, kNack, kOtherNak };

/// What a response says of requests. READ responses acknowledge, too.
struct Response {
  ResponseKind kind = ResponseKind::kNone;
  std::uint32_t aeth = 0;
};

inline Response response_of(Packet packet) {
  if (!roce::opcode_info(packet).has(roce::kIsResponse)) return {};
  const roce::Aeth* aeth = roce::aeth(packet);
  if (!aeth) return {};
  const auto word = std::uint32_t{aeth->syndrome} << 24 | static_cast<std::uint32_t>(aeth->msn);
  switch (roce::aeth_kind(aeth->syndrome)) {
    case roce::AethKind::kAck:
      return {ResponseKind::kAck, word};
    case roce::AethKind::kNak:
      if (roce::aeth_value(aeth->syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError))
        return {ResponseKind::kNack, word};
      return {ResponseKind::kOtherNak, word};
    case roce::AethKind::kRnrNak:
      return {ResponseKind::kOtherNak, word};
    default:
      return {};
  }
}

/// The path MTU that a packet shows, as its connection's full packets do; 0: none.
inline std::uint16_t path_mtu_of(Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (!info.has(roce::kHasPayload) || info.has(roce::kEndsMessage)) return 0;
  const std::uint32_t bytes = packet.meta().payload_bytes;
  return roce::is_path_mtu(bytes) ? static_cast<std::uint16_t>(bytes) : std::uint16_t{0};
}

/// PSNs that a request takes. `path_mtu`: 0 when it is not known; READ requests are then taken to need as many as there
/// could be at most.
inline std::uint32_t request_width(Packet packet, std::uint16_t path_mtu) {
  if (packet.meta().opcode != IBV_OPCODE_RC_RDMA_READ_REQUEST) return 1;
  const roce::Reth* reth = roce::reth(packet);
  if (!reth) return 1;
  const auto bytes = static_cast<std::uint32_t>(reth->dma_length);
  return std::min(roce::read_psns(bytes, path_mtu ? path_mtu : roce::kPathMtus.front()), kReadPsnsMax);
}

}  // namespace rocebox::themis
