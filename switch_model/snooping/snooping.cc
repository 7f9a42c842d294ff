// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/snooping/snooping.h"

#include <algorithm>

#include "runtime/kernel/stimulus.h"
#include "runtime/roce/membership.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/parse.h"
#include "switch_model/snooping/members.h"
#include "switch_model/snooping/querier.h"

namespace rocebox::switch_model {
namespace snooping {
namespace {

using Kind = roce::Membership::Kind;
using Error = roce::Membership::Error;

// Changes that reports of one instant ask for; more are lost, as the next report tells again.
constexpr std::size_t kDigestsMax = 2048;

class Snooping {
 public:
  using Config = snooping::Config;
  static constexpr bool kOwnsWhatItWrites = true;

  Snooping(const Config& config, const Build& build)
      : config_(config), info_(build.info), members_(config, build), querier_(config), count_(build.stats) {
    digests_.reserve(kDigestsMax);
  }

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    if (!begun_) {
      begun_ = true;
      if (config_.querier) pass.arm(timer_, pass.now());
    }
    for (PacketState& p : pass) {
      if (p.drop_reason || p.egress_port != kNoPort) continue;
      const auto* ethernet = p.packet.template header<roce::Ethernet>(0);
      if (!ethernet || !(ethernet->destination[0] & 1) || p.packet.meta().ip_version == 0) continue;
      const roce::Membership message = roce::read_membership(p.packet);
      if (message.kind == Kind::kNone)
        data(access, pass, p);
      else
        snoop(pass, p, message);
    }
  }

  void on_timer(Pass& pass, Timer&) {
    if (config_.querier) querier_.begin(pass.now());
    for (const Digest& digest : digests_) act(digest, pass.now());
    digests_.clear();
    count_.aged.add(members_.forget(pass.now()));
    const bool all_sent = send_queries(pass);
    const Nanos next = std::min(members_.next_end(), querier_.next_at());
    if (!all_sent)
      pass.arm(timer_, pass.now());
    else if (next != kNever)
      pass.arm(timer_, std::max(next, pass.now() + 1));
  }

  void report(Report& report) const { members_.report(report); }

  // A packet to a group that nobody knows comes to the table.
  void stimuli(std::vector<Stimulus>& all) const {
    Stimulus stimulus;
    stimulus.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(239, 255, 0, 1)};
    stimulus.underlay.destination_mac = roce::multicast_mac(roce::ipv4(239, 255, 0, 1));
    all.push_back(stimulus);
  }

 private:
  struct Digest {
    GroupKey key;
    Port port;
    Kind kind;
    bool is_mld;
    roce::IpAddress source;  // of queries
  };
  struct Counters {
    explicit Counters(Stats& stats)
        : queries(stats.counter("queries", "IGMP and MLD queries that came in")),
          reports(stats.counter("reports", "IGMP and MLD reports that came in")),
          leaves(stats.counter("leaves", "IGMP leaves and MLD dones that came in")),
          queries_sent(stats.counter("queries_sent", "queries that the switch made, one for each port")),
          aged(stats.counter("memberships_ended", "memberships of ports that ended by a leave or by age")),
          unknown(stats.counter("unknown_group", "packets to groups that nobody has joined")),
          groups_full(stats.counter("groups_full", "joins for which there was no room")),
          digests_lost(stats.counter("membership_digests_lost", "changes that the control plane was not told of")),
          drop_unknown(stats.counter("drop_unknown_group", "to groups that nobody has joined, with `unknown: drop`")),
          drop_no_router(stats.counter("drop_no_router", "what only routers get, and there is no router port")),
          drop_bad{&stats.counter("drop_membership_length", "IGMP and MLD shorter than they say"),
                   &stats.counter("drop_membership_checksum", "IGMP and MLD with a wrong checksum"),
                   &stats.counter("drop_membership_hop_limit", "IGMP and MLD from behind a router"),
                   &stats.counter("drop_membership_address", "IGMP and MLD that name a group that is none")} {}
    Counter &queries, &reports, &leaves, &queries_sent, &aged, &unknown, &groups_full, &digests_lost, &drop_unknown,
        &drop_no_router;
    Counter* drop_bad[4];
  };

  static std::uint32_t vlan_of(Packet packet) {
    const auto* tag = packet.header<roce::VlanTag>(sizeof(roce::Ethernet));
    const auto* ethernet = packet.header<roce::Ethernet>(0);
    return ethernet->type == roce::kEtherVlan && tag ? static_cast<std::uint32_t>(tag->tci) & 0xFFF : 0;
  }

