// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/kernel/splitmix64.h"
#include "runtime/roce/multicast.h"
#include "switch_model/hash.h"
#include "switch_model/tables/small_lpm.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr std::string_view kUnknownWords[] = {"flood", "drop", "drop_all"};
constexpr std::int64_t kMacEntriesMin = 16, kRouteEntriesMin = 16;
constexpr std::int64_t kMacEntriesMax = 1 << 20, kRouteEntriesMax = 1 << 16;
constexpr std::size_t kHopsMax = 512;  // paths of one group
constexpr std::int64_t kHopsOfAllMax = 0xFFFF;
constexpr std::string_view kBalanceWords[] = {"flow", "flowlet", "random", "least_queue"};
constexpr std::string_view kOperations[] = {"write", "read", "send"};
constexpr std::int64_t kFlowletEntriesMax = 1 << 20;

// A router and its neighbours are stations, not groups of them.
void refuse_group_mac(Fields& f, std::string_view name, const std::optional<Mac>& mac) {
  if (mac && (*mac)[0] & 1)
    f.refuse(name, fmt::format("must be the address of one station, and `{}` is a group's", roce::mac_text(*mac)));
}

}  // namespace

void MacConfig::fields(Fields& f, const SwitchInfo& info) {
  f.mac("mac", mac, Presence::kRequired, "destination address");
  f.integer("vlan", vlan, {0, 4095}, "VLAN identifier; 0: untagged");
  info.read_ports(f, "ports", ports, "where it is; several are equal paths, chosen by `balance`");
  f.integer("group", group, {0, kGroupMax}, "multicast group that packets to it are sent to, in place of `ports`");
  if (ports.empty() == (group == 0)) f.refuse("mac", "needs `ports` or `group`, and not both");
  if (ports.size() > kHopsMax) f.refuse("ports", fmt::format("must have at most {}", kHopsMax));
  if (group != 0 && std::ranges::find(info.multicast_groups, group) == info.multicast_groups.end())
    f.refuse("group", fmt::format("names no group: {} is not in `multicast_groups:` of the switch", group));
}

void HopConfig::fields(Fields& f, const SwitchInfo& info) {
  info.read_port(f, "port", port, "port of the switch that leads to it");
  f.mac("mac", mac, Presence::kRequired, "its MAC address, which routed packets get");
  refuse_group_mac(f, "mac", mac);
}

void RouteConfig::fields(Fields& f, const SwitchInfo& info) {
  f.prefix("prefix", prefix, Presence::kRequired, "destinations, such as 10.0.0.0/24 or 2001:db8::/64");
  f.list("via", via, kHopsMax, "next hops; several are equal paths, chosen by `balance`",
         [&](Fields& g, HopConfig& hop) { hop.fields(g, info); });
  if (via.empty()) f.refuse("via", "must name a next hop at least");
  std::set<std::pair<std::string, Mac>> seen;
  for (const HopConfig& hop : via)
    if (hop.mac && !seen.emplace(hop.port, *hop.mac).second)
      f.refuse("via", fmt::format("names port `{}` with `{}` twice", hop.port, roce::mac_text(*hop.mac)));
}

std::vector<NextHop> hops_of(const MacConfig& mac, const SwitchInfo& info) {
  std::vector<NextHop> hops;
  for (const std::string& port : mac.ports) hops.push_back({info.find(port), false, {}});
  return hops;
}

std::vector<NextHop> hops_of(const RouteConfig& route, const SwitchInfo& info) {
  std::vector<NextHop> hops;
  for (const HopConfig& via : route.via) hops.push_back({info.find(via.port), true, via.mac.value_or(Mac{})});
  return hops;
}

namespace {

// What is wrong with an entry is said where it stands.
void refuse_doubles(Fields& f, const Config& config) {
  std::set<std::pair<Mac, std::int64_t>> addresses;
  for (const MacConfig& row : config.macs)
    if (row.mac && !addresses.emplace(*row.mac, row.vlan).second)
      f.refuse("macs", fmt::format("has two entries for `{}`", roce::mac_text(*row.mac)));
  std::set<roce::Prefix> prefixes;
  for (const RouteConfig& row : config.routes)
    if (row.prefix && !prefixes.insert(*row.prefix).second)
      f.refuse("routes", fmt::format("has two entries for `{}`", roce::prefix_text(*row.prefix)));
}

// Whether flows come to it that a switch before has sent here by their hash. A switch that hashed them alike would
// send all of them on by one path, whatever its seed: that is one constant put on all hashes by exclusive or.
bool gets_chosen_traffic(const Placement& placement) {
  return std::ranges::any_of(placement.ports, [&](const Placement::PlacedPort& port) {
    return port.neighbor_tier > 0 && port.neighbor_tier <= placement.tier;
  });
}

// Odd, so that what is hashed first still counts.
std::int64_t polynomial_of(const Mac& mac) {
  std::uint64_t state = roce::mac_number(mac.data());
  return static_cast<std::int64_t>((splitmix64::next(state) & UINT32_MAX) | 1);
}

}  // namespace

