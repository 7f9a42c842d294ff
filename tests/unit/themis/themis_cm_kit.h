// SPDX-License-Identifier: BSD-3-Clause
// The connection manager's messages through a ToR: REQ of the NIC in the rack, REP and DREQ.
#pragma once
#include "runtime/roce/mad.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {

/// By port `in`, whoever its addresses say that it is from.
template <class Message>
Ports give_mad(Tor& tor, Port in, bool inbound, const Message& message) {
  const auto mad = roce::cm_mad(7, message);
  roce::PacketSpec spec = packet(inbound, IBV_OPCODE_UD_SEND_ONLY, 0);
  spec.destination_qp = roce::kGsiQpn;
  spec.payload = mad;
  return tor.give(in, spec);
}

inline constexpr std::uint32_t kRemoteId =
    0x900;  ///< of the replies: what the other end calls the connection, and `id`

inline void req(Tor& tor, std::uint32_t id, std::uint32_t qpn, Port in = 0) {
  roce::CmReq message{};
  message.local_communication_id = id, message.local_qpn = qpn;
  EXPECT_EQ(give_mad(tor, in, false, message).size(), 1u);
}
inline void rep(Tor& tor, std::uint32_t id, std::uint32_t qpn, Port in = 2) {
  roce::CmRep message{};
  message.local_communication_id = kRemoteId + id, message.remote_communication_id = id, message.local_qpn = qpn;
  EXPECT_EQ(give_mad(tor, in, true, message), Ports{0});
}
inline void connect(Tor& tor, std::uint32_t id, std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  req(tor, id, local_qpn);
  rep(tor, id, remote_qpn);
}
inline roce::CmDreq dreq(std::uint32_t local_id, std::uint32_t remote_id, std::uint32_t remote_qpn) {
  roce::CmDreq message{};
  message.local_communication_id = local_id, message.remote_communication_id = remote_id;
  message.remote_qpn = remote_qpn;
  return message;
}
inline roce::PacketSpec to(roce::PacketSpec spec, std::uint32_t qpn) {
  spec.destination_qp = qpn;
  return spec;
}

}  // namespace rocebox::themis
