// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/forward.h"

#include <algorithm>
#include <bitset>

#include "runtime/packet/prefetch.h"
#include "switch_model/forward/balance.h"
#include "switch_model/forward/bridge.h"
#include "switch_model/forward/config.h"
#include "switch_model/forward/examples.h"
#include "switch_model/forward/flow_bytes.h"
#include "switch_model/forward/hop_tables.h"
#include "switch_model/forward/recent_flows.h"
#include "switch_model/forward/router.h"
#include "switch_model/forward/stimuli.h"
#include "switch_model/hash.h"
#include "switch_model/tables/index_table.h"

namespace rocebox::switch_model {
namespace forward {
namespace {

// Where things stand. Ingress: 0 source MAC, 1 its age and the destination MAC, 2 route, 3 group and hash, 4 next hop,
// behind flowlets where there are any.
// Egress: 0 rewrite.
constexpr unsigned kGroupStage = 3, kHopStage = 4, kRewriteStage = 0;
constexpr unsigned kHopBits = 9 + 1 + 48, kGroupBits = 32;

using PortSet = std::bitset<256>;

class Forward {
 public:
  using Config = forward::Config;

  Forward(const Config& config, const Build& build)
      : next_hops_(build.next_hops),
        bridge_(config, build),
        router_(config, build),
        groups_(build.layout, "ecmp_group", {Gress::kIngress, kGroupStage}, hop_entries(config), kGroupBits),
        hash_(flow_hash(build.layout, "ecmp_hash", {Gress::kIngress, kGroupStage}, with_hash(config, build.next_hops))),
        balancer_(config, build),
        hops_(build.layout, "next_hop", {Gress::kIngress, kHopStage + Balancer::stages(config)}, hop_entries(config),
              kHopBits),
        rewrite_(build.layout, "rewrite", {Gress::kEgress, kRewriteStage}, config.router_mac ? hop_entries(config) : 0,
                 kHopBits),
        info_(build.info),
        placed_(hop_entries(config)),
        stimuli_(stimuli_of(config, build.info)) {
    next_hops_.group_word = build.layout.metadata(balancer_.off() ? 2 : 3);
    next_hops_.hop_word = next_hops_.group_word + 1;
    next_hops_.draw_word = next_hops_.group_word + 2;
    next_hops_.least_queue = config.balance == Balance::kLeastQueue;
    next_hops_.filled = true;
    router_mac_ = config.router_mac.value_or(Mac{});
    router_number_ = roce::mac_number(router_mac_.data());
    routes_ = next_hops_.routes = config.router_mac.has_value();
    Prepared first = prepare(config);
    change(first);
    tell_unused(config, build.layout);
  }

  static constexpr bool kOwnsWhatItWrites = true;
  static constexpr std::array<std::string_view, 2> kChangeable = {"macs", "routes"};
  /// What a reload changes.
  struct Prepared {
    HopTables placed;
    NextHops next_hops;                  // vectors only
    std::vector<NextHop> hops, rewrite;  // of the tables
    std::vector<EcmpGroup> groups;
    std::vector<PortSet> members;  // of the groups
    MacChange macs;
    Router::Routes routes;
  };
  Prepared prepare(const Config& config) const {
    HopPlacer placer(placed_);
    // Of a port that has no next hop any more the last one's stays: a packet may be on its way there.
    std::vector<Mac> port_macs = next_hops_.port_macs;
    port_macs.resize(info_.port_count());
    StaticMacs macs;
    for (const MacConfig& row : config.macs) {
      const MacKey key{*row.mac, static_cast<std::uint16_t>(row.vlan)};
      Destination to{0, static_cast<std::uint16_t>(row.group), kNoPort};
      if (row.ports.size() == 1) to.port = info_.find(row.ports[0]);
      if (row.ports.size() > 1) to.group = placer.place(hops_of(row, info_)) + 1;
      macs[key] = to;
    }
    Router::Routes routes = Router::empty_routes(config);
    for (const RouteConfig& row : config.routes) {
      const std::vector<NextHop> hops = hops_of(row, info_);
      for (const NextHop& hop : hops) port_macs[hop.port] = hop.mac;
      routes.add(*row.prefix, placer.place(hops));
    }
    HopTables placed = placer.take();
    NextHops next{placed.hops, placed.groups, std::move(port_macs)};
    std::vector<PortSet> members;
    for (const EcmpGroup& group : placed.groups) {
      PortSet& ports = members.emplace_back();
      for (std::size_t i = 0; i < group.count; i++) ports.set(placed.hops[group.first + i].port);
    }
    return {placed,
            std::move(next),
            placed.hops,
            placed.hops,
            placed.groups,
            std::move(members),
            bridge_.prepare(std::move(macs)),
            std::move(routes)};
  }
  void change(Prepared& news) {
    std::swap(placed_, news.placed);
    next_hops_.hops.swap(news.next_hops.hops);
    next_hops_.groups.swap(news.next_hops.groups);
    next_hops_.port_macs.swap(news.next_hops.port_macs);
    hops_.swap_values(news.hops);
    rewrite_.swap_values(news.rewrite);
    groups_.swap_values(news.groups);
    members_.swap(news.members);
    bridge_.change(news.macs);
    router_.change(news.routes);
    recent_.forget();
  }

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    if constexpr (!Access::kStrict)
      if (pass.size() == 1 && route_one_as_before(pass[0])) return;
    Selection bridged, routed;
    for (PacketState& p : pass) {
      if (p.drop_reason || keeps_hop(access, p)) continue;
      const auto* ethernet = p.packet.header<roce::Ethernet>(0);
      if (!bridge_.admit(pass, p, ethernet)) continue;
      const bool to_router = routes_ && roce::mac_number(ethernet->destination) == router_number_;
      (to_router ? routed : bridged).add(p);
    }
    bridge_.learn(access, pass, bridged, routed);
    if (bridged.count) {
      bridge_.forward(access, pass, bridged);
      prune(pass, bridged);
      choose(access, bridged);
    }
    if (routed.count) route(access, pass, routed);
    if (!balancer_.off()) balancer_.choose(access, pass, hops_);
  }

