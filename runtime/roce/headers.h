// SPDX-License-Identifier: BSD-3-Clause
// The RoCEv2 wire: every header as bytes in network order (IB specification, volume 1, chapter 9; annex A17).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/limits.h"

namespace rocebox::roce {

/// An unsigned big-endian number of N bytes; alignment 1.
template <std::size_t N>
struct BigEndian {
  std::uint8_t bytes[N];
  constexpr std::uint64_t get() const {
    std::uint64_t value = 0;
    for (std::uint8_t byte : bytes) value = value << 8 | byte;
    return value;
  }
  constexpr void set(std::uint64_t value) {
    for (std::size_t i = N; i-- > 0; value >>= 8) bytes[i] = static_cast<std::uint8_t>(value);
  }
  constexpr operator std::uint64_t() const { return get(); }
  constexpr BigEndian& operator=(std::uint64_t value) {
    set(value);
    return *this;
  }
};
using Be16 = BigEndian<2>;
using Be24 = BigEndian<3>;
using Be32 = BigEndian<4>;
using Be64 = BigEndian<8>;
/// The 16 bits in network order at `at`.
inline std::uint32_t load_be16(const std::uint8_t* at) { return std::uint32_t{at[0]} << 8 | at[1]; }

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint32_t kIcrcBytes = 4;
inline constexpr std::uint16_t kEtherIpv4 = 0x0800, kEtherIpv6 = 0x86dd, kEtherRoceV1 = 0x8915;
inline constexpr std::uint16_t kEtherVlan = 0x8100, kEtherQinq = 0x88a8, kEtherQinqOld = 0x9100;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
/// ECN codepoints (RFC 3168), the two low bits of ToS or traffic class.
inline constexpr std::uint8_t kEcnMask = 3, kEcnNotEct = 0, kEcnEct1 = 1, kEcnEct0 = 2, kEcnCe = 3;

struct Ethernet {
  std::uint8_t destination[6], source[6];
  Be16 type;
};
struct VlanTag {
  Be16 tci;
  Be16 type;
};
struct Ipv4 {
  std::uint8_t version_ihl, tos;
  Be16 total_length, identification, flags_fragment;
  std::uint8_t ttl, protocol;
  Be16 checksum;
  std::uint8_t source[4], destination[4];
  unsigned header_bytes() const { return (version_ihl & 0xFu) * 4u; }
};
struct Ipv6 {
  Be32 version_class_label;
  Be16 payload_length;
  std::uint8_t next_header, hop_limit;
  std::uint8_t source[16], destination[16];
};
struct Udp {
  Be16 source_port, destination_port, length, checksum;
};

/// Base Transport Header, 9.2.
struct Bth {
  std::uint8_t opcode;
  std::uint8_t se_m_pad_tver;  ///< solicited event, MigReq, PadCnt (2), TVer (4)
  Be16 pkey;
  std::uint8_t fecn_becn_resv6;  ///< A17/CNP: FECN, BECN, six reserved bits; masked in the ICRC as resv8a
  Be24 destination_qp;
  std::uint8_t ack_req_resv7;
  Be24 psn;

  bool solicited_event() const { return se_m_pad_tver & 0x80; }
  bool mig_req() const { return se_m_pad_tver & 0x40; }
  unsigned pad_count() const { return se_m_pad_tver >> 4 & 3u; }
  unsigned transport_version() const { return se_m_pad_tver & 0xFu; }
  bool fecn() const { return fecn_becn_resv6 & 0x80; }
  bool becn() const { return fecn_becn_resv6 & 0x40; }
  bool ack_req() const { return ack_req_resv7 & 0x80; }
};
/// RDMA Extended Transport Header, 9.3.3.
struct Reth {
  Be64 virtual_address;
  Be32 rkey, dma_length;
};
/// ACK Extended Transport Header, 9.3.5; the syndrome's values are in opcodes.h.
struct Aeth {
  std::uint8_t syndrome;
  Be24 msn;
};
/// Immediate data, 9.3.6 (in the order the application gave, so bytes rather than a number).
struct ImmDt {
  Be32 data;
};
/// Invalidate Extended Transport Header, 9.3.7: the R_Key to invalidate.
struct Ieth {
  Be32 rkey;
};
/// Atomic Extended Transport Header, 9.3.4.
struct AtomicEth {
  Be64 virtual_address;
  Be32 rkey;
  Be64 swap_add, compare;
};
/// Atomic ACK Extended Transport Header, 9.3.5.3.
struct AtomicAckEth {
  Be64 original;
};
/// Datagram Extended Transport Header, 9.3.2.
struct Deth {
  Be32 qkey;
  std::uint8_t reserved;
  Be24 source_qp;
};
/// Congestion notification packet: 16 reserved bytes behind BTH (annex A17.9.3).
struct Cnp {
  std::uint8_t reserved[16];
};

/// Walks Ethernet and its VLAN tags to the network header: its `offset`, and its `type` as the last tag says. False
/// when the frame is too short for that.
inline bool find_network(const std::uint8_t* data, std::uint32_t size, std::uint32_t& offset, std::uint32_t& type) {
  if (size < sizeof(Ethernet)) return false;
  offset = sizeof(Ethernet);
  type = static_cast<std::uint32_t>(data[12] << 8 | data[13]);
  for (unsigned tags = 0; tags < kVlanTagsMax; tags++) {
    if (type != kEtherVlan && type != kEtherQinq && type != kEtherQinqOld) break;
    if (size < offset + sizeof(VlanTag)) return false;
    type = static_cast<std::uint32_t>(data[offset + 2] << 8 | data[offset + 3]);
    offset += static_cast<std::uint32_t>(sizeof(VlanTag));
  }
  return true;
}

static_assert(sizeof(Ethernet) == 14 && sizeof(VlanTag) == 4 && sizeof(Ipv4) == 20 && sizeof(Ipv6) == 40);
static_assert(sizeof(Udp) == 8 && sizeof(Bth) == 12 && sizeof(Reth) == 16 && sizeof(Aeth) == 4);
static_assert(sizeof(ImmDt) == 4 && sizeof(Ieth) == 4 && sizeof(AtomicEth) == 28 && sizeof(AtomicAckEth) == 8);
static_assert(sizeof(Deth) == 8 && sizeof(Cnp) == 16 && alignof(AtomicEth) == 1);

}  // namespace rocebox::roce
