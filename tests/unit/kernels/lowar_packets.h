// SPDX-License-Identifier: BSD-3-Clause
// Packets for tests of LoWAR's single objects, which take packets and not frames.
#pragma once
#include <utility>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar::kit {

/// Makes parsed packets; these must go before it does.
class Packets {
 public:
  PacketPtr of(const Frame& frame) {
    PacketPtr packet = pool_.allocate(static_cast<std::uint32_t>(frame.size()));
    std::copy(frame.begin(), frame.end(), packet->data());
    packet->meta().wire_bytes = packet->size();
    roce::parse(*packet);
    return packet;
  }
  /// A packet of this opcode and PSN.
  PacketPtr one(std::uint8_t opcode, std::uint32_t psn, std::size_t bytes = 256, std::uint32_t dma_length = 0) {
    Sender sender(psn);
    return of(sender.one(opcode, bytes, dma_length));
  }
  /// From the middle of a WRITE.
  PacketPtr middle(std::uint32_t psn) { return one(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, psn); }

 private:
  Pool pool_{{.small = 128, .large = 4, .giant = 2}};
};

}  // namespace rocebox::lowar::kit
