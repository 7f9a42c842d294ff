// SPDX-License-Identifier: BSD-3-Clause
// Management datagrams on QP1 and the connection manager's messages (IB specification, volume
// 1, 13.4 and 12.6). Field offsets were checked against a Linux capture with tshark.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/packet/packet.h"
#include "runtime/roce/headers.h"

namespace rocebox::roce {

inline constexpr std::uint32_t kGsiQpn = 1;      ///< QP1, the general services interface (3.9.4)
inline constexpr std::uint32_t kMadBytes = 256;  ///< every MAD's length (13.4.2)
inline constexpr std::uint8_t kMadBaseVersion = 1;
inline constexpr std::uint32_t kGsiQkey = 0x80010000;  ///< of QP1 (3.9.4.1)

/// Common MAD header, 13.4.2 figure 144.
struct MadHeader {
  std::uint8_t base_version, management_class, class_version, method;
  Be16 status, class_specific;
  Be64 transaction_id;
  Be16 attribute_id, reserved;
  Be32 attribute_modifier;
};

/// Management classes, 13.4.4 table 112.
enum class MadClass : std::uint8_t {
  kSubnLid = 0x01,
  kSubnAdministration = 0x03,
  kPerformance = 0x04,
  kBoardManagement = 0x05,
  kDeviceManagement = 0x06,
  kCommunication = 0x07,
  kSubnDirected = 0x81,
};
/// Methods, 13.4.5 table 113; the connection manager only sends.
enum class MadMethod : std::uint8_t {
  kGet = 0x01,
  kSet = 0x02,
  kSend = 0x03,
  kTrap = 0x05,
  kReport = 0x06,
  kGetResponse = 0x81
};
/// Attributes of the communication management class, 16.7.2 table 262 (messages: 12.6).
enum class CmAttribute : std::uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1A,
};

/// Request for communication, 12.6.5: the active side's QP.
struct CmReq {
  static constexpr auto kAttribute = CmAttribute::kReq;
  Be32 local_communication_id, reserved1;
  Be64 service_id, local_ca_guid;
  Be32 reserved2, local_qkey;
  Be24 local_qpn;
  std::uint8_t responder_resources;
  Be24 local_eecn;
  std::uint8_t initiator_depth;
  Be24 remote_eecn;
  std::uint8_t timeout_service_flow;  ///< remote CM response timeout (5), transport service (2),
                                      ///< flow control (1)
  Be24 starting_psn;                  ///< the first PSN that the *receiver* of the REQ shall send (12.7.31)
  std::uint8_t timeout_retries;       ///< local CM response timeout (5), retry count (3)
  Be16 pkey;
  std::uint8_t mtu_rdc_rnr;       ///< path MTU (4), RDC exists (1), RNR retry count (3)
  std::uint8_t retries_srq_type;  ///< max CM retries (4), SRQ (1), extended transport type (3)
  Be16 primary_local_lid, primary_remote_lid;
  std::uint8_t primary_local_gid[16], primary_remote_gid[16];

