// SPDX-License-Identifier: BSD-3-Clause
// Messages by which hosts and routers agree on who is a member of multicast groups: IGMP version 1 (RFC 1112), 2 (RFC
// 2236) and 3 (RFC 3376), MLD version 1 (RFC 2710) and 2 (RFC 3810): read and written.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"

namespace rocebox::roce {

/// What a packet says of groups.
struct Membership {
  enum class Kind : std::uint8_t {
    kNone,   ///< nothing: it is no message of these protocols, or of a type that is not known
    kQuery,  ///< who is a member? of `group`, or of all where that is zero
    kReport,
    kLeave,
    kBad,  ///< one that must not be acted upon: see `error`
  };
  enum class Error : std::uint8_t {
    kNone,
    kLength,  ///< shorter than its type or its records say, or not held whole
    kChecksum,
    kHopLimit,  ///< it has come through a router: TTL or hop limit is not 1
    kAddress,   ///< what it names as a group is none, or its own source or destination cannot be
  };

  Kind kind = Kind::kNone;
  Error error = Error::kNone;
  bool is_mld = false;
  std::uint8_t version = 0;
  std::uint16_t records = 0;  ///< of IGMPv3 and MLDv2 reports
  std::uint32_t offset = 0;   ///< of the message in the packet
  std::uint32_t end = 0;      ///< behind it
  Nanos response_time = 0;    ///< of queries: within which hosts answer
  IpAddress source{}, group{};
};

/// For packets that have been parsed. Reads the bytes held alone, and is total on all inputs.
Membership read_membership(Packet packet);

/// Of a report or leave: `each(group, joins)` for every group that it names. One that asks for some sources joins: who
/// forwards by groups alone gives it all of them (RFC 3376, 7.1; RFC 4541, 2.1.2).
template <class Each>
void for_each_group(Packet packet, const Membership& message, Each&& each);

/// Groups whose traffic every port gets, whoever has joined: 224.0.0.0/24 (RFC 4541, 2.1.2) and ff02::/16, where hosts
/// find each other.
bool is_link_local_group(const IpAddress& group);

/// A message to be written. All have the router alert option, and the MAC address of whom they go to.
struct MembershipFrame {
  Membership::Kind kind = Membership::Kind::kQuery;
  bool is_mld = false;
  std::uint8_t version = 3;  ///< IGMP 2 or 3, MLD 1 or 2
  Mac source_mac{};
  IpAddress source{};                 ///< zero of a querier without address
  std::span<const IpAddress> groups;  ///< of a query none or one; of a report of IGMPv2 and MLDv1, and of a leave, one
  Nanos response_time = 0;            ///< of queries
  std::uint8_t robustness = 2;        ///< of queries
  std::uint16_t interval_seconds = 125;
};
/// Groups of one report that fit into the smallest MTU there is of IPv6.
inline constexpr std::size_t kReportGroupsMax = 56;
/// Bytes of the longest such frame.
inline constexpr std::size_t kMembershipBytesMax = 14 + 40 + 8 + 8 + kReportGroupsMax * 20;
/// Writes it, with its checksums; how many bytes it has. `at` has room for kMembershipBytesMax.
std::uint32_t write_membership(std::uint8_t* at, const MembershipFrame& frame);

namespace detail {
/// A record of an IGMPv3 or MLDv2 report.
struct GroupRecord {
  std::uint8_t type, aux_words;
  std::uint16_t sources;
  IpAddress group;
  std::uint32_t bytes;
};
GroupRecord record_at(Packet packet, std::uint32_t offset, bool is_mld);
/// 1: joins, 0: leaves, -1: says nothing of that.
int joins(const GroupRecord& record);
}  // namespace detail

template <class Each>
void for_each_group(Packet packet, const Membership& message, Each&& each) {
  if (message.kind != Membership::Kind::kReport && message.kind != Membership::Kind::kLeave) return;
  if (message.version < (message.is_mld ? 2 : 3)) return each(message.group, message.kind == Membership::Kind::kReport);
  std::uint32_t at = message.offset + 8;
  for (unsigned i = 0; i < message.records; i++) {
    const detail::GroupRecord record = detail::record_at(packet, at, message.is_mld);
    at += record.bytes;
    if (const int joins = detail::joins(record); joins >= 0) each(record.group, joins == 1);
  }
}

}  // namespace rocebox::roce