std::uint64_t Config::eal_bytes() const {
  // Of rte_hash, in both MAC tables.
  constexpr std::uint64_t kBytesPerMac = 512;
  // rte_lpm's and rte_lpm6's tables of all /24, of which the system gives what is touched. They hold so many prefixes,
  // and each more takes its groups of 256.
  constexpr std::uint64_t kRoutesBytes = std::uint64_t{2 * 144} << 20, kRoutesWithin = 1024,
                          kBytesPerRoute = 2 * 15 * 1024;
  std::uint64_t bytes = static_cast<std::uint64_t>(mac_entries) * kBytesPerMac;
  if (!router_mac || route_entries <= kSmallLpmPrefixes)
    return bytes;  // without routes at the start some may be reloaded, but not without this
  const auto prefixes = static_cast<std::uint64_t>(route_entries);
  return bytes + kRoutesBytes + (prefixes - std::min(prefixes, kRoutesWithin)) * kBytesPerRoute;
}

void Config::place(const Placement& placement, const SwitchInfo& info) {
  learning = false;
  unknown = Unknown::kDropAll;
  router_mac = placement.mac;
  // Groups are numbered as the switch does it.
  for (const Placement::Route& route : placement.routes)
    if (roce::is_multicast(route.prefix.address) && !route.via.empty())
      macs.push_back({roce::multicast_mac(route.prefix.address), 0, {}, static_cast<std::int64_t>(macs.size()) + 1});
  mac_entries = std::max(kMacEntriesMin, static_cast<std::int64_t>(macs.size()));
  std::set<std::vector<NextHop>> lists;
  for (const Placement::Route& route : placement.routes) {
    if (roce::is_multicast(route.prefix.address)) continue;
    RouteConfig& row = routes.emplace_back(RouteConfig{route.prefix, {}});
    for (const Placement::Hop& hop : route.via) row.via.push_back({info.ports[hop.port], hop.mac});
    lists.insert(hops_of(row, info));
  }
  std::size_t hops = 0;
  for (const auto& list : lists) hops += list.size();
  route_entries = std::max(kRouteEntriesMin, static_cast<std::int64_t>(routes.size()));
  hop_entries = std::max(kRouteEntriesMin, static_cast<std::int64_t>(hops));
  ecmp_seed = static_cast<std::int64_t>(roce::mac_number(placement.mac.data()) & UINT32_MAX);
  if (gets_chosen_traffic(placement)) ecmp_polynomial = polynomial_of(placement.mac);
}

void Config::tell(SwitchInfo& info) const {
  info.routes = router_mac.has_value();
  for (const MacConfig& row : macs)
    if (row.mac && row.ports.size() > 1) info.equal_ports.push_back({roce::mac_text(*row.mac), row.ports});
  for (const RouteConfig& row : routes) {
    if (!row.prefix || row.via.size() < 2) continue;
    EqualPorts& equal = info.equal_ports.emplace_back(EqualPorts{roce::prefix_text(*row.prefix), {}});
    for (const HopConfig& hop : row.via) equal.ports.push_back(hop.port);
  }
}

bool Config::has_equal_paths() const {
  return std::ranges::any_of(macs, [](const MacConfig& row) { return row.ports.size() > 1; }) ||
         std::ranges::any_of(routes, [](const RouteConfig& row) { return row.via.size() > 1; });
}

void Config::balance_fields(Fields& f) {
  f.choice("balance", balance, kBalanceWords,
           "what chooses among equal paths: the flow's hash, or, for RoCEv2 only, a draw for each burst of a flow, a "
           "draw for each packet, the port where the least bytes wait");
  f.texts("balance_operations", balance_operations,
          "with `random` and `least_queue`: write, read, send: the data packets of these operations of RC leave their "
          "flow's path");
  for (auto name = balance_operations.begin(); name != balance_operations.end(); ++name) {
    if (std::ranges::find(kOperations, *name) == std::end(kOperations))
      f.refuse("balance_operations", fmt::format("must be of write, read and send, found `{}`", *name));
    if (std::find(balance_operations.begin(), name, *name) != name)
      f.refuse("balance_operations", fmt::format("names `{}` twice", *name));
  }
  if (balance_operations.empty())
    f.refuse("balance_operations", "must name one at least, such as [write]; to spread none, write `balance: flow`");
  f.duration("flowlet_gap", flowlet_gap, {kMicrosecond, kSecond},
             "with `flowlet`: after a longer silence of a flow its next packet may take another path; more than paths "
             "differ in delay, so that the order stays");
  f.integer("flowlet_entries", flowlet_entries, {16, kFlowletEntriesMax},
            "with `flowlet`: cells of the table, chosen by the flow's hash; flows of one cell go on together");
  for (const char* name : {"flowlet_gap", "flowlet_entries"})
    f.has_effect(name, balance == Balance::kFlowlet, "balance", "has no effect without `balance: flowlet`");
}

