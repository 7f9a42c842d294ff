// SPDX-License-Identifier: BSD-3-Clause
// Router: L3 forwarding of packets to the switch's own MAC address.
#pragma once
#include "runtime/roce/headers.h"
#include "runtime/roce/hop_fields.h"
#include "runtime/roce/ipv4_checksum.h"
#include "switch_model/forward/bridge.h"
#include "switch_model/tables/lpm_table.h"

namespace rocebox::switch_model::forward {

class Router {
 public:
  /// Prefixes with the numbers of their groups, to take the place of others.
  struct Routes {
    explicit Routes(std::uint32_t capacity) : v4(capacity), v6(capacity) {}
    Ipv4Lpm v4;
    Ipv6Lpm v6;
    /// Throws ConfigError when there is no room or memory.
    void add(const roce::Prefix& prefix, std::uint32_t group);
  };

  /// Without routes.
  Router(const Config& config, const Build& build);

  static Routes empty_routes(const Config& config);
  void change(Routes& routes) {
    v4_routes_.swap_entries(routes.v4);
    v6_routes_.swap_entries(routes.v6);
  }

  /// Lowers the TTL of an IPv4 packet whose header a router may forward; false, and nothing is changed, of another one.
  static bool next_hop_ipv4(Packet packet) {
    auto& ip = *reinterpret_cast<roce::Ipv4*>(packet.data() + packet.meta().l3_offset);
    if (ip.ttl <= 1 || !roce::ipv4_checksum_holds(ip)) return false;
    roce::lower_ttl(ip);
    return true;
  }

  /// Finds the group of next hops of each packet, and lowers its TTL.
  template <class Access>
  void forward(Access& access, Pass& pass, const Selection& packets) {
    Selection v4, v6;
    std::array<std::uint32_t, kBatchMax> v4_keys, groups;
    std::array<Ipv6Lpm::Key, kBatchMax> v6_keys;
    for (PacketState* p : packets.span()) {
      if (!admit(pass, *p)) continue;
      const PacketMeta& meta = p->packet.meta();
      const std::uint8_t* ip = p->packet.data() + meta.l3_offset;
      if (meta.ip_version == 4) {
        const auto& destination = reinterpret_cast<const roce::Ipv4*>(ip)->destination;
        v4_keys[v4.count] =
            std::uint32_t{destination[0]} << 24 | destination[1] << 16 | destination[2] << 8 | destination[3];
        v4.add(*p);
      } else {
        std::memcpy(v6_keys[v6.count].data(), reinterpret_cast<const roce::Ipv6*>(ip)->destination, 16);
        v6.add(*p);
      }
    }
    access.lookup_bulk(v4.span(), v4_routes_, {v4_keys.data(), v4.count}, {groups.data(), v4.count});
    for (unsigned i = 0; i < v4.count; i++) route(pass, *v4.packets[i], groups[i]);
    if (v6.count == 0) return;
    access.lookup_bulk(v6.span(), v6_routes_, {v6_keys.data(), v6.count}, {groups.data(), v6.count});
    for (unsigned i = 0; i < v6.count; i++) route(pass, *v6.packets[i], groups[i]);
  }

 private:
  /// False, and the packet is dropped, when a router must not forward it (RFC 1812, 5.2.2).
  bool admit(Pass& pass, PacketState& p) const {
    const PacketMeta& meta = p.packet.meta();
    if (meta.ip_version == 4) {
      const auto* ip = p.packet.header<roce::Ipv4>(meta.l3_offset);
      const bool held = p.packet.size() >= meta.l3_offset + ip->header_bytes();
      if (held && roce::ipv4_checksum_holds(*ip)) return true;
    } else if (meta.ip_version == 6) {
      return true;
    }
    const bool other = meta.status == ParseStatus::kNotIp || meta.status == ParseStatus::kRoceV1;
    pass.drop(p, other ? drop_for_router_ : drop_ip_header_);
    return false;
  }
  void route(Pass& pass, PacketState& p, std::uint32_t group) {
    if (group == kMiss) return pass.drop(p, drop_no_route_);
    if (!roce::lower_ttl(p.packet)) return pass.drop(p, drop_ttl_);
    p.metadata[next_hops_.group_word] = group + 1;
  }

  NextHops& next_hops_;
  Ipv4Lpm v4_routes_;
  Ipv6Lpm v6_routes_;
  Counter &drop_no_route_, &drop_ttl_, &drop_ip_header_, &drop_for_router_;
};

}  // namespace rocebox::switch_model::forward