  template <class Access>
  void egress(Access& access, Pass& pass) {
    if (!routes_) return;
    for (PacketState& p : pass) {
      const std::uint32_t number = p.metadata[next_hops_.hop_word];
      if (number == 0 || p.drop_reason || p.instance == Instance::kMirror) continue;
      const NextHop& hop = rewrite_.value(access.lookup(p, rewrite_, number - 1));
      if (!hop.routed || !pass.own(p)) continue;
      auto* ethernet = p.packet.template header<roce::Ethernet>(0);
      std::memcpy(ethernet->destination, hop.mac.data(), 6);
      std::memcpy(ethernet->source, router_mac_.data(), 6);
    }
  }

  void prefetch(Packet packet) const {
    if (routes_ && RecentFlows::concerns(packet.meta())) recent_.prefetch(RecentFlows::key_of(packet));
  }
  void on_timer(Pass& pass, Timer& timer) { bridge_.on_timer(pass, timer); }
  void report(Report& report) const { bridge_.report(report); }
  void stimuli(std::vector<Stimulus>& all) const { all.insert(all.end(), stimuli_.begin(), stimuli_.end()); }

 private:
  static const NextHops& with_hash(const Config& config, NextHops& next_hops) {
    next_hops.hash_algorithm = static_cast<unsigned>(config.ecmp_hash);
    next_hops.hash_seed = static_cast<std::uint32_t>(config.ecmp_seed);
    next_hops.hash_polynomial = static_cast<std::uint32_t>(config.ecmp_polynomial);
    return next_hops;
  }
  void tell_unused(const Config& config, Layout& layout) const {
    const bool spreads = config.has_equal_paths();
    if (!spreads) layout.unused(hash_, "no address or prefix has equal paths");
    if (spreads || !config.routes.empty()) return;
    if (routes_) layout.unused(rewrite_, "there are no routes, and no address has equal paths");
    for (const ResourceHandle* handle : std::initializer_list<const ResourceHandle*>{&groups_, &hops_})
      layout.unused(*handle, "there are no routes, and no address has equal paths");
  }
  static std::uint32_t hop_entries(const Config& config) { return static_cast<std::uint32_t>(config.hop_entries); }

  // A packet with a next hop that is recirculated has been forwarded: it has its hop's MACs already, and is one hop on.
  // One that a program before gave a port goes there.
  template <class Access>
  bool keeps_hop(Access& access, PacketState& p) {
    if (p.egress_port != kNoPort) return true;
    const std::uint32_t number = p.instance == Instance::kRecirculated ? p.metadata[next_hops_.hop_word] : 0;
    if (number) p.egress_port = hops_.value(access.lookup(p, hops_, number - 1)).port;
    return number != 0;
  }

  // Equal ports lead to one bridge: what comes from there is not sent back, by none of them.
  void prune(Pass& pass, const Selection& packets) {
    for (PacketState* p : packets.span()) {
      const std::uint32_t number = p->metadata[next_hops_.group_word];
      if (number != 0 && members_[number - 1].test(p->ingress_port)) bridge_.drop_same_port(pass, *p);
    }
  }

  template <class Access>
  void route(Access& access, Pass& pass, const Selection& routed) {
    Selection others;
    if constexpr (!Access::kStrict) route_as_before(access, routed, others);
    const Selection& anew = Access::kStrict ? routed : others;
    if (anew.count == 0) return;
    router_.forward(access, pass, anew);
    choose(access, anew);
    if constexpr (Access::kStrict) return;
    for (const PacketState* p : anew.span())
      if (!p->drop_reason && RecentFlows::concerns(p->packet.meta()))
        recent_.remember(RecentFlows::key_of(p->packet),
                         {static_cast<std::uint16_t>(p->metadata[next_hops_.group_word] - 1),
                          static_cast<std::uint16_t>(p->metadata[next_hops_.hop_word] - 1)});
  }

