// SPDX-License-Identifier: BSD-3-Clause
// What nic_fuzz.cc sends to a side in its peer's name, or a stranger's: fields as the input says, mostly near what the
// side expects, with an ICRC that is right.
#pragma once
#include <rte_mbuf.h>

#include <vector>

#include "runtime/roce/build.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/multicast.h"
#include "tests/fuzz/nic_hosts.h"

namespace rocebox::fuzz::nic_bed {

struct Forged {
  PacketPtr packet;
  bool is_strange = false;  ///< it must change nothing
};

class Forger {
 public:
  Forger(Input& input, bool header_only) : input_(input), header_only_(header_only), payload_(5000, 0xAB) {}

  /// A packet to queue pair `pair` of `victim`, which is side `side`, or to its group.
  Forged packet(unsigned side, unsigned pair, Side& victim, Side& peer) {
    const Way way = kKinds[pair].way;
    const nic_model::Qp& of_peer = way == Way::kWithin ? victim.qp(kKinds[pair].peer) : peer.qp(pair);
    roce::PacketSpec spec;
    spec.underlay.source_mac = mac_of(1 - side), spec.underlay.destination_mac = mac_of(side);
    spec.underlay.addresses = {address_of(1 - side), address_of(side)};
    spec.destination_qp = victim.qp(pair).number();
    spec.source_qp = of_peer.number();
    spec.opcode = opcode(pair);
    spec.psn = psn(victim.qp(pair), of_peer);
    const std::uint32_t mtu = victim.setup().connect.mtu;
    spec.payload = std::span(payload_).first(payload_bytes(mtu));
    remote(spec, mtu, pair, victim);
    response(spec);
    const unsigned flags = input_.take();
    spec.ack_req = flags & 1, spec.solicited_event = flags & 2, spec.mig_req = flags & 4;
    spec.underlay.tos = flags & 8 ? roce::kEcnCe : 2;
    spec.immediate = spec.rkey;
    spec.qkey = kQkey;
    if (way == Way::kGroup) to_group(spec);
    Forged forged;
    if ((flags & 0xE0) == 0xE0) forged.is_strange = disguise(spec, victim.qp(pair), way);
    if (way == Way::kWithin) {  // whatever the wire says: that peer is not there
      if (flags & 16) spec.underlay.addresses.source = address_of(side);
      forged.is_strange = forged.is_strange || spec.destination_qp == victim.qp(pair).number();
    }
    forged.packet = built(spec, (flags & 0x30) == 0x30 ? input_.take() & 0x30u : 0);
    return forged;
  }
  /// A congestion notification for a queue pair.
  PacketPtr notification(unsigned side, const nic_model::Qp& victim) {
    roce::PacketSpec spec;
    spec.underlay.source_mac = mac_of(1 - side), spec.underlay.destination_mac = mac_of(side);
    spec.underlay.addresses = {victim.attributes.remote, address_of(side)};
    if (!roce::is_ipv4(victim.attributes.remote)) spec.underlay.addresses.source = kStranger;
    spec.destination_qp = victim.number();
    spec.opcode = roce::kOpcodeCnp;
    spec.becn = true;
    return built(spec, 0);
  }
  /// Some bytes of a real packet are others.
  PacketPtr bent(const std::vector<std::uint8_t>& frame, std::uint32_t wire_bytes) {
    PacketPtr packet = of(frame, wire_bytes);
    const bool is_mad = frame.size() == kMadFrameBytes;
    for (unsigned changes = 1 + input_.below(4); changes > 0; changes--) {
      // Of the headers from IP on, mostly; of a MAD all of it.
      const std::size_t at = 14 + input_.below(is_mad ? 256 : 80);
      const std::uint8_t other = input_.take();
      if (at < packet->size()) packet->data()[at] = other;
    }
    return resealed(*packet, wire_bytes);
  }

