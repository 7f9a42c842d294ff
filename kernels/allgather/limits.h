// SPDX-License-Identifier: BSD-3-Clause
// Every bound of the multicast collectives, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::allgather {

/// Ranks of one communicator: a control message names a rank by 16 bits, and each has a bit in no table but its own.
inline constexpr unsigned kRanksMax = 1u << 14;

/// Multicast subgroups of a communicator. The paper's DPA has 256 threads, one a subgroup.
inline constexpr unsigned kSubgroupsMax = 256;

/// Slots of a staging ring: the longest receive queue of BlueField-3 (III-D).
inline constexpr unsigned kStagingSlotsMax = 8192;

/// Bytes in front of each datagram's payload in its slot: the global routing header.
inline constexpr std::uint32_t kGrhBytes = 40;

/// Communicators of one host: the paper's DPA cache holds 16 with their bitmaps (III-D).
inline constexpr unsigned kCommunicatorsMax = 16;

/// Collectives of one communicator that may be under way: each has a bitmap and a range of immediates of its own.
inline constexpr unsigned kOutstandingMax = 16;

/// Steps of a barrier: two, and one for each bit of a rank.
inline constexpr unsigned kBarrierStepsMax = 2 + 14;

/// Registrations that are kept for buffers that come again; beyond them the one that was used longest ago goes.
inline constexpr std::size_t kRegistrationsMax = 256;

}  // namespace rocebox::allgather
