// SPDX-License-Identifier: BSD-3-Clause
// What a requester of datagrams sends: one packet a message, each with an address of its own.
#include "nic_model/core.h"
#include "nic_model/transport/requester.h"
#include "runtime/roce/multicast.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kQkeyOfOwn =
    1u << 31;  // of a work request: the queue pair's own, which only the NIC's owner can set (10.2.5)

}  // namespace

bool Requester::is_datagram_possible(const SendWork& work) const {
  if (work.opcode != MLX5_OPCODE_SEND && work.opcode != MLX5_OPCODE_SEND_IMM) return false;
  roce::IpAddress destination;
  std::copy_n(qp_.send_queue.address(work).rgid, destination.size(), destination.begin());
  return core_.config.has_source_for(destination);
}

PacketPtr Requester::send_datagram(Context& context, SendWork& work) {
  const mlx5_wqe_av& address = qp_.send_queue.address(work);
  roce::Underlay underlay;
  std::copy_n(address.rmac, 6, underlay.destination_mac.begin());
  underlay.source_mac = core_.config.mac_address();
  std::copy_n(address.rgid, 16, underlay.addresses.destination.begin());
  const bool is_ipv4 = roce::is_ipv4(underlay.addresses.destination);
  underlay.ip_version = is_ipv4 ? 4 : 6;
  underlay.addresses.source = core_.config.source_for(underlay.addresses.destination);
  underlay.tos = address.tclass;
  underlay.ttl = address.hop_limit;
  underlay.udp_source_port = core_.udp_source_port(qp_.number(), be32toh(address.dqp_dct) & 0xFFFFFF);
  const Headers headers(underlay);
  PacketFields fields;
  const bool immediate = work.opcode == MLX5_OPCODE_SEND_IMM;
  fields.opcode = immediate ? IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE : IBV_OPCODE_UD_SEND_ONLY;
  fields.solicited_event = work.has(MLX5_WQE_CTRL_SOLICITED);
  fields.psn = work.first_psn;
  fields.destination_qp = be32toh(address.dqp_dct) & 0xFFFFFF;
  fields.payload_bytes = work.bytes;
  PacketPtr packet = core_.make(context, headers, fields);
  if (!packet) return packet;
  auto* deth = reinterpret_cast<roce::Deth*>(Headers::extension(*packet));
  const std::uint32_t qkey = be32toh(address.key.qkey.qkey);
  deth->qkey = qkey & kQkeyOfOwn ? qp_.attributes.qkey : qkey;
  deth->reserved = 0;
  deth->source_qp = qp_.number();
  if (immediate) std::memcpy(deth + 1, &work.immediate, 4);
  if (work.bytes && Core::has_payload(*packet))
    qp_.send_queue.gather(work, core_.memory, 0, work.bytes, Headers::payload(*packet));
  core_.finish(*packet);
  if (roce::is_multicast(underlay.addresses.destination)) {
    core_.count.multicast_xmit_packets.add();
    // No switch sends a packet back to where it came from. What has stopped takes nothing.
    if (!qp_.init.block_multicast_loopback && core_.up) deliver_to_group(core_, context, *packet);
    if (!qp_.can_send()) return packet;  // it is attached itself, and failed by what it received: all is flushed
  }
  sent_end_ = una_ = roce::psn_add(work.first_psn, 1);
  current_++;
  complete_done(context);
  return packet;
}

}  // namespace rocebox::nic_model