  /// 0 RC, 1 UC, 2 RD, 3 extended (12.7.6).
  unsigned transport_service() const { return timeout_service_flow >> 1 & 3u; }
  /// Path MTU in bytes (12.7.28: 1 is 256 ... 5 is 4096), 0 when the code is not defined.
  std::uint32_t path_mtu() const {
    const unsigned code = mtu_rdc_rnr >> 4;
    return code >= 1 && code <= 5 ? 128u << code : 0;
  }
};
/// A path in a REQ behind its LIDs and GIDs (12.7.12 to 12.7.23).
struct CmPath {
  Be32 label_rate;  ///< flow label (20), reserved (6), packet rate (6)
  std::uint8_t traffic_class, hop_limit;
  std::uint8_t sl_subnet_local;  ///< service level (4), subnet local (1)
  std::uint8_t ack_timeout;      ///< local ACK timeout (5 upper bits)
};
/// A REQ with all that its fixed part has; its private data follow.
struct CmWholeReq {
  static constexpr auto kAttribute = CmAttribute::kReq;
  CmReq request;
  CmPath primary;
  Be16 alternate_local_lid, alternate_remote_lid;
  std::uint8_t alternate_local_gid[16], alternate_remote_gid[16];
  CmPath alternate;
};
/// Message receipt acknowledgement, 12.6.6: the response will take its time.
struct CmMra {
  static constexpr auto kAttribute = CmAttribute::kMra;
  Be32 local_communication_id, remote_communication_id;
  std::uint8_t message;          ///< two upper bits: 0 REQ, 1 REP, 2 LAP
  std::uint8_t service_timeout;  ///< five upper bits
};
/// Reply to a request for communication, 12.6.8: the passive side's QP.
struct CmRep {
  static constexpr auto kAttribute = CmAttribute::kRep;
  Be32 local_communication_id, remote_communication_id, local_qkey;
  Be24 local_qpn;
  std::uint8_t reserved1;
  Be24 local_eecn;
  std::uint8_t reserved2;
  Be24 starting_psn;  ///< the first PSN that the receiver of the REP shall send
  std::uint8_t reserved3, responder_resources, initiator_depth, delay_failover_flow, rnr_srq;
  Be64 local_ca_guid;
};
/// Ready to use, 12.6.9.
struct CmRtu {
  static constexpr auto kAttribute = CmAttribute::kRtu;
  Be32 local_communication_id, remote_communication_id;
};
/// Reject, 12.6.7.
struct CmRej {
  static constexpr auto kAttribute = CmAttribute::kRej;
  Be32 local_communication_id, remote_communication_id;
  std::uint8_t message;      ///< two upper bits: 0 REQ, 1 REP, 2 other
  std::uint8_t info_length;  ///< seven upper bits
  Be16 reason;
};
/// A REJ with its additional information; its private data follow.
struct CmWholeRej {
  static constexpr auto kAttribute = CmAttribute::kRej;
  CmRej reject;
  std::uint8_t information[72];
};
/// Why a REJ was sent, 12.6.7.2.
enum class CmReject : std::uint16_t {
  kNoQp = 1,
  kNoResources = 3,
  kTimeout = 4,
  kInvalidCommunicationId = 6,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kInvalidMtu = 26,
  kConsumer = 28,
};
/// Request for communication release, 12.6.10.
struct CmDreq {
  static constexpr auto kAttribute = CmAttribute::kDreq;
  Be32 local_communication_id, remote_communication_id;
  Be24 remote_qpn;
  std::uint8_t reserved;
};
/// Reply to a request for communication release, 12.6.11.
struct CmDrep {
  static constexpr auto kAttribute = CmAttribute::kDrep;
  Be32 local_communication_id, remote_communication_id;
};
/// Service ID resolution request, 12.11.1.
struct CmSidrReq {
  static constexpr auto kAttribute = CmAttribute::kSidrReq;
  Be32 request_id;
  Be16 pkey, reserved;
  Be64 service_id;
};
/// Service ID resolution response, 12.11.2.
struct CmSidrRep {
  static constexpr auto kAttribute = CmAttribute::kSidrRep;
  Be32 request_id;
  std::uint8_t status, info_length;
  Be16 vendor;
  Be24 qpn;
  std::uint8_t reserved;
  Be64 service_id;
  Be32 qkey;
};

/// A SIDR_REP with its additional information; its private data follow.
struct CmWholeSidrRep {
  static constexpr auto kAttribute = CmAttribute::kSidrRep;
  CmSidrRep reply;
  std::uint8_t information[72];
};
/// What a SIDR_REP says, 12.11.2.2.
enum class CmSidrStatus : std::uint8_t { kValid = 0, kUnsupported = 1, kRejected = 2, kNoQp = 3 };

