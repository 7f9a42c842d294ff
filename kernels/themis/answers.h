// SPDX-License-Identifier: BSD-3-Clause
// What an RC packet tells Themis.
#pragma once
#include "kernels/themis/config.h"
#include "runtime/roce/parse.h"

namespace rocebox::themis {

enum class AnswerKind : std::uint8_t { kNone, kAck, kNack, kOtherNak };

/// What a response says of requests. READ responses acknowledge, too.
struct Answer {
  AnswerKind kind = AnswerKind::kNone;
  std::uint32_t aeth = 0;
};

inline Answer answer_of(Packet packet) {
  if (!roce::opcode_info(packet).has(roce::kIsResponse)) return {};
  const roce::Aeth* aeth = roce::aeth(packet);
  if (!aeth) return {};
  const auto word = std::uint32_t{aeth->syndrome} << 24 | static_cast<std::uint32_t>(aeth->msn);
  switch (roce::aeth_kind(aeth->syndrome)) {
    case roce::AethKind::kAck:
      return {AnswerKind::kAck, word};
    case roce::AethKind::kNak:
      if (roce::aeth_value(aeth->syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError))
        return {AnswerKind::kNack, word};
      return {AnswerKind::kOtherNak, word};
    case roce::AethKind::kRnrNak:
      return {AnswerKind::kOtherNak, word};
    default:
      return {};
  }
}

/// PSNs that a request takes. The path MTU is not known here: of READ requests as many as there could be at most.
inline std::uint32_t request_width(Packet packet) {
  if (packet.meta().opcode != IBV_OPCODE_RC_RDMA_READ_REQUEST) return 1;
  const roce::Reth* reth = roce::reth(packet);
  const std::uint64_t psns = reth ? (static_cast<std::uint64_t>(reth->dma_length) + 255) / 256 : 1;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(psns, 1, kReadPsnsMax));
}

}  // namespace rocebox::themis