void Config::fields(Fields& f, const SwitchInfo& info) {
  f.boolean("learning", learning, "learn where MAC addresses are from packets that come in");
  f.duration("mac_age", mac_age, {kMillisecond, 86400 * kSecond},
             "learnt addresses that are silent so long are forgotten");
  f.integer("mac_entries", mac_entries, {kMacEntriesMin, kMacEntriesMax}, "MAC addresses, static and learnt");
  f.choice("unknown", unknown, kUnknownWords,
           "what happens to packets to MAC addresses that are not known; drop_all: to groups, too, so that nothing is "
           "flooded, as it must not be where there are equal paths at L2");
  f.list("macs", macs, static_cast<std::size_t>(kMacEntriesMax), "static MAC addresses",
         [&](Fields& g, MacConfig& mac) { mac.fields(g, info); });
  if (macs.size() > static_cast<std::size_t>(mac_entries)) f.refuse("macs", "has more entries than `mac_entries`");
  f.mac("router_mac", router_mac, Presence::kOptional, "packets to this MAC address are routed; empty: none are");
  refuse_group_mac(f, "router_mac", router_mac);
  f.integer("route_entries", route_entries, {kRouteEntriesMin, kRouteEntriesMax}, "prefixes of each address family");
  f.list("routes", routes, static_cast<std::size_t>(kRouteEntriesMax), "prefixes and their next hops",
         [&](Fields& g, RouteConfig& route) { route.fields(g, info); });
  if (routes.size() > static_cast<std::size_t>(route_entries))
    f.refuse("routes", "has more entries than `route_entries`");
  if (!routes.empty() && !router_mac) f.refuse("routes", "need `router_mac`, which packets to be routed are sent to");
  f.integer(
      "hop_entries", hop_entries, {kRouteEntriesMin, kHopsOfAllMax},
      "next hops of all routes and of addresses with several ports, each list of them once; new ones are reloaded "
      "beside those in use");
  std::set<std::vector<NextHop>> lists;
  for (const RouteConfig& route : routes) lists.insert(hops_of(route, info));
  for (const MacConfig& entry : macs)
    if (entry.ports.size() > 1) lists.insert(hops_of(entry, info));
  std::size_t hops = 0;
  for (const auto& list : lists) hops += list.size();
  if (hops > static_cast<std::size_t>(hop_entries))
    f.refuse("hop_entries", fmt::format("is less than the {} next hops of the routes and addresses", hops));
  refuse_doubles(f, *this);
  std::vector<std::string_view> words;
  for (const CrcAlgorithm& algorithm : crc_algorithms()) words.push_back(algorithm.name);
  f.choice("ecmp_hash", ecmp_hash, words, "CRC over addresses, protocol and ports that chooses among equal paths");
  f.integer("ecmp_seed", ecmp_seed, {0, UINT32_MAX},
            "put before the bytes, so that switches side by side choose apart");
  const CrcAlgorithm& algorithm = crc_algorithms()[static_cast<std::size_t>(ecmp_hash)];
  ecmp_polynomial &= static_cast<std::int64_t>((std::uint64_t{1} << algorithm.width) - 1);  // one that was placed
  f.integer("ecmp_polynomial", ecmp_polynomial, {0, UINT32_MAX},
            "of the CRC in place of its own, in normal form without the highest power, odd: of two switches one behind "
            "the other with one polynomial the second sends all flows of the first's choice by one path; 0: its own");
  if (ecmp_polynomial != 0 && ecmp_polynomial % 2 == 0)
    f.refuse("ecmp_polynomial", "must be odd, or the last bits of the key would not count");
  if (static_cast<std::uint64_t>(ecmp_polynomial) >> algorithm.width)
    f.refuse("ecmp_polynomial",
             fmt::format("has more than the {} bits of `ecmp_hash: {}`", algorithm.width, algorithm.name));
  balance_fields(f);
}

}  // namespace rocebox::switch_model::forward
