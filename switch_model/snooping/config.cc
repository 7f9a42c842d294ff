// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/snooping/config.h"

#include <algorithm>

#include "switch_model/dynamic_groups.h"

namespace rocebox::switch_model::snooping {
namespace {

constexpr std::string_view kUnknownWords[] = {"flood", "routers", "drop"};
constexpr std::int64_t kGroupsMax = 4096;
constexpr Nanos kHour = 3600 * kSecond;

}  // namespace

void Config::fields(Fields& f, const SwitchInfo& info) {
  f.integer("groups", groups, {1, kGroupsMax}, "groups with members that are remembered, each VLAN's apart");
  if (std::ranges::any_of(info.multicast_groups, [](std::int64_t number) { return number >= DynamicGroups::kFirst; }))
    f.refuse("groups", "need the numbers of multicast groups from 49152 on, of which `multicast_groups` has some");
  f.choice("unknown", unknown, kUnknownWords, "where packets to groups go that nobody has joined");
  info.read_ports(f, "router_ports", router_ports,
                  "ports that get reports and all groups' packets, beside those by which queries come");
  f.boolean("fast_leave", fast_leave, "a port's membership ends with the first leave; where one host is at each port");
  f.boolean("querier", querier, "ask for memberships where nobody with a lower address does");
  f.address("querier_address", querier_address, Presence::kOptional,
            "IPv4 source of queries; empty: 0.0.0.0, which gives way to any querier with an address");
  if (querier_address && !roce::is_ipv4(*querier_address)) f.refuse("querier_address", "must be an IPv4 address");
  f.mac("querier_mac", querier_mac, Presence::kRequired, "source of queries; MLD's have its link-local IPv6 address");
  if (querier_mac && (*querier_mac)[0] & 1) f.refuse("querier_mac", "must be the address of one station");
  f.duration("query_interval", query_interval, {10 * kMillisecond, 12 * kHour}, "between two general queries");
  f.duration("response_time", response_time, {kMillisecond, kHour}, "within which hosts answer them");
  if (response_time >= query_interval) f.refuse("response_time", "must be below `query_interval`");
  f.duration("last_member_time", last_member_time, {kMillisecond, kHour},
             "within which hosts answer the query that follows a leave");
  f.integer("robustness", robustness, {1, 7}, "messages of which one may be lost, and one more");
}

}  // namespace rocebox::switch_model::snooping
