// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a NIC's DPA.
#pragma once
#include <cstddef>
#include <cstdint>

#include "nic_model/dpa/timing.h"
#include "runtime/component/fields.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model::dpa {

/// Threads of one DPA: BlueField-3 has 16 cores of 16.
inline constexpr std::int64_t kCoresMax = 16, kThreadsPerCoreMax = 16;
inline constexpr std::size_t kThreadsMax = kCoresMax * kThreadsPerCoreMax;

/// Queues that one thread looks at in one loop: more, and it only takes turns.
inline constexpr std::size_t kPolledMax = 16;

/// Bytes of one message of the print stream, as the device has them.
inline constexpr std::size_t kMessageBytesMax = 512;

/// Messages of the print stream that are kept for the report; the rest is counted.
inline constexpr std::size_t kMessagesKept = 64;

/// Windows of one process.
inline constexpr std::size_t kWindowsMax = 64;

/// Calls of the device API by one thread without giving way after which others have their turn.
inline constexpr unsigned kTurnCalls = 256;

/// Fences without anything to see, from an activation or a CQE on, after which a thread waits until something happens;
/// and when it is then looked at again.
inline constexpr unsigned kFences = 4096, kFencesOfLook = 64;

/// Turns in one call of the NIC, which then does its other work and comes back in the same instant.
inline constexpr unsigned kTurnsOfCall = 4096;

/// After something was done that a waiting thread may see in memory, it looks after so long; then after twice that, and
/// so on, while nothing comes of it.
inline constexpr Nanos kLookAfter = 1000;

/// Cycles that pass for a thread while it reads its counter of cycles.
inline constexpr std::uint64_t kCyclesOfReading = 4;

struct DpaConfig {
  void fields(Fields& fields);
  std::size_t threads() const { return static_cast<std::size_t>(cores * threads_per_core); }

  std::int64_t cores = kCoresMax, threads_per_core = kThreadsPerCoreMax;
  std::uint64_t stack = 64 << 10, heap = 16 << 20;
  Nanos watchdog = 100'000'000;
  TimingConfig timing;
};

}  // namespace rocebox::nic_model::dpa
