// SPDX-License-Identifier: BSD-3-Clause
// Messages of RDMA CM that nic_fuzz.cc sends to a side in its peer's name, or a stranger's: with identifiers that one
// of the sides knows, mostly, at whatever time the input says.
#pragma once
#include <array>

#include "runtime/roce/mad.h"
#include "tests/fuzz/nic_forger.h"

namespace rocebox::fuzz::nic_bed {

class MadForger {
 public:
  explicit MadForger(Input& input) : input_(input) {}

  /// To QP1 of `victim`.
  Forged packet(unsigned side, Side& victim, Side& peer) {
    const std::uint8_t drawn = input_.take(), from = input_.take();
    std::array<std::uint8_t, roce::kMadBytes> mad = message(drawn % 12, victim, peer);
    const bool is_changed = (drawn & 0xE0) == 0xE0;
    for (unsigned changes = is_changed ? 1 + drawn % 3 : 0; changes > 0; changes--)
      mad[input_.take() % mad.size()] = input_.take();
    roce::PacketSpec spec;
    spec.underlay.source_mac = mac_of(1 - side), spec.underlay.destination_mac = mac_of(side);
    spec.underlay.addresses = {address_of(1 - side), address_of(side)};
    if (from >= 0xC0) spec.underlay.addresses.source = from & 1 ? kStranger : kNobody;
    spec.opcode = IBV_OPCODE_UD_SEND_ONLY;
    spec.destination_qp = spec.source_qp = roce::kGsiQpn;
    spec.qkey = (from & 0x9F) == 0x9F ? kQkey : roce::kGsiQkey;
    spec.payload = std::span(mad).first((from & 0x9E) == 0x9E ? 250 : mad.size());
    Forged forged;
    // Who has no connection can change none.
    forged.is_strange =
        spec.underlay.addresses.source == kNobody && !victim.knows_nobody() && !is_changed && !asks(drawn % 12);
    forged.packet = pool->allocate(roce::built_bytes(spec));
    require(static_cast<bool>(forged.packet), "the pool is large enough");
    roce::build(*forged.packet, spec);
    return forged;
  }

 private:
  static constexpr unsigned kReq = 0, kSidrReq = 8, kReqToo = 9;
  static bool asks(unsigned kind) { return kind == kReq || kind == kReqToo || kind == kSidrReq; }

