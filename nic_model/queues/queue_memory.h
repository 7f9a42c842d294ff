// SPDX-License-Identifier: BSD-3-Clause
// QueueMemory: where the rings of a queue pair are that posts by itself, by plain stores.
#pragma once
#include <linux/types.h>

#include <cstdint>

namespace rocebox::nic_model {

/// Rings and a doorbell record in memory of who posts. The NIC reads each WQE once, when it takes it, as hardware does:
/// what is written there later cannot change what was checked. The memory outlives the queue pair.
struct QueueMemory {
  const std::uint8_t* send_ring = nullptr;
  std::uint32_t send_blocks = 0;  ///< of 64 bytes; a power of two
  const std::uint8_t* receive_ring = nullptr;
  std::uint32_t receive_requests = 0;  ///< a power of two
  std::uint32_t receive_sges = 1;      ///< data segments of each, a power of two
  const __be32* doorbell = nullptr;    ///< two words: receive requests posted (the NIC reads it), blocks sent
};

/// The same of a completion queue.
struct CqMemory {
  void* ring = nullptr;              ///< CQEs of 64 bytes, as many as the queue has entries
  const __be32* doorbell = nullptr;  ///< two words: consumer index, arming
};

}  // namespace rocebox::nic_model
