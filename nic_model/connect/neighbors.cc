// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/connect/neighbors.h"

#include <algorithm>
#include <cstring>

#include "nic_model/connect/frames.h"
#include "runtime/roce/unicast.h"

namespace rocebox::nic_model {

using roce::is_stations;

Neighbors::Neighbors(Core& core) : core_(core), timer_(timer_tag(TimerOf::kNeighbors)) {
  for (const NeighborConfig& one : core.config.neighbors)
    if (one.address && one.mac) rows_.push_back({*one.address, *one.mac, true, true});
}

Neighbors::Row* Neighbors::find(const roce::IpAddress& address) {
  for (Row& row : rows_)
    if (row.address == address) return &row;
  return nullptr;
}

roce::IpAddress Neighbors::next_hop(const roce::IpAddress& destination) {
  const NicConfig& config = core_.config;
  const bool direct = find(destination) || config.is_on_link(destination) || !config.gateway;
  return direct ? destination : *config.gateway;
}

bool Neighbors::has_given_up(const roce::IpAddress& destination) {
  const Row* row = find(next_hop(destination));
  if (!row) return rows_.size() >= kNeighborsMax;  // there is no room to ask for it
  return !row->known && row->tries > core_.config.arp_tries;
}

Progress Neighbors::progress() const {
  Progress sum;
  for (const Row& row : rows_)
    if (!row.known && row.tries <= core_.config.arp_tries)
      sum.add(static_cast<std::uint64_t>(row.tries), row.ask_again);
  return sum;
}

const roce::Mac* Neighbors::resolve(Context& context, const roce::IpAddress& destination) {
  const roce::IpAddress hop = next_hop(destination);
  Row* row = find(hop);
  if (!row) {
    if (rows_.size() >= kNeighborsMax) return nullptr;
    row = &rows_.emplace_back();
    row->address = hop;
  }
  if (row->known) return &row->mac;
  if (row->ask_again <= context.now()) {
    row->tries = 0;
    ask(context, *row);
    arm(context);
  }
  return nullptr;
}

void Neighbors::ask(Context& context, Row& row) {
  row.tries++;
  row.ask_again = context.now() + core_.config.arp_timeout;
  if (roce::is_ipv4(row.address))
    ask_arp(context, row);
  else
    ask_nd(context, row);
}

void Neighbors::arm(Context& context) {
  Nanos first = kNever;
  for (const Row& row : rows_)
    if (!row.known && row.tries > 0 && row.tries <= core_.config.arp_tries) first = std::min(first, row.ask_again);
  if (first != kNever) context.arm(timer_, first);
}

bool Neighbors::on_timer(Context& context) {
  bool gave_up = false;
  for (Row& row : rows_) {
    if (row.known || row.tries == 0 || row.ask_again > context.now()) continue;
    if (row.tries < core_.config.arp_tries) {
      ask(context, row);
    } else if (row.tries == core_.config.arp_tries) {
      row.tries++;  // whoever wants it again begins anew
      core_.count.unresolved_neighbors.add();
      gave_up = true;
    }
  }
  arm(context);
  return gave_up;
}

void Neighbors::send(Context& context, PacketPtr packet, Counter& counter) {
  if (core_.transmitter.add_control(context, packet))
    counter.add();
  else
    context.drop(std::move(packet), core_.count.drop_control_full);
}

void Neighbors::ask_arp(Context& context, const Row& row) {
  PacketPtr packet = context.allocate(sizeof(ArpFrame));
  if (!packet) return core_.count.tx_no_packet.add();
  const roce::IpAddress own = core_.config.source_for(row.address);
  write_arp(*packet, kArpRequest, core_.config.mac_address(), own, roce::Mac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
            roce::Mac{}, row.address);
  send(context, std::move(packet), core_.count.arp_requests_sent);
}

void Neighbors::ask_nd(Context& context, const Row& row) {
  PacketPtr packet = context.allocate(kNdFrameBytes);
  if (!packet) return core_.count.tx_no_packet.add();
  write_solicitation(*packet, core_.config.mac_address(), core_.config.source_for(row.address), row.address);
  send(context, std::move(packet), core_.count.nd_solicitations_sent);
}

bool Neighbors::learn(const roce::IpAddress& address, const std::uint8_t* mac, bool& found) {
  Row* row = find(address);
  if (!row || row->is_written || !is_stations(mac)) return false;
  found = found || !row->known;
  std::copy_n(mac, 6, row->mac.begin());
  row->known = true;
  return true;
}

bool Neighbors::hear(const roce::IpAddress& sender, const std::uint8_t* mac) {
  bool found = false;
  return next_hop(sender) == sender && learn(sender, mac, found) && found;
}

Counter& Neighbors::on_packet(Context& context, Packet packet, bool& found) {
  found = false;
  Counters& count = core_.count;
  const auto* ethernet = packet.header<roce::Ethernet>(0);
  bool used = false;
  if (ethernet && ethernet->type == kEtherArp) {
    used = on_arp(context, packet, found);
  } else if (const IcmpMessage icmp = icmp_of(packet); icmp.is_one()) {
    if (!icmp.checksum_is_right) return count.drop_checksum;
    used = packet.meta().ip_version == 4 ? on_icmp(context, packet, icmp) : on_icmp6(context, packet, icmp, found);
  }
  return used ? count.answered : count.drop_no_protocol;
}

bool Neighbors::on_arp(Context& context, Packet packet, bool& found) {
  const auto* arp = packet.header<ArpFrame>(0);
  if (!arp || arp->hardware != 1 || arp->protocol != roce::kEtherIpv4 || arp->hardware_bytes != 6 ||
      arp->protocol_bytes != 4 || !is_stations(arp->sender_mac))
    return false;
  const roce::IpAddress sender = mapped(arp->sender_ip), target = mapped(arp->target_ip);
  const bool learnt = learn(sender, arp->sender_mac, found);
  if (arp->operation != kArpRequest || core_.config.source_for(sender) != target) return learnt;
  roce::Mac asker;
  std::copy_n(arp->sender_mac, 6, asker.begin());
  PacketPtr reply = context.allocate(sizeof(ArpFrame));
  if (!reply) return core_.count.tx_no_packet.add(), true;
  write_arp(*reply, kArpReply, core_.config.mac_address(), target, asker, asker, sender);
  send(context, std::move(reply), core_.count.arp_replies_sent);
  return true;
}

bool Neighbors::on_icmp(Context& context, Packet packet, const IcmpMessage& icmp) {
  return packet.data()[icmp.offset] == kEchoRequest4 && reply_to_echo(context, packet, icmp);
}

// From the own address, also where all nodes are asked (RFC 4443, 4.2), and to one node (RFC 4443, 2.4 e; RFC 1122,
// 3.2.1.3), which is another one.
bool Neighbors::reply_to_echo(Context& context, Packet packet, const IcmpMessage& icmp) {
  const roce::IpAddress asker = roce::addresses(packet).source;
  const std::uint8_t* const mac = packet.data() + sizeof(roce::Mac);
  if (!roce::is_hosts(asker) || !is_stations(mac) || std::ranges::equal(core_.config.mac_address(), std::span(mac, 6)))
    return false;
  PacketPtr reply = echo_reply(context, packet, icmp, core_.config.mac_address(), core_.config.source_for(asker));
  if (!reply) return core_.count.tx_no_packet.add(), true;
  send(context, std::move(reply), core_.count.echo_replies_sent);
  return true;
}

bool Neighbors::on_icmp6(Context& context, Packet packet, const IcmpMessage& icmp, bool& found) {
  const std::uint8_t type = packet.data()[icmp.offset];
  if (type == kEchoRequest6) return reply_to_echo(context, packet, icmp);
  NdMessage nd;
  if ((type != kNeighborAdvertisement && type != kNeighborSolicitation) || !read_nd(packet, nd)) return false;
  if (nd.mac && !is_stations(nd.mac->data())) return false;
  if (type == kNeighborAdvertisement) return nd.mac && learn(nd.target, nd.mac->data(), found);
  const roce::Addresses asked = roce::addresses(packet);
  // Who asks from no address wants to know whether that one is taken (RFC 4862, 5.4.3).
  const bool is_nobody = asked.source == roce::IpAddress{};
  if (!is_nobody && !nd.mac && !is_stations(packet.data() + sizeof(roce::Mac))) return false;
  const bool learnt = nd.mac && !is_nobody && learn(asked.source, nd.mac->data(), found);
  if (core_.config.source_for(nd.target) != nd.target) return learnt;
  PacketPtr reply = context.allocate(kNdFrameBytes);
  if (!reply) return core_.count.tx_no_packet.add(), true;
  constexpr roce::IpAddress kAllNodes = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  roce::Mac mac = roce::multicast_mac(kAllNodes);
  if (!is_nobody && nd.mac)
    mac = *nd.mac;
  else if (!is_nobody)
    std::copy_n(packet.data() + sizeof(roce::Mac), sizeof(roce::Mac), mac.begin());  // Ethernet's source
  write_advertisement(*reply, core_.config.mac_address(), nd.target, mac, is_nobody ? kAllNodes : asked.source);
  send(context, std::move(reply), core_.count.nd_advertisements_sent);
  return true;
}

}  // namespace rocebox::nic_model
