// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/router.h"

#include "runtime/roce/parse.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr unsigned kRouteStage = 2, kGroupNumberBits = 16;

std::uint32_t prefixes_of(const Config& config) { return static_cast<std::uint32_t>(config.route_entries); }

// The sum of a right header's words is all ones.
bool checksum_holds(const std::uint8_t* header, unsigned bytes) {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < bytes; i += 2) sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF;
}

}  // namespace

Router::Router(const Config& config, const Build& build)
    : next_hops_(build.next_hops),
      v4_routes_(build.layout, "ipv4_route", {Gress::kIngress, kRouteStage}, prefixes_of(config), kGroupNumberBits),
      v6_routes_(build.layout, "ipv6_route", {Gress::kIngress, kRouteStage}, prefixes_of(config), kGroupNumberBits),
      drop_no_route_(build.stats.counter("drop_no_route", "to be routed, and no prefix holds its destination")),
      drop_ttl_(build.stats.counter("drop_ttl", "to be routed, and its TTL or hop limit is used up")),
      drop_ip_header_(build.stats.counter("drop_ip_header", "to be routed, and its IP header or checksum is wrong")),
      drop_for_router_(build.stats.counter("drop_for_router", "to the router's MAC address, and not IP")) {
  for (const RouteConfig& row : config.routes) {
    Prefix prefix;
    std::string why;
    parse_prefix(row.prefix, prefix, why);
    const auto group = static_cast<std::uint32_t>(next_hops_.groups.size());
    next_hops_.groups.push_back(
        {static_cast<std::uint16_t>(next_hops_.hops.size()), static_cast<std::uint16_t>(row.via.size())});
    for (const HopConfig& via : row.via) {
      NextHop hop{build.info.find(via.port), true, {}};
      parse_mac(via.mac, hop.mac);
      next_hops_.hops.push_back(hop);
    }
    const auto& a = prefix.address;
    const bool stored =
        prefix.is_ipv4
            ? v4_routes_.insert(std::uint32_t{a[12]} << 24 | a[13] << 16 | a[14] << 8 | a[15], prefix.bits, group)
            : v6_routes_.insert(prefix.address, prefix.bits, group);
    if (!stored) throw ConfigError("forward: no room for route " + row.prefix);
  }
}

bool Router::admit(Pass& pass, PacketState& p) const {
  const PacketMeta& meta = p.packet.meta();
  Counter* reason = nullptr;
  if (meta.ip_version == 0) {
    reason = meta.status == ParseStatus::kNotIp || meta.status == ParseStatus::kRoceV1 ? &drop_for_router_
                                                                                       : &drop_ip_header_;
  } else if (meta.ip_version == 4) {
    const std::uint8_t* ip = p.packet.data() + meta.l3_offset;
    const unsigned bytes = reinterpret_cast<const roce::Ipv4*>(ip)->header_bytes();
    if (p.packet.size() < meta.l3_offset + bytes || !checksum_holds(ip, bytes)) reason = &drop_ip_header_;
  }
  if (reason) pass.drop(p, *reason);
  return !reason;
}

}  // namespace rocebox::switch_model::forward
