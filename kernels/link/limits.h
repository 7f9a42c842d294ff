// SPDX-License-Identifier: BSD-3-Clause
// Every bound of a link, each with its reason. Full means: in order, refused or dropped, *and counted*.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/component/fields.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::link {

/// Explicit events of one direction: a test names dozens, a generated list a few thousand; each takes up to 400 bytes.
inline constexpr std::size_t kEventsMax = 4096;

/// Events without a packet number and without a PSN: every packet is held against each of them.
inline constexpr std::size_t kScannedEventsMax = 64;

/// Firings listed in the report, 32 bytes each; more are only counted. An event for every time may fire for ever.
inline constexpr std::size_t kFiringsMax = 65536;

/// Copies of one packet, by events and at random together: they are made in one call and stand on its stack.
inline constexpr std::int64_t kCopiesMax = 16;

/// Displacement by reordering: as far as the largest window of PSNs that a test looks at by default.
inline constexpr std::int64_t kReorderByMax = 4096;

/// Packets held back at once in one direction: a scan over them stays within a few dozen cache lines.
inline constexpr unsigned kHeldBackMax = 64;

/// Delay, jitter and how long a packet is held back: beyond any path on Earth, and sums stay far from 63 bits.
inline constexpr Nanos kDelayMax = 10 * kSecond;

/// Packets on their way at once, as an option. At least what can be held back; at most 48 MiB of queue.
inline constexpr std::int64_t kPacketsMin = kHeldBackMax, kPacketsMax = 1 << 20;

/// Bytes of the wire beyond the frame: room for tunnels and ATM cells, not for a second payload.
inline constexpr std::uint64_t kOverheadMax = 256;

/// Room beyond the queue's limit for what is only headers, when the queue trims: 600 trimmed packets.
inline constexpr std::uint64_t kTrimReserveBytes = 64 * 1024;

/// Bytes of a link's queue.
inline constexpr std::uint64_t kQueueBytesMax = kRateQueueBytesMax;

}  // namespace rocebox::link
