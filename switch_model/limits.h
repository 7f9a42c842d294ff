// SPDX-License-Identifier: BSD-3-Clause
// Every bound of the switch model, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::switch_model {

/// Ports of one switch. Tofino 2 has 64 of 200 Gbps; a ToR of 16 NICs and 128 paths needs more, and has it here.
inline constexpr unsigned kSwitchPortsMax = 160;

/// Independent pipes of one switch; each has register arrays of its own. Tofino 2 has four.
inline constexpr unsigned kPipesMax = 4;

/// Programs of one switch, run one behind the other in each control.
inline constexpr unsigned kProgramsMax = 8;

/// Resources (tables, register arrays, ...) of all programs of a switch: strict mode keeps one bit each per packet.
inline constexpr unsigned kResourcesMax = 128;

/// Words of metadata that travel with a packet from ingress to egress and into its mirrors, shared by all programs.
inline constexpr unsigned kMetadataWords = 8;

/// Packets that wait to pass a control again (mirrored, recirculated): what a loopback port buffers.
inline constexpr unsigned kLoopPackets = 4096;

/// Passes through the switch that one packet may make: a program that recirculates for ever drops and counts.
inline constexpr unsigned kPassesMax = 16;

/// Replicas of one packet of a multicast group: one a port.
inline constexpr unsigned kGroupMembersMax = kSwitchPortsMax;
inline constexpr std::int64_t kGroupMax = 0xFFFE;
inline constexpr std::size_t kGroupsMax = 1024;

/// Mirror sessions; 0 is none. Tofino 2 has 256.
inline constexpr std::int64_t kMirrorSessionMax = 255;
/// The least that a copy is cut to: an Ethernet frame.
inline constexpr std::uint64_t kMirrorBytesMin = 60;

/// Applications of the packet generator. Tofino 2 has 16 for each pipe.
inline constexpr std::size_t kApplicationsMax = 16;
/// A live run that was busy elsewhere makes up for so much at most; what is later is left out and counted.
inline constexpr std::int64_t kGeneratorLagMax = 10'000'000;
/// Batches of generated packets in one call: what leaves then has room in kFollowersReserved.
inline constexpr unsigned kGeneratedBatchesMax = 16;

/// Traffic classes, and queues of one port: the eight priorities of 802.1Q, which PFC pauses one by one.
inline constexpr unsigned kQueuesPerPort = 8;

/// Flows that `forward` remembers the way of, 16 bytes each: with 8192 of them at once, every eighth shares its place
/// with another one. A power of two.
inline constexpr std::size_t kRecentFlows = std::size_t{1} << 16;
/// Places for them in use before the first have to share: a page of memory.
inline constexpr std::size_t kRecentFlowsAtFirst = 256;

/// Violations of the hardware's discipline that are kept with their words; more are counted.
inline constexpr std::size_t kViolationsKept = 32;

/// Entries of one table or register array: what a megabit field could index, beyond any real pipe.
inline constexpr std::int64_t kEntriesMax = std::int64_t{1} << 24;

}  // namespace rocebox::switch_model
