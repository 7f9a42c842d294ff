// SPDX-License-Identifier: BSD-3-Clause
// The one header that knows that a packet is an rte_mbuf.
#pragma once
#include <rte_mbuf.h>

#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "runtime/packet/prefetch.h"

namespace rocebox {

using Nanos = std::int64_t;  ///< Time in nanoseconds since the drive's origin; the only unit of time.
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();  ///< No time at all.
using Port = std::uint8_t;  ///< One numbered input or output of a kernel or device.

/// What parsing once at ingress found (roce/parse.h fills it, roce/parse.h names each value in words).
/// The order matters: class_of() reads ranges.
enum class ParseStatus : std::uint8_t {
  kUnparsed = 0,
  kRoce,  ///< RoCEv2 with a known opcode; every header up to the payload is held
  // Other traffic: passes a bump untouched.
  kNotIp,
  kNotUdp,
  kOtherUdpPort,
  kRoceV1,
  // IP fragments: the transport headers cannot be trusted or are elsewhere.
  kFirstFragment,
  kLaterFragment,
  // Truncated: headers end before they should, although what is there is well-formed.
  kSnappedEthernet,
  kSnappedIp,
  kSnappedUdp,
  kSnappedBth,
  kSnappedExtension,
  kShorterThanIpLength,  ///< the frame on the wire ends before the IP datagram does: trimmed or cut
  // A legal opcode of a service that is not taken apart here: RD, XRC, manufacturer specific.
  kUnsupportedService,
  kReservedOpcode,  ///< opcode 0x1F, which gateways may give what they send each other
  // Malformed.
  kBadIpVersion,
  kBadIpHeaderLength,
  kBadIpLength,
  kBadIpv6Extension,
  kBadUdpLength,
  kNoRoomForBth,
  kBadTransportVersion,
  kUnknownOpcode,
  kNoRoomForExtension,
  kBadPadCount,
  kCount
};

enum class PacketClass : std::uint8_t { kRoce, kOther, kFragment, kTruncated, kMalformed, kUnsupported };

/// What the stack of a host on this machine left to hardware: an unfinished checksum, a packet to be segmented. All
/// zero: nothing. The layout is that of Linux's virtio_net_hdr; ports that know it pass it on.
struct HostOffload {
  std::uint8_t flags = 0, gso_type = 0;
  std::uint16_t header_bytes = 0, segment_bytes = 0, checksum_start = 0, checksum_offset = 0;
};

/// The numbers by which packets are told apart as long as they live, wherever they go: each gets the next one, from 1,
/// when it comes to the first device or when a kernel makes it.
struct PacketIdentities {
  std::uint64_t last = 0;
};

/// Metadata beside the packet bytes, in the mbuf's private area: one cache line.
struct PacketMeta {
  Nanos arrival = 0;                 ///< when it came to the present device
  std::uint64_t identity = 0;        ///< see PacketIdentities; copies have that of their original
  std::uint32_t wire_bytes = 0;      ///< frame length on the wire without FCS; may exceed the bytes held
  std::uint32_t payload_bytes = 0;   ///< RoCE payload on the wire, without pad and ICRC
  std::uint32_t datagram_end = 0;    ///< offset just behind the IP datagram (behind the ICRC), as its length says
  std::uint16_t l3_offset = 0;       ///< IPv4 or IPv6 header
  std::uint16_t udp_offset = 0;      ///< UDP header
  std::uint16_t bth_offset = 0;      ///< BTH; 0 when there is none that can be read
  std::uint16_t payload_offset = 0;  ///< first byte behind the last extended transport header
  ParseStatus status = ParseStatus::kUnparsed;  ///< kUnparsed: the next that needs what parsing fills must parse
  Port input = 0;                               ///< device port by which it came in
  std::uint8_t opcode = 0;                      ///< BTH opcode, valid when bth_offset is
  std::uint8_t ip_version = 0;                  ///< 4 or 6, 0 when not IP
  std::uint8_t pad_bytes = 0;                   ///< BTH PadCnt
  std::uint8_t traced = 0;                      ///< the packet trace follows this packet; see TraceSink::follows
  HostOffload offload;                          ///< of packets from an interface of this machine
  std::uint8_t shared = 0;                      ///< other packets may have the same bytes; see Packet::is_shared()
  std::uint8_t watched = 0;                     ///< a trace holds a reference, for the time of a call
  std::uint8_t made = 0;                        ///< a kernel of the present device made it
  std::uint8_t spare = 0;
  Nanos entered = 0;  ///< when it entered the present kernel, of packets in a probe's sample; else 0
};
static_assert(sizeof(PacketMeta) == 64, "one cache line");

/// A view of one packet: one pointer, copied freely, owns nothing. The bytes held are contiguous.
class Packet {
 public:
  Packet() = default;
  explicit Packet(rte_mbuf* mbuf) : mbuf_(mbuf) {}