  std::uint32_t identifier(Side& side) {
    const std::uint8_t drawn = input_.take();
    const Connections::Connection* one = side.connections().at(drawn % 16);
    if (one && drawn < 0xC0) return one->id;
    return drawn & 1 ? drawn : drawn & 2 && one ? one->id + (drawn << 15) : 0;
  }
  std::uint32_t number(Side& side) {
    const std::uint8_t drawn = input_.take();
    const unsigned pair = side.in_use()[drawn % side.in_use().size()];
    return drawn < 0xD0
               ? side.qp(drawn < 0xA0 && side.in_use().back() > kFirstByCm ? kFirstByCm + drawn % 2 : pair).number()
               : drawn & 1;
  }
  std::uint64_t service(bool is_tcp) {
    const std::uint8_t drawn = input_.take();
    if (drawn >= 0xE0) is_tcp = !is_tcp;
    return roce::kIpCmService | (is_tcp ? roce::kIpCmTcp : roce::kIpCmUdp) | (1 + drawn % (kPorts + 1));
  }
  // What a program and IP CM put behind a request.
  std::array<std::uint8_t, sizeof(roce::IpCmHeader) + 8> private_data() {
    std::array<std::uint8_t, sizeof(roce::IpCmHeader) + 8> bytes{};
    const std::uint8_t drawn = input_.take();
    bytes[1] = drawn < 0xE0 ? 0x40 : drawn;
    bytes.back() = drawn;
    return bytes;
  }
  template <class T>
  std::array<std::uint8_t, roce::kMadBytes> of(T& message, Side& victim, Side& peer) {
    message.local_communication_id = identifier(peer);
    message.remote_communication_id = identifier(victim);
    return roce::cm_mad(input_.take(), message);
  }
  std::array<std::uint8_t, roce::kMadBytes> request(Side& peer) {
    roce::CmWholeReq whole{};
    roce::CmReq& req = whole.request;
    req.local_communication_id = identifier(peer);
    req.service_id = service(true);
    req.local_qpn = number(peer);
    req.starting_psn = 0xFFFFF0u + input_.take();
    const std::uint8_t drawn = input_.take(), times = input_.take();
    req.responder_resources = static_cast<std::uint8_t>(drawn & 3 ? drawn & 0x1F : 0xFF);
    req.initiator_depth = static_cast<std::uint8_t>(drawn >> 2 & 3);
    req.timeout_service_flow = static_cast<std::uint8_t>((times & 0xC0) == 0xC0 ? drawn : times & 0xF8);
    req.timeout_retries = static_cast<std::uint8_t>(times << 3 | (drawn & 7));
    req.mtu_rdc_rnr = static_cast<std::uint8_t>((times < 0xF0 ? 1 + drawn % 5 : drawn % 16) << 4 | drawn >> 5);
    req.retries_srq_type = static_cast<std::uint8_t>(times & 0x30);
    whole.primary.ack_timeout = static_cast<std::uint8_t>(drawn << 3);
    whole.primary.traffic_class = times;
    return roce::cm_mad(drawn, whole, private_data());
  }
  std::array<std::uint8_t, roce::kMadBytes> message(unsigned kind, Side& victim, Side& peer) {
    switch (kind) {
      case kReq:
      case kReqToo:
        return request(peer);
      case 1: {
        roce::CmMra mra{};
        const std::uint8_t drawn = input_.take();
        mra.message = static_cast<std::uint8_t>(drawn << 6), mra.service_timeout = drawn & 0xF8;
        return of(mra, victim, peer);
      }
      case 2:
        return reject(victim, peer);
      case 3:
      case 10: {
        roce::CmRep rep{};
        const std::uint8_t drawn = input_.take();
        rep.local_qpn = number(peer);
        rep.starting_psn = drawn * 0x10101u;
        rep.responder_resources = drawn % 5, rep.initiator_depth = drawn >> 5;
        rep.delay_failover_flow = drawn, rep.rnr_srq = drawn;
        return of(rep, victim, peer);
      }
      case 4:
        return plain<roce::CmRtu>(victim, peer);
      case 5: {
        roce::CmDreq dreq{};
        dreq.remote_qpn = number(victim);
        return of(dreq, victim, peer);
      }
      case 6:
        return plain<roce::CmDrep>(victim, peer);
      case 7:
        return resolved(victim, peer);
      case kSidrReq: {
        roce::CmSidrReq req{};
        req.request_id = identifier(peer);
        req.service_id = service(false);
        return roce::cm_mad(req.request_id.get(), req, private_data());
      }
      default: {
        auto mad = plain<roce::CmRtu>(victim, peer);
        mad[17] = input_.take();  // its attribute
        return mad;
      }
    }
  }
  template <class T>
  std::array<std::uint8_t, roce::kMadBytes> plain(Side& victim, Side& peer) {
    T message{};
    return of(message, victim, peer);
  }
  std::array<std::uint8_t, roce::kMadBytes> reject(Side& victim, Side& peer) {
    roce::CmWholeRej whole{};
    const std::uint8_t drawn = input_.take();
    whole.reject.local_communication_id = identifier(peer);
    whole.reject.remote_communication_id = identifier(victim);
    whole.reject.message = static_cast<std::uint8_t>(drawn << 6), whole.reject.info_length = drawn;
    whole.reject.reason = static_cast<std::uint16_t>(drawn % 30);
    return roce::cm_mad(drawn, whole);
  }
  std::array<std::uint8_t, roce::kMadBytes> resolved(Side& victim, Side& peer) {
    roce::CmWholeSidrRep whole{};
    const std::uint8_t drawn = input_.take();
    whole.reply.request_id = identifier(victim);
    whole.reply.status = drawn < 0xA0 ? 0 : drawn;
    whole.reply.qpn = number(peer);
    whole.reply.qkey = kQkey;
    return roce::cm_mad(drawn, whole);
  }

  Input& input_;
};

}  // namespace rocebox::fuzz::nic_bed
