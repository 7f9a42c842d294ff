// SPDX-License-Identifier: BSD-3-Clause
// What comes in: checked, and given to its queue pair.
#include <algorithm>

#include "nic_model/nic.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/ipv4_checksum.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/unicast.h"

namespace rocebox::nic_model {
namespace {

// Source and destination of an IPv4 header stand side by side.
std::uint64_t eight_bytes(const std::uint8_t* at) {
  std::uint64_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

// RFC 1122, 3.2.1.2: a header that is damaged may name somebody else. An ICRC leaves the checksum itself out.
bool has_damaged_header(Packet packet) {
  if (packet.meta().ip_version != 4) return false;
  const auto* ip = packet.header<roce::Ipv4>(packet.meta().l3_offset);
  return ip && packet.meta().l3_offset + ip->header_bytes() <= packet.size() && !roce::ipv4_checksum_holds(*ip);
}

}  // namespace

void Nic::process(Context& context, Port, Batch& batch) {
  if (batch.size() == 1)  // nearly all there is in virtual time
    batch.drop(0, receive(context, batch[0]));
  else
    receive_burst(context, batch);
  settle(context);
}

void Nic::prefetch_arrival(Port /*in*/, Packet packet) const {
  if (packet.meta().status != ParseStatus::kRoce) return;
  packet.prefetch_end();
  core_.memory.prefetch_placed();
  const Qp* qp = core_.find(roce::qpn_and_psn(packet).destination_qp);
  if (qp) qp->prefetch_to_receive(roce::opcode_info(packet.meta().opcode).has(roce::kIsResponse));
}

// What each packet needs, but for what the packet itself says.
void Nic::prefetch_turn(bool is_near) const {
  if (!is_near) {
    prefetch_far_line(&mac_);
    core_.prefetch();
    host_.prefetch();
  } else {
    core_.transmitter.prefetch_first();
    core_.memory.prefetch();
  }
}

// Of thousands of queue pairs the cache has few: what a packet needs of its own is asked for some packets before, and
// what that points to a little later. No queue pair goes in between: only programs destroy some, in settle().
void Nic::receive_burst(Context& context, Batch& batch) {
  constexpr unsigned kAhead = 6, kRingsAhead = 3;
  const unsigned size = batch.size();
  const Qp* to_complete[kBatchMax];  // null: of this packet there is nothing to be asked for
  const Qp* last = nullptr;
  for (unsigned i = 0; i < size + kAhead; i++) {
    if (i < size) {
      const PacketMeta& meta = batch[i].meta();
      const Qp* qp =
          meta.status == ParseStatus::kRoce ? core_.find(roce::qpn_and_psn(batch[i]).destination_qp) : nullptr;
      const bool is_response = roce::opcode_info(meta.opcode).has(roce::kIsResponse), is_new = qp && qp != last;
      if (is_new) qp->prefetch_to_receive(is_response);
      to_complete[i] = is_new && is_response ? qp : nullptr;
      last = qp;
    }
    if (const unsigned next = i + kRingsAhead - kAhead; next < size && to_complete[next])
      to_complete[next]->prefetch_rings_to_complete();
    const unsigned now = i - kAhead;
    if (now + 1 < size) prefetch_destination(batch[now + 1]);
    if (now < size) batch.drop(now, receive(context, batch[now]));
  }
}

// Where a WRITE's bytes go to, which is another page than the last one's.
void Nic::prefetch_destination(Packet packet) const {
  if (packet.size() < Memory::kPrefetchedBytes || packet.meta().status != ParseStatus::kRoce) return;
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (!info.has(roce::kHasReth) || !info.has(roce::kIsWrite)) return;
  const roce::Reth& reth = *roce::reth(packet);
  core_.memory.prefetch_bytes(static_cast<std::uint32_t>(reth.rkey), reth.virtual_address, packet.meta().payload_bytes);
}

bool Nic::is_for_us(Packet packet) const {
  const std::uint8_t* destination = packet.data();
  return first_six_bytes(destination) == mac_ || (destination[0] & 1);
}

Counter& Nic::receive(Context& context, Packet packet) {
  if (!core_.up) [[unlikely]]
    return core_.count.drop_down;
  if (packet.size() < sizeof(roce::Ethernet) || !is_for_us(packet)) return core_.count.drop_not_for_us;
  if (packet.meta().status == ParseStatus::kRoce) [[likely]]
    return receive_roce(context, packet);
  return receive_other(context, packet);
}

Counter& Nic::receive_other(Context& context, Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (roce::class_of(meta.status) == PacketClass::kMalformed) return core_.count.drop_malformed;
  if (roce::class_of(meta.status) == PacketClass::kTruncated && meta.bth_offset) return core_.count.drop_truncated;
  if (has_damaged_header(packet)) return core_.count.drop_checksum;
  if (group_reports_.on_packet(context, packet)) return core_.count.answered;
  if (meta.ip_version) {
    const roce::Addresses addresses = roce::addresses(packet);
    if (!is_own(addresses.destination) && addresses.destination[0] != 0xFF) return core_.count.drop_not_for_us;
    if (is_own(addresses.source)) return core_.count.drop_own_address;
  }
  if (Counter* end = pauses_.on_packet(context, packet)) return *end;
  if (Counter* end = rtt_.on_packet(context, packet)) return *end;
  if (Counter* end = peer_messages_.on_packet(context, packet)) return *end;
  bool found = false;
  Counter& end = neighbors_.on_packet(context, packet, found);
  if (found) resolve_waiting(context);
  return end;
}

Counter& Nic::receive_roce(Context& context, Packet packet) {
  Counters& count = core_.count;
  count.rx_roce_packets.add();
  count.rx_roce_bytes.add(packet.wire_bytes());
  if (config_.icrc) {
    const roce::IcrcStatus icrc = roce::icrc_check(packet);
    if (icrc == roce::IcrcStatus::kBad) return count.drop_icrc;
    if (icrc == roce::IcrcStatus::kUnverifiable && !config_.header_only) return count.drop_truncated;
    if (icrc == roce::IcrcStatus::kUnverifiable && !Headers::digest_is_right(packet)) return count.drop_icrc;
  }
  // Nearly all there is: from the peer of a connected queue pair that can receive, without a mark.
  const std::uint8_t* ip = packet.data() + packet.meta().l3_offset;
  Qp* qp = core_.find(roce::qpn_and_psn(packet).destination_qp);
  if (qp && qp->peer_ipv4 && packet.meta().ip_version == 4 &&
      eight_bytes(ip + offsetof(roce::Ipv4, source)) == qp->peer_ipv4 &&
      (ip[offsetof(roce::Ipv4, tos)] & roce::kEcnMask) != roce::kEcnCe && (roce::bth(packet).pkey & 0x7FFF) == 0x7FFF &&
      roce::opcode_info(packet.meta().opcode).service == qp->service() && qp->can_receive() &&
      qp->number() != roce::kGsiQpn) [[likely]]
    return receive_from_peer(context, *qp, packet);
  return receive_checked(context, packet, true);
}

// From a queue pair of this NIC: no wire has changed it.
void Nic::receive_own(Context& context, PacketPtr packet) {
  Counter& end = core_.up ? receive_checked(context, *packet, false) : core_.count.drop_down;
  context.drop(std::move(packet), end);
}

// With all checks, in the order in which they are counted.
Counter& Nic::receive_checked(Context& context, Packet packet, bool is_from_wire) {
  Counters& count = core_.count;
  const roce::Bth& bth = roce::bth(packet);
  const roce::Addresses addresses = roce::addresses(packet);
  // Its own packets to itself do not go by the wire; datagrams to a group it has delivered here when it sent them, and
  // WRITEs to a group do not come back to their NIC.
  if (is_from_wire && is_own(addresses.source)) return count.drop_own_address;
  // RFC 1122, 3.2.1.3. Who answered would ask a group, or itself.
  if (!roce::is_hosts(addresses.source)) return count.drop_no_host;
  if (!is_own(addresses.destination)) {
    if (roce::is_multicast(addresses.destination)) return receive_multicast(context, packet);
    return count.drop_not_for_us;
  }
  if ((bth.pkey & 0x7FFF) != 0x7FFF) return count.drop_bad_pkey;
  if (bth.destination_qp == roce::kGsiQpn) {
    if (has_damaged_header(packet)) return count.drop_checksum;
    Counter* why = gsi_.check(packet);
    return why ? *why : connections_.receive(context, packet);
  }
  Qp* qp = core_.find(static_cast<std::uint32_t>(bth.destination_qp));
  if (!qp) return count.drop_no_qp;
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (info.service == roce::Service::kCnp) return notified(context, *qp, addresses.source);
  if (info.service != qp->service()) return count.drop_wrong_service;
  if (!qp->can_receive()) return count.drop_qp_state;
  const bool is_datagram = info.service == roce::Service::kUd;
  if (!is_datagram && addresses.source != qp->attributes.remote) return count.drop_wrong_peer;
  if (roce::ecn(packet) == roce::kEcnCe) {
    count.np_ecn_marked_roce_packets.add();
    notify(context, *qp);
  }
  if (is_datagram) return qp->responder.on_datagram(context, packet);
  // A peer knows the way here and counts its retries. Where this side's question or its answer was lost it need not
  // wait until that is asked again.
  if (!qp->path_known && neighbors_.hear(addresses.source, packet.data() + sizeof(roce::Mac))) resolve_waiting(context);
  return receive_from_peer(context, *qp, packet);
}

Counter& Nic::receive_from_peer(Context& context, Qp& qp, Packet packet) {
  if (core_.is_observed(QpEventKind::kRx)) [[unlikely]]
    observe_received(context, qp, packet);
  // IB specification, 11.6.3.1: it stands for the peer's word that it is ready, so the program may go to RTS.
  if (qp.attributes.state == IBV_QPS_RTR && !std::exchange(qp.has_heard, true)) [[unlikely]]
    core_.tell({IBV_EVENT_COMM_EST, qp.number()});
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (!info.has(roce::kIsResponse)) return qp.responder.on_request(context, packet);
  if (info.has(roce::kIsReadResponse)) return qp.requester.on_read_response(context, packet);
  if (info.has(roce::kHasAtomicAckEth)) return qp.requester.on_atomic_response(context, packet);
  return qp.requester.on_acknowledge(context, packet);
}

void Nic::observe_received(Context& context, Qp& qp, Packet packet) {
  QpEvent event;
  event.kind = QpEventKind::kRx;
  event.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  event.bytes = static_cast<std::uint32_t>(packet.wire_bytes() + config_.overhead);
  event.udp_source_port = static_cast<std::uint16_t>(packet.header<roce::Udp>(packet.meta().udp_offset)->source_port);
  core_.observe(context, qp, event);
}

Counter& Nic::receive_multicast(Context& context, Packet packet) {
  core_.count.multicast_rcv_packets.add();
  const roce::Bth& bth = roce::bth(packet);
  if ((bth.pkey & 0x7FFF) != 0x7FFF) return core_.count.drop_bad_pkey;
  if (bth.destination_qp != kMulticastQpn) return core_.count.drop_no_qp;
  const roce::Service service = roce::opcode_info(packet.meta().opcode).service;
  if (service != roce::Service::kUd && service != roce::Service::kUc) return core_.count.drop_wrong_service;
  return deliver_to_group(core_, context, packet);
}

// Reaction point.
Counter& Nic::notified(Context& context, Qp& qp, const roce::IpAddress& source) {
  if (!core_.is_observed(QpEventKind::kCnp) || !qp.can_send() || source != qp.attributes.remote)
    return core_.count.rp_cnp_ignored;
  QpEvent event;
  event.kind = QpEventKind::kCnp;
  core_.observe(context, qp, event);
  return core_.count.rp_cnp_handled;
}

// Notification point: a packet that came with a mark (annex A17.9.3).
void Nic::notify(Context& context, Qp& qp) {
  if (!config_.notification_point || !qp.path_known || qp.is(IBV_QPT_UD)) return;
  if (context.now() - qp.last_cnp < config_.notification_point->min_time_between_cnps) return;
  qp.last_cnp = context.now();
  PacketFields fields;
  fields.opcode = roce::kOpcodeCnp;
  fields.destination_qp = qp.attributes.destination_qp;
  fields.udp_source_port = qp.attributes.udp_source_port;
  PacketPtr packet = core_.make(context, qp.notification_headers, fields);
  if (!packet) return;
  std::memset(Headers::extension(*packet), 0, sizeof(roce::Cnp));
  packet->header<roce::Bth>(packet->meta().bth_offset)->fecn_becn_resv6 = 0x40;
  core_.finish(*packet);
  if (core_.transmitter.add_control(context, packet))
    core_.count.np_cnp_sent.add();
  else
    context.drop(std::move(packet), core_.count.drop_control_full);
}

}  // namespace rocebox::nic_model