  // What `forward` floods, or was left to this: to the group's members.
  template <class Access>
  void data(Access& access, Pass& pass, PacketState& p) {
    if (p.multicast_group != kFloodGroup) return;
    const roce::IpAddress group = roce::addresses(p.packet).destination;
    if (!roce::is_multicast(group) || roce::is_link_local_group(group)) return;
    const std::uint32_t entry = access.lookup(p, members_.table(), GroupKey{group, vlan_of(p.packet)});
    if (entry != kMiss) {
      p.multicast_group = members_.table().value(entry);
      return;
    }
    count_.unknown.add();
    if (config_.unknown == Unknown::kFlood) return;
    if (config_.unknown == Unknown::kDrop) return pass.drop(p, count_.drop_unknown);
    to_routers(pass, p);
  }

  void to_routers(Pass& pass, PacketState& p) {
    if (!members_.has_router()) return pass.drop(p, count_.drop_no_router);
    p.multicast_group = members_.router_group();
  }

  void snoop(Pass& pass, PacketState& p, const roce::Membership& message) {
    if (message.kind == Kind::kBad) return pass.drop(p, *count_.drop_bad[static_cast<unsigned>(message.error) - 1]);
    const std::uint32_t vlan = vlan_of(p.packet);
    if (message.kind == Kind::kQuery) {
      count_.queries.add();
      return digest(pass, {{message.group, vlan}, p.ingress_port, Kind::kQuery, message.is_mld, message.source});
    }
    (message.kind == Kind::kReport ? count_.reports : count_.leaves).add();
    roce::for_each_group(p.packet, message, [&](const roce::IpAddress& group, bool joins) {
      if (roce::is_link_local_group(group)) return;  // always flooded
      digest(pass, {{group, vlan}, p.ingress_port, joins ? Kind::kReport : Kind::kLeave, message.is_mld, {}});
    });
    to_routers(pass, p);  // hosts would hold their own reports back (RFC 4541, 2.1.1)
  }

  void digest(Pass& pass, const Digest& digest) {
    if (digests_.size() == kDigestsMax) return count_.digests_lost.add();
    if (digests_.empty()) pass.arm(timer_, pass.now());
    digests_.push_back(digest);
  }

  void act(const Digest& digest, Nanos now) {
    switch (digest.kind) {
      case Kind::kQuery: {
        const bool has_none = digest.source == roce::ipv4(0, 0, 0, 0);  // no router has that (RFC 4541, 2.1.1)
        if (!has_none) members_.add_router(digest.port, now + config_.querier_time());
        roce::Membership query;
        query.is_mld = digest.is_mld;
        query.source = digest.source;
        return querier_.hear(query, now);
      }
      case Kind::kReport:
        if (!members_.join(digest.key, digest.port, now + config_.membership_time())) count_.groups_full.add();
        return;
      default:
        if (!members_.is_member(digest.key, digest.port)) return;
        if (!config_.fast_leave) querier_.ask(digest.key, digest.is_mld, digest.port, now);
        members_.leave(digest.key, digest.port,
                       config_.fast_leave ? now : now + config_.robustness * config_.last_member_time);
    }
  }

  // False: as many as one call may make have gone, and there are more.
  bool send_queries(Pass& pass) {
    std::uint8_t frame[roce::kMembershipBytesMax];
    unsigned sent = 0;
    while (sent < kGeneratedMax) {
      if (next_port_ == info_.port_count()) {
        query_ = querier_.next(pass.now());
        if (!query_) return true;
        next_port_ = query_->port == kNoPort ? Port{0} : query_->port;
      }
      const std::uint32_t bytes = querier_.write(*query_, frame);
      PacketPtr packet = pass.allocate(bytes);
      if (packet) {
        std::copy_n(frame, bytes, packet->data());
        roce::parse(*packet);
        pass.generate(std::move(packet), next_port_);
        count_.queries_sent.add();
      }
      sent++;
      next_port_ = query_->port == kNoPort ? static_cast<Port>(next_port_ + 1) : static_cast<Port>(info_.port_count());
    }
    return false;
  }

  const Config config_;
  const SwitchInfo& info_;
  Members members_;
  Querier querier_;
  Counters count_;
  std::vector<Digest> digests_;
  Timer timer_;
  std::optional<Query> query_;  // by which ports it has not gone yet: from next_port_ on
  Port next_port_ = static_cast<Port>(info_.port_count());
  bool begun_ = false;
};

constexpr Example kExamples[] = {
    {"groups that nobody has joined are for routers, and the switch asks",
     "{programs: [forward, snooping], snooping: {unknown: routers, router_ports: [p0], querier: true, "
     "querier_address: 10.0.0.254, query_interval: 1s, response_time: 100ms}}"},
    {"few groups, no mercy", "{programs: [forward, snooping], snooping: {groups: 2, unknown: drop, fast_leave: true}}"},
    {nullptr, nullptr},
};

}  // namespace
}  // namespace snooping

Component snooping_component() {
  return program<snooping::Snooping>("snooping",
                                     "behind `forward`: packets to multicast groups go where members are (IGMP, MLD)",
                                     snooping::kExamples);
}

}  // namespace rocebox::switch_model
