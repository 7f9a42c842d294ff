// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/connect/gsi.h"

#include <cstring>

#include "runtime/roce/build.h"
#include "runtime/roce/psn.h"

namespace rocebox::nic_model {

Gsi::Gsi(Core& core, Stats& stats)
    : core_(core),
      rx_mads_(stats.counter("rx_mads", "MADs came that an agent of this NIC reads")),
      tx_mads_(stats.counter("tx_mads", "MADs sent")),
      drop_mad_(stats.counter("drop_mad", "a datagram to QP1 that is no MAD, or of a class that has no agent here")) {}

Counter* Gsi::check(Packet packet) {
  if (roce::opcode_info(packet).service != roce::Service::kUd) return &core_.count.drop_wrong_service;
  if (roce::deth(packet)->qkey != roce::kGsiQkey) return &core_.count.drop_bad_qkey;
  const roce::MadHeader* header = roce::mad(packet);
  if (!header || roce::cm_attribute(*header) == 0 || !Core::has_payload(packet)) return &drop_mad_;
  rx_mads_.add();
  return nullptr;
}

void Gsi::send(Context& context, const Headers& headers, std::span<const std::uint8_t, roce::kMadBytes> mad) {
  PacketFields fields;
  fields.opcode = IBV_OPCODE_UD_SEND_ONLY;
  fields.psn = psn_;
  fields.destination_qp = roce::kGsiQpn;
  fields.payload_bytes = roce::kMadBytes;
  // Always with its bytes: what connects is no payload that a simulation could do without.
  const Headers::Length length = headers.length(fields.opcode, fields.payload_bytes);
  PacketPtr packet = context.allocate(length.frame);
  if (!packet) return core_.count.tx_no_packet.add();
  psn_ = roce::psn_add(psn_, 1);
  headers.write(*packet, fields, length);
  auto* deth = reinterpret_cast<roce::Deth*>(Headers::extension(*packet));
  deth->qkey = roce::kGsiQkey;
  deth->reserved = 0;
  deth->source_qp = roce::kGsiQpn;
  std::memcpy(Headers::payload(*packet), mad.data(), mad.size());
  core_.finish(*packet);
  if (core_.transmitter.add_control(context, packet))
    tx_mads_.add();
  else
    context.drop(std::move(packet), core_.count.drop_control_full);
}

Headers Gsi::headers_to(const roce::IpAddress& remote, const roce::Mac& mac) const {
  roce::Underlay underlay;
  underlay.source_mac = core_.config.mac_address();
  underlay.destination_mac = mac;
  underlay.ip_version = roce::is_ipv4(remote) ? 4 : 6;
  underlay.addresses = {core_.config.source_for(remote), remote};
  underlay.udp_source_port = core_.udp_source_port(roce::kGsiQpn, roce::kGsiQpn);
  return Headers(underlay);
}

Headers Gsi::headers_back(Packet packet) {
  roce::Underlay underlay = roce::reversed_underlay(packet);
  underlay.tos &= static_cast<std::uint8_t>(~roce::kEcnMask);
  return Headers(underlay);
}

}  // namespace rocebox::nic_model
