// SPDX-License-Identifier: BSD-3-Clause
// Every bound of the observer, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::allgather {

/// Streams (group, source queue pair, collective): all ranks of the paper's largest model in 64 subgroups, or of 64
/// collectives.
inline constexpr std::int64_t kStreamsMax = 1 << 16;

/// Chunks of a stream that are told apart: 4 GiB of a source at 4 KiB each.
inline constexpr std::int64_t kWindowMax = 1 << 20;

/// Bits of all windows together: 1 GiB.
inline constexpr std::int64_t kWindowBitsMax = std::int64_t{1} << 33;

/// Collectives by their bits of the immediate: with the usual division there are 256.
inline constexpr std::int64_t kCollectivesMax = 1 << 16;

/// Groups, each with a staging ring of its own: the paper's DPA has 256 threads, one a subgroup.
inline constexpr std::int64_t kGroupsMax = 1024;

/// Slots of a staging ring: the longest receive queue of BlueField-3 (III-D).
inline constexpr std::int64_t kSlotsMax = 8192;

/// Events that are kept: what a person reads.
inline constexpr std::int64_t kEventsMax = 1 << 16;

/// Runs of missing chunks that a stream's row in the report names.
inline constexpr std::size_t kGapsShown = 16;

}  // namespace rocebox::allgather
