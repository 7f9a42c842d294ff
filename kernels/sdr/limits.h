// SPDX-License-Identifier: BSD-3-Clause
// Every bound of SDR's queue pairs and of the reliability above them, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::sdr {

/// Channels of a queue pair: one worker, a thread of the DPA, each; the paper's scaling ends at 128 threads.
inline constexpr std::uint32_t kChannelsMax = 128;

/// Generations: each is a queue pair a channel; 1024 is what a NIC has at first.
inline constexpr std::uint32_t kGenerationsMax = 64;

/// Root keys that a queue pair goes round; the peer is told all of them.
inline constexpr std::uint32_t kRootKeysMax = 64;

/// Entries of a root key, in multiples of the message IDs: with the most of them as many as a key can have.
inline constexpr std::uint32_t kRootEntriesMax = 1024;

/// Queue pairs of SDR at one NIC: as many windows as a process of the DPA has.
inline constexpr std::uint32_t kQueuePairsMax = 64;

/// WQEs and receive requests of one queue pair of the NIC: a burst of a live port, twice; the receives more, for
/// workers give them back only when they have their turn.
inline constexpr std::uint32_t kLogSendBlocks = 6, kLogReceives = 8;

/// Completions of one worker: the receive requests of all queue pairs that share its queue, so that it never overruns.
inline constexpr std::uint32_t kLogCompletionsMax = 16;

/// Batches that wait for one transmit worker: of 16 queue pairs of the NIC as many as their send queues hold, by one.
inline constexpr std::uint32_t kLogOrders = 10;

/// How long a queue pair waits that found a worker's ring full and hears of no completion, in ns: some batches' time.
inline constexpr std::int64_t kOrderAgainNs = 10'000;

/// Control messages that wait at either end, and bytes of each: an ACK with its bitmap takes 532. Of a datagram 4 say
/// of which connection it is.
inline constexpr std::uint32_t kControlBuffers = 256, kControlBytes = 1024, kDatagramBytes = kControlBytes - 4;

/// Times that a control connection goes on after its peer was silent for all tries of the NIC: with these, eight of
/// 67 ms, a peer may be kept from its work for nine seconds.
inline constexpr std::uint32_t kControlResumes = 16;

/// Parts that a receiver has given up and remembers, so that nobody takes them for done: as many as can be under way.
inline constexpr std::size_t kFailedPartsMax = 4096;

/// Pieces of messages that are posted and not yet sent; then posting says that it is to be tried again.
inline constexpr std::size_t kSegmentsMax = 4096;

}  // namespace rocebox::sdr