  /// A packet of these bytes, which nobody has parsed.
  static PacketPtr of(std::span<const std::uint8_t> bytes, std::uint32_t wire_bytes) {
    PacketPtr packet = pool->allocate(static_cast<std::uint32_t>(bytes.size()));
    require(static_cast<bool>(packet), "the pool is large enough");
    std::copy(bytes.begin(), bytes.end(), packet->data());
    packet->meta().wire_bytes = wire_bytes;
    return packet;
  }

 private:
  static constexpr std::size_t kMadFrameBytes = 14 + 20 + 8 + 12 + 8 + 256 + 4;

  std::uint8_t opcode(unsigned pair) {
    const unsigned service = kKinds[pair].type == IBV_QPT_RC ? unsigned{IBV_OPCODE_RC} : unsigned{IBV_OPCODE_UC};
    const std::uint8_t drawn = input_.take();
    if (drawn >= 0xF0) return drawn & 1 ? roce::kOpcodeCnp : input_.take();
    if (kKinds[pair].type == IBV_QPT_UD)
      return drawn & 1 ? IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE : IBV_OPCODE_UD_SEND_ONLY;
    return static_cast<std::uint8_t>(service | drawn % 24);
  }
  std::uint32_t psn(const nic_model::Qp& qp, const nic_model::Qp& peer) {
    const std::uint8_t drawn = input_.take();
    const std::uint32_t anchors[] = {qp.responder.expected_psn(), qp.requester.unacknowledged_psn(),
                                     qp.requester.next_psn(), peer.requester.next_psn()};
    std::int64_t ahead = 0;
    if (drawn & 4) ahead = (drawn >> 3 & 15) - 8;
    if ((drawn & 0x84) == 0x84) ahead *= 1 + input_.take() * std::int64_t{input_.take()};
    return roce::psn_add(anchors[drawn & 3], ahead);
  }
  std::uint32_t payload_bytes(std::uint32_t mtu) {
    const std::uint8_t drawn = input_.take();
    const std::uint32_t sizes[] = {mtu, 0, 8, 1, mtu - 1, mtu + 4, 3, drawn};
    return sizes[drawn % 8];
  }
  std::uint32_t key(std::uint8_t drawn, unsigned pair, Side& victim) const {
    const Arena& arena = victim.arena();
    if (drawn % 8 < kZones) return arena.key(static_cast<Zone>(drawn % 8));
    if (drawn % 8 == 6) return victim.window(pair);
    if (drawn >= 0xC0) return arena.key(static_cast<Compound>(drawn / 8 % kCompounds));
    return arena.key(static_cast<Zone>(drawn / 8 % kZones)) ^ 1u << drawn / 64;
  }
  // RETH, AtomicETH, and with them IETH.
  void remote(roce::PacketSpec& spec, std::uint32_t mtu, unsigned pair, Side& victim) {
    const std::uint8_t drawn = input_.take(), at = input_.take(), length = input_.take();
    spec.rkey = drawn < 0x80 ? victim.arena().key(kOpen) : key(drawn, pair, victim);
    const Zone zone = drawn < 0x80         ? kOpen
                      : drawn % 8 < kZones ? static_cast<Zone>(drawn % 8)
                      : drawn % 8 == 6     ? kWindowed
                                           : kOpen;
    const std::uint64_t offsets[] = {kWindowAt,
                                     0,
                                     kZoneBytes - 8,
                                     kZoneBytes - mtu,
                                     kWindowAt + kWindowBytes - mtu,
                                     std::uint64_t{at} * 8,
                                     std::uint64_t{at} * 33,
                                     0 - std::uint64_t{at}};
    spec.virtual_address = victim.arena().address(zone) + offsets[at % 8];
    if (drawn >= 0xC0 && drawn % 8 == 7)
      spec.virtual_address = victim.arena().address(static_cast<Compound>(drawn / 8 % kCompounds)) + offsets[at % 8];
    const auto bytes = static_cast<std::uint32_t>(spec.payload.size());
    const std::uint32_t lengths[] = {
        bytes, 2 * mtu, 2 * mtu + bytes, 3 * mtu + 7, 8, std::uint32_t{kZoneBytes}, 0x80000001u, length * 16u};
    spec.dma_length = length < 0x60 ? bytes : lengths[length % 8];
    spec.swap_add = 1 + drawn, spec.compare = drawn;
  }
  void response(roce::PacketSpec& spec) {
    const std::uint8_t drawn = input_.take();
    spec.syndrome = drawn < 0x80 ? static_cast<std::uint8_t>(drawn % 2 ? 0x1F : drawn) : drawn & 0x7F;
    if (drawn < 0x40 && drawn % 4 == 2) spec.syndrome = static_cast<std::uint8_t>(0x60 | (drawn >> 2 & 7));
    spec.msn = drawn % 3 ? drawn : roce::psn_add(spec.psn, drawn % 16);
    spec.original = drawn;
  }
  // A WRITE's key names a window, in which its address is an offset.
  void to_group(roce::PacketSpec& spec) const {
    const roce::IpAddress group = group_of(0);
    spec.underlay.addresses.destination = group;
    spec.underlay.destination_mac = roce::multicast_mac(group);
    spec.destination_qp = nic_model::kMulticastQpn;
    spec.rkey = spec.swap_add % 4 ? 1 : static_cast<std::uint32_t>(spec.swap_add / 4 % 8);
    if (spec.swap_add % 8) spec.virtual_address = spec.swap_add % 16 * 256;
  }
  // Not what the queue pair's peer would send.
  bool disguise(roce::PacketSpec& spec, const nic_model::Qp& victim, Way way) {
    switch (input_.below(5)) {
      case 0:
        spec.underlay.addresses.source = kStranger;
        return !victim.is(IBV_QPT_UD) && way != Way::kGroup && victim.attributes.remote != kStranger;
      case 1:
        spec.pkey = 0x8001;
        return true;
      case 2:
        spec.qkey ^= 1u << input_.below(32);
        return victim.is(IBV_QPT_UD);
      case 3:
        spec.underlay.addresses.destination = kStranger;
        return true;
      default:
        spec.destination_qp ^= 1u << input_.below(24);
        return false;
    }
  }
  PacketPtr built(const roce::PacketSpec& spec, unsigned pad) {
    PacketPtr packet = pool->allocate(roce::built_bytes(spec));
    require(static_cast<bool>(packet), "the pool is large enough");
    roce::build(*packet, spec);
    if (pad) {
      packet->data()[packet->meta().bth_offset + 1] ^= static_cast<std::uint8_t>(pad);
      return resealed(*packet, packet->size());
    }
    if (header_only_ && spec.payload.size() > nic_model::Headers::kDigestBytes) cut(*packet);
    return packet;
  }
  // Headers and a digest are left.
  static void cut(Packet packet) {
    const std::uint32_t left = packet.meta().payload_offset + nic_model::Headers::kDigestBytes;
    if (packet.size() > left) rte_pktmbuf_trim(packet.mbuf(), static_cast<std::uint16_t>(packet.size() - left));
    nic_model::Headers::store_digest(packet);
  }
  // One that nobody has parsed, with the right ICRC or digest where it has one.
  static PacketPtr resealed(Packet packet, std::uint32_t wire_bytes) {
    PacketPtr other = of({packet.data(), packet.size()}, wire_bytes);
    roce::parse(*other);
    if (other->meta().status == ParseStatus::kRoce) {
      if (roce::icrc_held(*other))
        roce::icrc_store(*other);
      else if (other->size() >= other->meta().payload_offset + nic_model::Headers::kDigestBytes)
        nic_model::Headers::store_digest(*other);
    }
    return of({other->data(), other->size()}, wire_bytes);
  }

  Input& input_;
  bool header_only_;
  std::vector<std::uint8_t> payload_;
};

}  // namespace rocebox::fuzz::nic_bed
