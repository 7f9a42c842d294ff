// SPDX-License-Identifier: BSD-3-Clause
// Bounds of the kernel dpa, each with its reason.
#pragma once
#include <cstdint>

namespace rocebox::dpa_observer {

/// Queue pairs that are watched: 64 bytes each.
inline constexpr std::int64_t kFlowsMax = 1 << 20;

/// CQEs of one queue: 1 MiB of the heap.
inline constexpr std::int64_t kCqEntriesMax = 1 << 14;

/// Receives of one thread that have a buffer: a message that spans many packets keeps its own while others end.
inline constexpr std::uint32_t kReceives = 64;

/// Send WQEs of one thread, which nobody executes.
inline constexpr std::uint32_t kSendBlocks = 64;

/// Packets in a row that a responder would not take, after which the next beginning of a message is taken for a new
/// connection: a capture may have lost packets, and QPNs are used again. Beyond what a sender has under way.
inline constexpr std::uint32_t kStrayPacketsMax = 1024;

/// Rows of `qps`, and functions in `results`.
inline constexpr std::size_t kQpsMax = 1024, kResultsMax = 16;

/// Bytes before the payload of a datagram in its buffer: where a NIC puts the GRH.
inline constexpr std::uint32_t kGrhBytes = 40;

}  // namespace rocebox::dpa_observer
