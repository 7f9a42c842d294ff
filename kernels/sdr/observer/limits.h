// SPDX-License-Identifier: BSD-3-Clause
// Bounds of the kernel sdr, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::sdr::observer {

/// Connections of SDR that are watched: each has a slot for every message ID.
inline constexpr std::int64_t kGroupsMax = 1024;

/// Transport queue pairs in all: channels times generations of each connection.
inline constexpr std::int64_t kQpsMax = 1 << 16;

/// Generations of queue pairs: beyond that message IDs go round so often that nothing is late any more.
inline constexpr std::int64_t kGenerationsMax = 64;

/// Message IDs that are learnt to be all: fewer are too few to tell.
inline constexpr std::uint32_t kIdsMin = 8;

/// Bytes of slots and bitmaps together.
inline constexpr std::uint64_t kStateBytesMax = std::uint64_t{4} << 30;

/// Rows of `queue_pairs`.
inline constexpr std::size_t kQpRowsMax = 4096;

/// Runs of missing packets that a message's row names: kept of each message that is listed when its ID is used again.
inline constexpr unsigned kMissingRunsMax = 8;

}  // namespace rocebox::sdr::observer
