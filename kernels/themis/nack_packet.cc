// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/nack_packet.h"

namespace rocebox::themis {
namespace {

constexpr std::uint32_t kNackTransportBytes = sizeof(roce::Bth) + sizeof(roce::Aeth) + roce::kIcrcBytes;

}  // namespace

std::uint16_t nack_bytes(Packet packet) {
  return static_cast<std::uint16_t>(packet.meta().bth_offset + kNackTransportBytes);
}

void set_nack(roce::PacketSpec& spec, const StashedNack& nack) {
  spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
  spec.destination_qp = nack.qpn;
  spec.psn = nack.epsn;
  spec.syndrome = static_cast<std::uint8_t>(nack.aeth >> 24);
  spec.msn = nack.aeth & 0xFFFFFF;
}

roce::PacketSpec nack_spec(Packet data, const StashedNack& nack) {
  roce::PacketSpec spec;
  spec.underlay = roce::reversed_underlay(data);
  spec.underlay.tos &= static_cast<std::uint8_t>(~roce::kEcnMask);
  if (data.meta().ip_version == 4)
    spec.underlay.ip_identification =
        static_cast<std::uint16_t>(data.header<roce::Ipv4>(data.meta().l3_offset)->identification);
  const roce::Bth& bth = roce::bth(data);
  spec.mig_req = bth.mig_req();
  spec.pkey = static_cast<std::uint16_t>(bth.pkey);
  set_nack(spec, nack);
  return spec;
}

bool make_nack(Packet packet, const StashedNack& nack, std::uint8_t avoidance_mask) {
  if (packet.meta().bth_offset == 0) return false;
  const roce::PacketSpec spec = nack_spec(packet, nack);
  if (!packet.resize(roce::built_bytes(spec))) return false;
  roce::build(packet, spec);
  roce::bth(packet).fecn_becn_resv6 |= avoidance_mask;  // not covered by the ICRC
  return true;
}

}  // namespace rocebox::themis