  /// Bytes held, Ethernet header first, without FCS.
  std::uint32_t size() const { return mbuf_->data_len; }
  /// Bytes on the wire; size() unless the capture was snapped or the packet is header-only.
  std::uint32_t wire_bytes() const { return meta().wire_bytes; }
  std::uint8_t* data() const { return rte_pktmbuf_mtod(mbuf_, std::uint8_t*); }
  std::span<std::uint8_t> bytes() const { return {data(), size()}; }

  /// The wire structure T at `offset`, or null when it does not fit into the bytes held.
  template <class T>
  T* header(std::uint32_t offset) const {
    static_assert(alignof(T) == 1, "wire types are made of bytes: packets start at any address");
    if (offset + sizeof(T) > size()) return nullptr;
    return rte_pktmbuf_mtod_offset(mbuf_, T*, offset);
  }

  PacketMeta& meta() const { return *static_cast<PacketMeta*>(rte_mbuf_to_priv(mbuf_)); }

  /// Whether other packets have the same bytes (Pool::share), so that they must not be written. A device
  /// that replicates makes such packets, and only a drive that has asked for them gets them (Device::allow_shared); all
  /// other owners of a packet may write it.
  bool is_shared() const { return meta().shared && has_sharers(); }

  /// Cuts the bytes held, and the length on the wire, to `bytes` (at most size()). Offsets are not re-parsed.
  void trim_to(std::uint32_t bytes) const {
    if (bytes < size()) mbuf_->data_len = static_cast<std::uint16_t>(bytes), mbuf_->pkt_len = bytes;
    if (bytes < meta().wire_bytes) meta().wire_bytes = bytes;
  }

  /// Makes it `bytes` long, on the wire too; what is new is not initialised. Whoever does so parses it again before
  /// another kernel gets it; emit() and the next device do so by themselves. False, and nothing is changed, when the
  /// buffer has no room.
  bool resize(std::uint32_t bytes) const {
    if (bytes > size() && bytes - size() > rte_pktmbuf_tailroom(mbuf_)) return false;
    mbuf_->data_len = static_cast<std::uint16_t>(bytes);
    mbuf_->pkt_len = meta().wire_bytes = bytes;
    meta().status = ParseStatus::kUnparsed;
    return true;
  }

  rte_mbuf* mbuf() const { return mbuf_; }

  /// Fetches into the cache what every device reads: lengths, metadata, and headers where a pool's packet has them.
  void prefetch() const {
    prefetch_line(mbuf_);
    prefetch_line(byte_of_buffer(kMetaAt));
    prefetch_line(byte_of_buffer(kHeadersAt));
  }
  /// The same for a packet that is some microseconds away.
  void prefetch_far() const {
    prefetch_far_line(mbuf_);
    prefetch_far_line(byte_of_buffer(kMetaAt));
    prefetch_far_line(byte_of_buffer(kHeadersAt));
  }
  /// And what only its end needs: the headers behind the BTH, and what DPDK looks at when it is freed.
  void prefetch_end() const {
    prefetch_line(byte_of_buffer(RTE_CACHE_LINE_SIZE));
    prefetch_line(byte_of_buffer(kHeadersAt + RTE_CACHE_LINE_SIZE));
  }
  explicit operator bool() const { return mbuf_ != nullptr; }

 private:
  // Of a pool's packet, from its mbuf on.
  static constexpr std::size_t kMetaAt = sizeof(rte_mbuf);
  static constexpr std::size_t kHeadersAt = kMetaAt + sizeof(PacketMeta) + RTE_PKTMBUF_HEADROOM;
  const void* byte_of_buffer(std::size_t at) const { return reinterpret_cast<const std::uint8_t*>(mbuf_) + at; }
  bool has_sharers() const {
    if (RTE_MBUF_HAS_EXTBUF(mbuf_)) return rte_mbuf_ext_refcnt_read(mbuf_->shinfo) > 1;
    if (RTE_MBUF_CLONED(mbuf_)) return rte_mbuf_refcnt_read(rte_mbuf_from_indirect(mbuf_)) > 1;
    return rte_mbuf_refcnt_read(mbuf_) > 1 + meta().watched;
  }

  rte_mbuf* mbuf_ = nullptr;
};
static_assert(sizeof(Packet) == sizeof(rte_mbuf*), "a span of packets is a span of mbuf pointers");

/// The owner of one packet: move only; frees what it still holds. Kernels let packets go with
/// Context::drop, which names the reason; the destructor is for teardown.
class PacketPtr {
 public:
  PacketPtr() = default;
  explicit PacketPtr(Packet packet) : packet_(packet) {}
  PacketPtr(PacketPtr&& other) noexcept : packet_(std::exchange(other.packet_, Packet())) {}
  PacketPtr& operator=(PacketPtr&& other) noexcept {
    std::swap(packet_, other.packet_);
    return *this;
  }
  ~PacketPtr() {
    if (packet_) rte_pktmbuf_free(packet_.mbuf());
  }
  explicit operator bool() const { return static_cast<bool>(packet_); }
  const Packet* operator->() const { return &packet_; }
  Packet operator*() const { return packet_; }
  Packet release() { return std::exchange(packet_, Packet()); }

 private:
  Packet packet_;
};

}  // namespace rocebox
