// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/router.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr unsigned kRouteStage = 2, kGroupNumberBits = 16;

std::uint32_t prefixes_of(const Config& config) { return static_cast<std::uint32_t>(config.route_entries); }

}  // namespace

Router::Router(const Config& config, const Build& build)
    : next_hops_(build.next_hops),
      v4_routes_(build.layout, "ipv4_route", {Gress::kIngress, kRouteStage}, prefixes_of(config), kGroupNumberBits),
      v6_routes_(build.layout, "ipv6_route", {Gress::kIngress, kRouteStage}, prefixes_of(config), kGroupNumberBits),
      drop_no_route_(build.stats.counter("drop_no_route", "to be routed, and no prefix holds its destination")),
      drop_ttl_(build.stats.counter("drop_ttl", "to be routed, and its TTL or hop limit is used up")),
      drop_ip_header_(build.stats.counter("drop_ip_header", "to be routed, and its IP header or checksum is wrong")),
      drop_for_router_(build.stats.counter("drop_for_router", "to the router's MAC address, and not IP")) {
  if (config.router_mac) return;
  build.layout.unused(v4_routes_, "there is no `router_mac`");
  build.layout.unused(v6_routes_, "there is no `router_mac`");
}

Router::Routes Router::empty_routes(const Config& config) { return Routes(prefixes_of(config)); }

void Router::Routes::add(const roce::Prefix& prefix, std::uint32_t group) {
  const auto& a = prefix.address;
  const bool stored = prefix.is_ipv4
                          ? v4.insert(roce::load_be16(&a[12]) << 16 | roce::load_be16(&a[14]), prefix.bits, group)
                          : v6.insert(prefix.address, prefix.bits, group);
  if (!stored) throw ConfigError("forward: no room for route " + roce::prefix_text(prefix));
}

}  // namespace rocebox::switch_model::forward
