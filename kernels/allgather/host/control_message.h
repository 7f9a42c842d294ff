// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell each other over reliable connections: one SEND of 32 bytes each.
#pragma once
#include <cstdint>

#include "runtime/roce/headers.h"

namespace rocebox::allgather {

enum class MessageType : std::uint8_t { kBarrier = 1, kActivate, kRequest, kAcknowledge, kFinal, kMember, kGoodbye };

/// On the wire, big-endian. README.md has the table.
struct ControlMessage {
  std::uint8_t type = 0;
  std::uint8_t reserved0 = 0;
  roce::Be16 communicator{};
  roce::Be32 sequence{};  ///< of the collective, in its communicator; kMember: the subgroup
  roce::Be32 argument{};  ///< kBarrier: the step; kRequest, kAcknowledge: the block; kMember: the rank
  roce::Be32 rkey{};      ///< kAcknowledge: of the block that may be read; kMember: the queue pair that sends
  roce::Be64 address{};   ///< kAcknowledge: where it begins
  roce::Be64 reserved1{};
};
static_assert(sizeof(ControlMessage) == 32);

}  // namespace rocebox::allgather