/// What the RDMA IP CM service puts before the private data of a REQ or SIDR_REQ (annex A11.4).
struct IpCmHeader {
  std::uint8_t version;     ///< major (4), minor (4): 0
  std::uint8_t ip_version;  ///< upper four bits: 4 or 6
  Be16 source_port;
  std::uint8_t source[16], destination[16];  ///< an IPv4 address in the last four bytes
};
/// Its service IDs: what stands before the protocol's number (6 TCP, 17 UDP) and the port (annex A11.2).
inline constexpr std::uint64_t kIpCmService = 0x0000000001000000, kIpCmTcp = 0x060000, kIpCmUdp = 0x110000;

static_assert(sizeof(CmWholeReq) == 140 && offsetof(CmWholeReq, alternate) == 132 && sizeof(CmMra) == 10);
static_assert(sizeof(CmWholeRej) == 84 && sizeof(CmWholeSidrRep) == 96 && sizeof(IpCmHeader) == 36);
static_assert(sizeof(MadHeader) == 24 && offsetof(MadHeader, attribute_id) == 16);
static_assert(offsetof(CmReq, local_qpn) == 32 && offsetof(CmReq, timeout_service_flow) == 43 &&
              offsetof(CmReq, starting_psn) == 44 && offsetof(CmReq, mtu_rdc_rnr) == 50 &&
              offsetof(CmReq, primary_local_gid) == 56 && sizeof(CmReq) == 88);
static_assert(offsetof(CmRep, local_qpn) == 12 && offsetof(CmRep, starting_psn) == 20 && sizeof(CmRep) == 36);
static_assert(sizeof(CmRej) == 12 && offsetof(CmDreq, remote_qpn) == 8 && offsetof(CmSidrRep, qpn) == 8 &&
              offsetof(CmSidrRep, qkey) == 20);

/// The MAD in a UD SEND to QP1, or null: another packet, too short for a MAD, or its header is not
/// held. For packets whose status is kRoce.
const MadHeader* mad(Packet packet);

/// The connection manager's attribute in a MAD of that class, 0 otherwise.
std::uint16_t cm_attribute(const MadHeader& header);
/// "ConnectRequest", ... as in table 262; "unknown" for others.
std::string_view cm_attribute_name(std::uint16_t attribute);

/// The connection manager's message T in `packet`, or null when it carries another one or not all
/// of T is held.
template <class T>
const T* cm_message(Packet packet) {
  const MadHeader* header = mad(packet);
  if (!header || cm_attribute(*header) != static_cast<std::uint16_t>(T::kAttribute)) return nullptr;
  return packet.header<T>(packet.meta().payload_offset + std::uint32_t{sizeof(MadHeader)});
}

/// The private data behind the message T of cm_message(), which is a whole one; empty when not all of them are held.
template <class T>
std::span<const std::uint8_t> cm_private_data(Packet packet) {
  constexpr std::uint32_t kFixed = sizeof(MadHeader) + sizeof(T);
  const std::uint32_t at = packet.meta().payload_offset;
  if (packet.size() < at + kMadBytes) return {};
  return {packet.data() + at + kFixed, kMadBytes - kFixed};
}

/// A MAD with the connection manager's message T: the payload of a UD SEND to QP1 with the Q_Key kGsiQkey.
/// `private_data` follows the fixed part of the message.
template <class T>
std::array<std::uint8_t, kMadBytes> cm_mad(std::uint64_t transaction_id, const T& message,
                                           std::span<const std::uint8_t> private_data = {}) {
  std::array<std::uint8_t, kMadBytes> bytes{};
  MadHeader header{};
  header.base_version = kMadBaseVersion;
  header.management_class = static_cast<std::uint8_t>(MadClass::kCommunication);
  header.class_version = 2;
  header.method = static_cast<std::uint8_t>(MadMethod::kSend);
  header.transaction_id = transaction_id;
  header.attribute_id = static_cast<std::uint16_t>(T::kAttribute);
  static_assert(sizeof header + sizeof message <= kMadBytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &message, sizeof message);
  const std::size_t fixed = sizeof header + sizeof message;
  std::copy_n(private_data.begin(), std::min(private_data.size(), kMadBytes - fixed), bytes.begin() + fixed);
  return bytes;
}

}  // namespace rocebox::roce
