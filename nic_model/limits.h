// SPDX-License-Identifier: BSD-3-Clause
// Every bound of the NIC model, each with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rocebox::nic_model {

/// Queue pairs of one NIC. Their numbers have 24 bits; a table of as many states is what memory bears.
inline constexpr std::uint32_t kQpsMax = 1u << 17;

/// Work requests of one queue, as mlx5's max_qp_wr: the wqe_counter of a CQE has 16 bits and counts blocks of 64 bytes.
inline constexpr std::uint32_t kWorkRequestsMax = 1u << 15;

/// Blocks of 64 bytes of one send queue's ring, as mlx5's max_send_wqebb: doorbell records and CQEs count blocks with
/// 16 bits, so that of a longer ring an old WQE could not be told from a new one.
inline constexpr std::uint32_t kSendBlocksMax = 1u << 15;

/// Entries of one completion queue: a doorbell record has 24 bits of consumer index.
inline constexpr std::uint32_t kCqEntriesMax = 1u << 22;

/// Scatter-gather entries of one work request: a WQE has at most 63 segments of 16 bytes; ConnectX takes 30.
inline constexpr std::uint32_t kSgesMax = 30;

/// Bytes of one message: IB specification, volume 1, 9.7.
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 31;

/// Bytes that a work request may carry within itself: ConnectX's limit is near a kilobyte.
inline constexpr std::uint32_t kInlineBytesMax = 512;

/// PSNs of work requests that a requester has read and not completed: with one more message of the longest kind they
/// stay within half of the PSNs, where before and after can be told.
inline constexpr std::uint32_t kPsnsReadMax = 1u << 21;

/// Packets of one queue pair that may be on their way: 4 GiB of 1024 bytes. Receivers that place WRITEs as they come
/// have a bit for each of twice as many, 1 MiB, and stay within half of the PSNs; senders of `selective` one for each.
inline constexpr std::uint32_t kWindowMax = 1u << 22;

/// PSNs of one queue pair that wait to be sent again with `rnic_sr`, two for each NAK: at most 128 KiB, which grow with
/// what waits. What has no room there is left to the timer.
inline constexpr std::uint32_t kResendsMax = 1u << 15;

/// Longest retransmission timeout, ns: beyond any path on earth, and long enough for what is never to be sent again.
inline constexpr std::int64_t kRetransmissionTimeoutMax = 100'000'000'000;

/// Longest stall after a packet that was sent again, ns: what is fitted to Themis's figures is some microseconds.
inline constexpr std::int64_t kRetransmitStallMax = 1'000'000;

/// READs and atomics of one queue pair that are not yet answered, at either end: ConnectX has 16, mlx5 says 128.
inline constexpr unsigned kRdAtomicMax = 128;

/// Memory regions of one NIC; a key has 24 bits of index.
inline constexpr std::uint32_t kRegionsMax = 1u << 20;

/// Where Memory::map() begins: above what 32 bits address, so that a cut-off address is seen, and off the addresses of
/// regions without bytes, which begin at 0.
inline constexpr std::uint64_t kMappingsFrom = std::uint64_t{1} << 40;

/// Pieces of an indirect memory key; reading goes through them one by one.
inline constexpr std::size_t kIndirectPiecesMax = 1024;

/// Entries of a table of pieces of one stride, which are found without a search; memory is what bounds them.
inline constexpr std::uint32_t kTableEntriesMax = 1u << 20;

/// Indirect keys that name indirect keys: hardware has a fixed depth, too.
inline constexpr unsigned kIndirectDepthMax = 4;

/// Packets that leave in one call where the port has no rate or catches up: one burst of a live port.
inline constexpr unsigned kSendBurst = 32;

/// Neighbours whose MAC address is known or asked for; a gateway counts once.
inline constexpr std::size_t kNeighborsMax = 4096;

/// Connections of RDMA CM of one NIC, those that end counted: as many as queue pairs; a slot's number is 17 bits of its
/// communication ID.
inline constexpr unsigned kConnectionBits = 17;
inline constexpr std::uint32_t kConnectionsMax = 1u << kConnectionBits;

/// Services that programs of one NIC listen for.
inline constexpr std::size_t kListenersMax = 4096;

/// Requests for one service that are not yet connections: so many a stranger can make the host keep. As Linux's
/// rdma_ucm (max_backlog).
inline constexpr std::uint32_t kBacklogMax = 1024;

/// Datagram services' replies that are kept to be sent again; the oldest goes first.
inline constexpr std::size_t kResolutionsKept = 1024;

/// Longest wait for a message of the connection manager, whatever the other side says of its timeouts (5 bits: up
/// to 2.4 hours); Linux bounds them by 30 s for the same reason.
inline constexpr std::int64_t kCmWaitMax = 60'000'000'000;

/// Multicast groups of one NIC: mlx5's max_mcast_grp is 2^21; a host that emulates many is content with as many as a
/// switch's table of groups has.
inline constexpr std::size_t kMulticastGroupsMax = 8192;

/// Queue pairs of one group, each of which a datagram is copied to: mlx5's max_mcast_qp_attach.
inline constexpr std::size_t kMulticastQpsMax = 240;

/// Windows of a queue pair that takes WRITEs to groups, an extension: as many as collectives of a group may be under
/// way.
inline constexpr std::size_t kGroupWindowsMax = 64;

/// Sources that may be in the midst of such a WRITE at a queue pair, each with 56 bytes of state: of a collective as
/// many as broadcast at once. One that loses its end keeps its place until it begins another, or its window is cleared.
inline constexpr std::size_t kGroupSourcesMax = 1024;

/// Packets that the NIC itself has to send (ARP, ICMP, CNP) and that wait for the transmitter; more are dropped and
/// counted.
inline constexpr std::size_t kControlPacketsMax = 1024;

/// Bytes that a weighted group of queue pairs may send for each unit of its weight before others have their turn: one
/// packet of the longest MTU.
inline constexpr std::int64_t kGroupTurnBytes = 4096 + 128;

/// The greedy scheduler's `turn`, fitted to SCR's Table 2 (rate/README.md): with so many bytes a turn begins no other
/// message.
inline constexpr std::uint64_t kGreedyTurnBytes = 36 << 10;

/// Bytes of a packet of IP beside the payload that Linux leaves room for when it makes a path MTU of an interface's MTU
/// (iboe_get_mtu): the headers of IPv6, UDP, BTH, XRC and atomics, and the ICRC.
inline constexpr std::uint32_t kPathMtuHeaderBytes = 40 + 8 + 12 + 4 + 28 + 4;

/// Packets between queue pairs of one NIC that are on their way: 4 MiB of the longest MTU, as a staging area has.
inline constexpr std::size_t kLoopbackPackets = 1024;

/// Bytes that are chosen ahead of the wire, by the greedy scheduler (`ahead`, fitted, too) or while they are read over
/// PCIe, in so many packets at most.
inline constexpr std::uint64_t kStagedBytes = 60 << 10;
inline constexpr std::size_t kStagedPackets = 128;

}  // namespace rocebox::nic_model
