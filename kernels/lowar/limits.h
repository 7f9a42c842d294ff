// SPDX-License-Identifier: BSD-3-Clause
// Every bound of LoWAR, each with its reason. Full means: unprotected or released in order, *and counted*.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/component/fields.h"
#include "runtime/limits.h"

namespace rocebox::lowar {

/// A gateway's ports.
inline constexpr std::uint8_t kHostPort = 0, kLinkPort = 1;

/// Data packets of one coding block: the paper goes to 128; a longer block is repaired too late to be of use.
inline constexpr unsigned kBlockPacketsMax = 256;

/// Interleaving depth: the paper goes to 16. A stream's unit numbers stay within one cache line, and what a batch of
/// block ends makes stays within what the engine has room for.
inline constexpr unsigned kInterleavingMax = 32;

/// Packets in the reordering buffer: all may leave behind one packet, and the engine has room for so many.
inline constexpr std::int64_t kReorderingMin = 16, kReorderingMax = 3072;
static_assert(kReorderingMax + kBatchMax * 2 <= static_cast<std::int64_t>(kEmittedReserved));
static_assert(kBatchMax * (kInterleavingMax + 1) <= kEmittedReserved);

/// Coding units of one direction; their numbers are kept in 16 bits, 0 being none. The paper has 1024.
inline constexpr std::int64_t kUnitsMax = 65535;

/// Streams of one direction, 216 B in the encoder and 856 B in the decoder each: more QPs than a NIC keeps in its
/// cache.
inline constexpr std::int64_t kStreamsMax = 65536;

/// PSNs ahead of the expected one that count as loss; farther ahead the sequence has begun anew.
inline constexpr std::int32_t kWindowPsns = 4096;

/// How long a packet may be kept back, as an option: beyond any block's time, far below a host's retransmission.
inline constexpr Nanos kHoldMin = kMicrosecond, kHoldMax = kSecond;

/// How long a stream must not have been used until it may give its place, as an option: nothing of it waits any more.
inline constexpr Nanos kIdleMin = 2 * kHoldMax, kIdleMax = 86'400 * kSecond;

/// What adaptation may aim at, as options. For less than the least target, 10^8 packets could not show that there is no
/// loss; the least redundancy is that of the longest block with one repair packet.
inline constexpr double kTargetLossMin = 1e-7, kTargetLossMax = 0.1, kRedundancyMin = 1.0 / kBlockPacketsMax;
inline constexpr Nanos kDwellMin = kMillisecond, kDwellMax = 3600 * kSecond;

/// A request goes out again after this, twice this, ... until the far end says that it heeds it, at most so often.
inline constexpr Nanos kRequestInterval = 50 * kMillisecond;
inline constexpr unsigned kRequestsMax = 8;

/// Where requests are heeded, the setting is said again after so many packets: a decoder that was restarted, or missed
/// a change to uncoded, learns it then.
inline constexpr std::uint32_t kStatusPackets = 1024;

/// Packets that may overtake others on the link, as an option.
inline constexpr std::int64_t kReorderMax = 1024;

/// Recovered packets remembered for each stream, whose originals may still come late: all that one block's repair
/// packets can rebuild, for these may have overtaken as many.
inline constexpr unsigned kRecoveredKept = kInterleavingMax;

/// Repair packets of one stream that wait for late packets: those of a few blocks. When a packet comes, those that
/// cover it are looked at again.
inline constexpr unsigned kRepairsHeld = 2 * kInterleavingMax;

/// The longest stall of a sender counts for e times less after so many packets, so that what seldom happens is still
/// known. A power of two.
inline constexpr std::uint32_t kStallPackets = 8192;

/// Distances between packets of a stream that must be known before they say how long to wait: those of a default block.
/// With fewer, the distances within a sender's first burst are taken for all: see README, Patience.
inline constexpr std::uint8_t kGapsMin = 32;

/// Old PSNs in a row that are a retransmission; fewer may be duplicates.
inline constexpr unsigned kRetransmissionRun = 3;

/// Bytes of IP and UDP headers that a stream's packets may have: IPv6 with some extension headers.
inline constexpr std::uint32_t kIpUdpBytesMax = 128;

}  // namespace rocebox::lowar