  // All that ingress does for one packet of a remembered flow, as nearly all are that come alone. False: nothing was
  // changed.
  bool route_one_as_before(PacketState& p) {
    const Packet packet = p.packet;
    if (!routes_ || bridge_.learns() || !balancer_.off() || p.egress_port != kNoPort || p.drop_reason ||
        p.instance == Instance::kRecirculated || !RecentFlows::concerns(packet.meta()))
      return false;
    const auto& ethernet = *reinterpret_cast<const roce::Ethernet*>(packet.data());  // parsed, so it is there
    if (ethernet.source[0] & 1 || roce::mac_number(ethernet.destination) != router_number_) return false;
    const RecentFlows::Key key = RecentFlows::key_of(packet);
    const RecentFlows::Flow& place = recent_.place(key);
    if (!recent_.holds(place, key) || !Router::next_hop_ipv4(packet)) return false;
    p.metadata[next_hops_.group_word] = place.way.group + 1u;
    p.metadata[next_hops_.hop_word] = place.way.hop + 1u;
    p.egress_port = hops_.value(place.way.hop).port;
    return true;
  }

  // Routes packets of remembered flows; `others` are those that are to be looked at whole.
  template <class Access>
  void route_as_before(Access& access, const Selection& routed, Selection& others) {
    std::array<const RecentFlows::Flow*, kBatchMax> places;
    for (unsigned i = 0; i < routed.count; i++) {
      const Packet packet = routed.packets[i]->packet;
      places[i] = nullptr;
      if (!RecentFlows::concerns(packet.meta())) continue;
      places[i] = &recent_.place(RecentFlows::key_of(packet));
      prefetch_line(places[i]);
    }
    for (unsigned i = 0; i < routed.count; i++) {
      PacketState* p = routed.packets[i];
      const RecentFlows::Flow* place = places[i];
      if (!place || !recent_.holds(*place, RecentFlows::key_of(p->packet)) || !Router::next_hop_ipv4(p->packet)) {
        others.add(*p);
        continue;
      }
      const RecentFlows::Way way = place->way;
      p->metadata[next_hops_.group_word] = way.group + 1u;
      p->metadata[next_hops_.hop_word] = way.hop + 1u;
      if (!balancer_.off() && balancer_.concerns(p->packet) && next_hops_.groups[way.group].count > 1)
        balancer_.mark(*p, way.hop, flow_hash_of(access, *p));
      else
        p->egress_port = hops_.value(way.hop).port;
    }
  }

  template <class Access>
  std::uint32_t flow_hash_of(Access& access, const PacketState& p) {
    std::uint8_t bytes[kFlowBytesMax];
    const unsigned size = flow_bytes(p.packet, bytes);
    return access.hash(p, hash_, {bytes, size});
  }

  // Of packets with a group: one of its next hops, by flow, or marked for the balancer.
  template <class Access>
  void choose(Access& access, const Selection& packets) {
    for (unsigned i = 0; i < packets.count; i++) {
      PacketState& p = *packets.packets[i];
      const std::uint32_t number = p.metadata[next_hops_.group_word];
      if (number == 0 || p.drop_reason) continue;
      const EcmpGroup& group = groups_.value(access.lookup(p, groups_, number - 1));
      std::uint32_t hop = group.first;
      if (group.count > 1) {
        const std::uint32_t hash = flow_hash_of(access, p);
        hop = group.pick(hash, hash_.width());
        if (!balancer_.off() && balancer_.concerns(p.packet)) {
          balancer_.mark(p, hop, hash);
          continue;
        }
      }
      p.metadata[next_hops_.hop_word] = hop + 1;
      p.egress_port = hops_.value(access.lookup(p, hops_, hop)).port;
    }
  }

  NextHops& next_hops_;
  Bridge bridge_;
  Router router_;
  IndexTable<EcmpGroup> groups_;
  HashUnit hash_;
  Balancer balancer_;
  IndexTable<NextHop> hops_, rewrite_;
  const SwitchInfo& info_;
  HopTables placed_;
  std::vector<Stimulus> stimuli_;
  RecentFlows recent_;
  std::vector<PortSet> members_;  // of each group: action data, as a bitmap of ports
  Mac router_mac_{};
  std::uint64_t router_number_ = 0;
  bool routes_ = false;
};

}  // namespace
}  // namespace forward

Component forward_component() {
  return program<forward::Forward>("forward", "L2 with learning, L3 by longest prefix, ECMP, multicast",
                                   forward::kExamples);
}

}  // namespace rocebox::switch_model
