// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/membership.h"
#include "runtime/roce/multicast.h"

#include <algorithm>
#include <cstring>

#include "runtime/roce/headers.h"
#include "runtime/roce/internet_checksum.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/roce/parse.h"

namespace rocebox::roce {
namespace {

using Kind = Membership::Kind;
using Error = Membership::Error;

constexpr std::uint8_t kIgmp = 2, kIcmp6 = 58, kHopByHopOptions = 0;
constexpr std::uint8_t kIgmpQuery = 0x11, kIgmpReport1 = 0x12, kIgmpReport2 = 0x16, kIgmpLeave = 0x17,
                       kIgmpReport3 = 0x22;
constexpr std::uint8_t kMldQuery = 130, kMldReport1 = 131, kMldDone = 132, kMldReport2 = 143;
constexpr std::uint32_t kIgmpBytes = 8, kIgmpQuery3Bytes = 12, kMldBytes = 24, kMldQuery2Bytes = 28, kReportBytes = 8;
constexpr std::uint32_t kRecordBytes[] = {8, 20};  // without sources: IGMP, MLD
constexpr std::uint32_t kAddressBytes[] = {4, 16};
constexpr IpAddress kAllHosts = ipv4(224, 0, 0, 1), kAllRouters = ipv4(224, 0, 0, 2),
                    kIgmp3Routers = ipv4(224, 0, 0, 22);
constexpr IpAddress kAllNodes6 = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                    kAllRouters6 = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
                    kMld2Routers = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16};

void put16(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

IpAddress address_at(const std::uint8_t* at, bool is_mld) {
  if (!is_mld) return ipv4(at[0], at[1], at[2], at[3]);
  IpAddress address;
  std::copy_n(at, 16, address.begin());
  return address;
}
bool is_zero(const IpAddress& address) { return address == IpAddress{} || address == ipv4(0, 0, 0, 0); }

// Codes of times in IGMPv3 and MLDv2 (RFC 3376, 4.1.1; RFC 3810, 5.1.3), in their units.
std::uint32_t igmp_code(std::uint32_t code) {
  return code < 128 ? code : ((code & 0xF) | 0x10) << ((code >> 4 & 7) + 3);
}
std::uint32_t mld_code(std::uint32_t code) {
  return code < 32768 ? code : ((code & 0xFFF) | 0x1000) << ((code >> 12 & 7) + 3);
}

void fail(Membership& message, Error error) {
  message.kind = Kind::kBad;
  message.error = error;
}

void read_query(const std::uint8_t* at, std::uint32_t bytes, Membership& message) {
  message.kind = Kind::kQuery;
  if (message.is_mld) {
    message.version = bytes >= kMldQuery2Bytes ? 2 : 1;
    const std::uint32_t code = load_be16(at + 4);
    message.response_time = Nanos{message.version == 1 ? code : mld_code(code)} * 1'000'000;
  } else {
    message.version = bytes >= kIgmpQuery3Bytes ? 3 : at[1] == 0 ? 1 : 2;
    const std::uint32_t tenths = message.version == 3 ? igmp_code(at[1]) : message.version == 2 ? at[1] : 100;
    message.response_time = Nanos{tenths} * 100'000'000;
  }
  message.group = address_at(at + (message.is_mld ? 8 : 4), message.is_mld);
  if (is_zero(message.group)) message.group = {};
  if (!is_zero(message.group) && !is_multicast(message.group)) fail(message, Error::kAddress);
  const std::uint32_t fixed = message.is_mld ? kMldQuery2Bytes : kIgmpQuery3Bytes;
  if (bytes < fixed) return;
  if (fixed + load_be16(at + fixed - 2) * kAddressBytes[message.is_mld] > bytes) fail(message, Error::kLength);
}

// Every record lies within the message.
void read_records(Packet packet, std::uint32_t bytes, Membership& message) {
  message.kind = Kind::kReport;
  message.version = message.is_mld ? 2 : 3;
  message.records = static_cast<std::uint16_t>(load_be16(packet.data() + message.offset + 6));
  std::uint32_t at = kReportBytes;
  for (unsigned i = 0; i < message.records; i++) {
    if (at + kRecordBytes[message.is_mld] > bytes) return fail(message, Error::kLength);
    const detail::GroupRecord record = detail::record_at(packet, message.offset + at, message.is_mld);
    if (record.bytes > bytes - at) return fail(message, Error::kLength);
    if (!is_multicast(record.group)) return fail(message, Error::kAddress);
    at += record.bytes;
  }
}

void read_one(const std::uint8_t* at, Kind kind, std::uint8_t version, Membership& message) {
  message.kind = kind;
  message.version = version;
  message.group = address_at(at + (message.is_mld ? 8 : 4), message.is_mld);
  if (!is_multicast(message.group)) fail(message, Error::kAddress);
}

void read_type(Packet packet, std::uint32_t bytes, Membership& message) {
  const std::uint8_t* at = packet.data() + message.offset;
  switch (at[0]) {
    case kIgmpQuery:
    case kMldQuery:
      return read_query(at, bytes, message);
    case kIgmpReport1:
    case kMldReport1:
      return read_one(at, Kind::kReport, 1, message);
    case kIgmpReport2:
      return read_one(at, Kind::kReport, 2, message);
    case kIgmpLeave:
      return read_one(at, Kind::kLeave, 2, message);
    case kMldDone:
      return read_one(at, Kind::kLeave, 1, message);
    default:
      return read_records(packet, bytes, message);
  }
}

bool is_type(std::uint8_t type, bool is_mld) {
  if (is_mld) return (type >= kMldQuery && type <= kMldDone) || type == kMldReport2;
  return type == kIgmpQuery || type == kIgmpReport1 || type == kIgmpReport2 || type == kIgmpLeave ||
         type == kIgmpReport3;
}

}  // namespace

detail::GroupRecord detail::record_at(Packet packet, std::uint32_t offset, bool is_mld) {
  const std::uint8_t* at = packet.data() + offset;
  GroupRecord record{at[0], at[1], static_cast<std::uint16_t>(load_be16(at + 2)), address_at(at + 4, is_mld), 0};
  record.bytes = kRecordBytes[is_mld] + record.sources * kAddressBytes[is_mld] + record.aux_words * 4u;
  return record;
}

// MODE_IS_INCLUDE, MODE_IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW, BLOCK (RFC 3376, 4.2.12).
int detail::joins(const GroupRecord& record) {
  switch (record.type) {
    case 2:
    case 4:
      return 1;
    case 1:
    case 5:
      return record.sources > 0 ? 1 : -1;
    case 3:
      return record.sources > 0;
    default:
      return -1;
  }
}

bool is_link_local_group(const IpAddress& group) {
  if (is_ipv4(group)) return group[12] == 224 && group[13] == 0 && group[14] == 0;
  return group[0] == 0xFF && (group[1] & 0xF) <= 2;
}

Membership read_membership(Packet packet) {
  Membership message;
  const PacketMeta& meta = packet.meta();
  if (meta.ip_version == 0) return message;
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  message.is_mld = meta.ip_version == 6;
  // Hosts put MLD behind a hop-by-hop header with a router alert: what has none is no message.
  if (message.is_mld ? reinterpret_cast<const Ipv6*>(ip)->next_header != kHopByHopOptions
                     : reinterpret_cast<const Ipv4*>(ip)->protocol != kIgmp)
    return message;
  const IpPayload payload = ip_payload(packet);
  if (payload.protocol != (message.is_mld ? kIcmp6 : kIgmp) || payload.first_fragment || payload.later_fragment)
    return message;
  message.offset = payload.offset;
  message.end = std::min(payload.end, packet.size());
  if (message.end <= message.offset || !is_type(packet.data()[message.offset], message.is_mld)) return message;
  const std::uint32_t bytes = message.end - message.offset;
  message.source = addresses(packet).source;
  const std::uint8_t type = packet.data()[message.offset];
  const std::uint32_t least = type == kMldReport2 || !message.is_mld ? kIgmpBytes : kMldBytes;
  if (payload.end > packet.size() || bytes < least) {
    fail(message, Error::kLength);
    return message;
  }
  const std::uint8_t* at = packet.data() + message.offset;
  const std::uint16_t sum = message.is_mld ? sum_with_addresses(ip + offsetof(Ipv6, source), 32, kIcmp6, at, bytes)
                                           : folded(add_words(at, bytes));
  const std::uint8_t hops =
      message.is_mld ? reinterpret_cast<const Ipv6*>(ip)->hop_limit : reinterpret_cast<const Ipv4*>(ip)->ttl;
  if (sum != 0xFFFF)
    fail(message, Error::kChecksum);
  else if (hops != 1)
    fail(message, Error::kHopLimit);
  else
    read_type(packet, bytes, message);
  return message;
}

namespace {

// Where it goes.
IpAddress destination_of(const MembershipFrame& frame) {
  switch (frame.kind) {
    case Kind::kQuery:
      if (!frame.groups.empty()) return frame.groups[0];
      return frame.is_mld ? kAllNodes6 : kAllHosts;
    case Kind::kLeave:
      if (frame.version < (frame.is_mld ? 2 : 3)) return frame.is_mld ? kAllRouters6 : kAllRouters;
      break;
    default:
      if (frame.version < (frame.is_mld ? 2 : 3)) return frame.groups[0];
  }
  return frame.is_mld ? kMld2Routers : kIgmp3Routers;
}

void put_address(std::uint8_t* at, const IpAddress& address, bool is_mld) {
  std::copy_n(address.begin() + (is_mld ? 0 : 12), kAddressBytes[is_mld], at);
}

// The message at `at`, which holds zeros, without its checksum.
std::uint32_t put_message(std::uint8_t* at, const MembershipFrame& frame) {
  const bool newest = frame.version == (frame.is_mld ? 2 : 3);
  const std::uint32_t one = frame.is_mld ? 8 : 4;  // where a single group stands
  if (frame.kind == Kind::kQuery) {
    const auto units = static_cast<std::uint32_t>(frame.response_time / (frame.is_mld ? 1'000'000 : 100'000'000));
    at[0] = frame.is_mld ? kMldQuery : kIgmpQuery;
    if (frame.is_mld)
      put16(at + 4, std::min(units, 32767u));
    else
      at[1] = static_cast<std::uint8_t>(std::min(units, 127u));
    if (!frame.groups.empty()) put_address(at + one, frame.groups[0], frame.is_mld);
    const std::uint32_t bytes = frame.is_mld ? kMldBytes : kIgmpBytes;
    if (!newest) return bytes;
    at[bytes] = frame.robustness & 7;
    at[bytes + 1] = static_cast<std::uint8_t>(std::min<std::uint16_t>(frame.interval_seconds, 127));
    return bytes + 4;
  }
  const bool joins = frame.kind == Kind::kReport;
  if (!newest) {
    at[0] = frame.is_mld ? (joins ? kMldReport1 : kMldDone) : (joins ? kIgmpReport2 : kIgmpLeave);
    put_address(at + one, frame.groups[0], frame.is_mld);
    return frame.is_mld ? kMldBytes : kIgmpBytes;
  }
  at[0] = frame.is_mld ? kMldReport2 : kIgmpReport3;
  put16(at + 6, static_cast<std::uint32_t>(frame.groups.size()));
  std::uint32_t bytes = kReportBytes;
  for (const IpAddress& group : frame.groups) {
    at[bytes] = joins ? 4 : 3;  // TO_EX{}, TO_IN{}
    put_address(at + bytes + 4, group, frame.is_mld);
    bytes += kRecordBytes[frame.is_mld];
  }
  return bytes;
}

}  // namespace

std::uint32_t write_membership(std::uint8_t* at, const MembershipFrame& frame) {
  std::memset(at, 0, kMembershipBytesMax);
  const IpAddress destination = destination_of(frame);
  auto& ethernet = *reinterpret_cast<Ethernet*>(at);
  std::ranges::copy(multicast_mac(destination), ethernet.destination);
  std::ranges::copy(frame.source_mac, ethernet.source);
  ethernet.type = frame.is_mld ? kEtherIpv6 : kEtherIpv4;
  std::uint8_t* const header = at + sizeof ethernet;
  if (frame.is_mld) {
    std::uint8_t* const option = header + sizeof(Ipv6);
    const std::uint8_t alert[] = {kIcmp6, 0, 5, 2, 0, 0, 1, 0};  // router alert of MLD (RFC 2711), padding
    std::ranges::copy(alert, option);
    const std::uint32_t bytes = put_message(option + sizeof alert, frame);
    auto& ip = *reinterpret_cast<Ipv6*>(header);
    ip.version_class_label = 0x60000000u;
    ip.payload_length = sizeof alert + bytes;
    ip.next_header = kHopByHopOptions;
    ip.hop_limit = 1;
    std::ranges::copy(frame.source, ip.source);
    std::ranges::copy(destination, ip.destination);
    put16(option + sizeof alert + 2,
          static_cast<std::uint16_t>(~sum_with_addresses(ip.source, 32, kIcmp6, option + sizeof alert, bytes)));
    return static_cast<std::uint32_t>(sizeof ethernet + sizeof ip + sizeof alert + bytes);
  }
  constexpr std::uint32_t kHeader = sizeof(Ipv4) + 4;
  const std::uint8_t alert[] = {0x94, 4, 0, 0};  // router alert (RFC 2113)
  std::ranges::copy(alert, header + sizeof(Ipv4));
  const std::uint32_t bytes = put_message(header + kHeader, frame);
  put16(header + kHeader + 2, static_cast<std::uint16_t>(~folded(add_words(header + kHeader, bytes))));
  auto& ip = *reinterpret_cast<Ipv4*>(header);
  ip.version_ihl = 0x46;
  ip.tos = 0xC0;  // internetwork control (RFC 3376, 4)
  ip.total_length = kHeader + bytes;
  ip.ttl = 1;
  ip.protocol = kIgmp;
  put_address(ip.source, frame.source, false);
  put_address(ip.destination, destination, false);
  store_ipv4_checksum(ip);
  return static_cast<std::uint32_t>(sizeof ethernet) + kHeader + bytes;
}

}  // namespace rocebox::roce
