// SPDX-License-Identifier: BSD-3-Clause
// Every bound of the runtime, each with its reason. Full means: pass unprotected or drop *and count*.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox {

/// Packets in one Batch: two DPDK bursts; one verdict byte and one pointer each stay within 10 cache lines.
inline constexpr unsigned kBatchMax = 64;

/// Kernels in one pipeline. A stage index travels in one byte; real paths have fewer than ten.
inline constexpr unsigned kStagesMax = 128;

/// Packets waiting between two shards: sixteen bursts of the longest kind.
inline constexpr unsigned kHandoverPackets = 1024;

/// Packets of a capture read ahead of a live run, for one port: at 10 Mpps what a reader's short sleep takes twice.
inline constexpr unsigned kCaptureAheadPackets = 1024;

/// Packets that have left by a port and wait for their file: what a disk that is busy for a moment leaves behind.
inline constexpr unsigned kCaptureBehindPackets = 2048;

/// Shards of one run: as many as a large machine has cores to spare; every pair of them has a queue.
inline constexpr unsigned kShardsMax = 32;

/// Traces and captures at a time: each packet's events are matched against every one of them, and marks are bits.
inline constexpr unsigned kRecordingsMax = 8;

/// Traces and captures that have ended and are still listed, so that whoever started them can read how they ended.
inline constexpr std::size_t kRecordingsEndedMax = 16;

/// What one shard has recorded and nobody has written yet: some milliseconds of 10 Gbps in full length. A power of two.
inline constexpr std::size_t kRecordRingBytes = std::size_t{8} << 20;

/// State of flows whose pages a live shard has from the start: 10,000 QPs of every kernel; at most 0.1 s of the start.
inline constexpr std::size_t kTouchedAtStartBytes = std::size_t{256} << 20;

/// Ports of one device or of one kernel. Verdicts 0xF0 and above are reserved for the engine.
inline constexpr unsigned kPortsMax = 0xF0;

/// Hops that one packet may make inside one pipeline call. Two-sided kernels may reflect packets, and two
/// reflectors facing each other would never end; a packet beyond this is dropped and counted (`drop_hop_limit`).
inline constexpr unsigned kHopsMax = 4 * kStagesMax;

/// Armed timers that a pipeline has room for without a kernel's asking for more (Context::reserve_timers).
inline constexpr std::size_t kTimersReserved = 64;

/// Timers that may fire in one instant beyond all that are armed when it begins: a kernel that re-arms for "now" for
/// ever is a bug, not a hang.
inline constexpr unsigned kTimersPerInstantMax = 1u << 20;

/// Rounds of zero-delay hand-over between devices in one instant.
inline constexpr unsigned kRoundsPerInstantMax = 4096;

/// Packets of one instant that replay hands over in one step, so that its memory is bounded: a capture whose records
/// all bear one time (seconds only) is stepped again and again in that instant. A kernel that arms a timer for "now" is
/// then woken between them, as it is when a wire without delay hands over.
inline constexpr std::size_t kPacketsPerInstant = 1024;

/// Packets of one size class of a pool. What memory allows is checked beside.
inline constexpr std::int64_t kPoolMax = std::int64_t{1} << 24;

/// Made packets that one stage can queue in one call before its list would have to allocate.
inline constexpr std::size_t kEmittedReserved = 4096;

/// Bytes held of one packet. rte_mbuf keeps segment lengths in 16 bits and rocebox packets have one segment;
/// a longer record of a capture (a big-TCP super-packet) is held cut to this, with its wire length kept.
inline constexpr std::uint32_t kPacketBytesMax = 65535 - 128;

/// IPv6 extension headers walked before BTH. RFC 8200 names six, each at most once (destination options twice).
inline constexpr unsigned kIpv6ExtensionsMax = 8;

/// Slots of a table of flows that one look-up reads, whatever keys the network sends. At the load of at most 1/2
/// chance does not get there; a key that finds no place within them is refused like one of a full table.
inline constexpr unsigned kFlowProbesMax = 256;

/// 802.1Q/802.1ad tags walked before the network header: QinQ and one to spare.
inline constexpr unsigned kVlanTagsMax = 3;

/// A configuration file: bytes, nesting depth and nodes after aliases are resolved (a "billion laughs" document
/// is refused, not expanded).
inline constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;

/// A file of data that a configuration names, such as a list of flows: a million lines.
inline constexpr std::size_t kInputFileBytesMax = std::size_t{1} << 26;
inline constexpr unsigned kConfigDepthMax = 32;
inline constexpr std::size_t kConfigNodesMax = 200'000;

/// Entries of one mapping from names (devices, links, ports, kernels of a device): hundreds are meant to be.
inline constexpr std::size_t kConfigNamesMax = 4096;

/// Mistakes listed for one configuration; more do not help the reader.
inline constexpr std::size_t kConfigMistakesMax = 50;

/// Characters of the name of a live run: a socket's path has 107 bytes for it and the folders above it.
inline constexpr std::size_t kInstanceNameMax = 48;

}  // namespace rocebox
