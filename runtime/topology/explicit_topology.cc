// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology/explicit_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/component/component.h"
#include "runtime/config/document.h"
#include "runtime/config/name_ranges.h"
#include "runtime/config/suggestion.h"
#include "runtime/limits.h"
#include "runtime/topology/wire_fields.h"

namespace rocebox::topology {
namespace {

// The sum over a path of all switches fits into 32 bits.
constexpr std::int64_t kCostMax = 65'535;
// Each takes a look at all names.
constexpr unsigned kSuggestionsMax = 16;
// One that joins ranges could tell of each pair.
constexpr unsigned kMistakesOfRowMax = 3;

// Makes the graph of names and rows that are good.
class Maker {
 public:
  // `names_good`: none of them was left out, so that what is not known is a mistake.
  Maker(Fields& f, const std::vector<std::string>& hosts, const std::vector<std::string>& switches, bool names_good)
      : f_(f), names_good_(names_good), good_(names_good) {
    add_nodes("switches", switches, 1);
    add_nodes("hosts", hosts, 0);
    wires_.resize(graph_.nodes.size());
  }

  // Of ranges the first and the last name say what all are; add_wires() holds the others against that.
  bool are_of_hosts(const std::vector<config::NameRange>& ends) const {
    return std::ranges::any_of(ends, [this](const config::NameRange& names) {
      return names.size() > 0 && (is_host(names[0]) || is_host(names[names.size() - 1]));
    });
  }

  void add_wires(Fields& f, const Explicit::Row& row, const std::vector<config::NameRange>& ends) {
    if (ends.size() != 2) return fail(f, "between", "must name the two nodes that the wire joins: `[h0, s0]`");
    for (const config::NameRange& names : ends)
      if (!names.wrong().empty()) return fail(f, "between", names.wrong());
    // Also of pairs that do not come to a wire: each takes its time.
    pairs_ += ends[0].size() * ends[1].size() * static_cast<std::size_t>(row.count);
    if (pairs_ > kWiresOfTopologyMax)
      return fail(f, "between", fmt::format("makes more than {} wires, which are too many", kWiresOfTopologyMax));
    const bool of_hosts = are_of_hosts(ends);
    unsigned told = 0;
    for (std::size_t a = 0; a < ends[0].size(); a++)
      for (std::size_t b = 0; b < ends[1].size(); b++)
        if (!add_wires(f, row, of_hosts, ends[0][a], ends[1][b]) && ++told == kMistakesOfRowMax) return;
  }

  // The graph, after all rows; empty when there was a mistake.
  Graph finish() {
    if (good_ && graph_.hosts() == 0) fail(f_, "hosts", "must name a host, at least: who would send?");
    if (good_) check_names_of_wires();
    if (good_) check_reach();
    if (!good_) return {};
    set_tiers(graph_);
    return std::move(graph_);
  }

 private:
  bool is_host(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found != numbers_.end() && graph_.is_host(found->second);
  }

  bool add_wires(Fields& f, const Explicit::Row& row, bool of_hosts, const std::string& a, const std::string& b) {
    const auto bad = [&](const std::string& why) {
      fail(f, "between", why);
      return false;
    };
    unsigned ends[2] = {};
    for (unsigned side = 0; side < 2; side++) {
      const std::string& name = side == 0 ? a : b;
      const auto found = numbers_.find(name);
      if (found == numbers_.end())
        return names_good_ && bad(fmt::format("names `{}`, which is neither in `hosts:` nor in `switches:`{}", name,
                                              suggestion(name)));
      ends[side] = found->second;
    }
    if ((graph_.is_host(ends[0]) || graph_.is_host(ends[1])) != of_hosts)
      return bad("makes wires of hosts and wires between switches: write a row for each kind");
    if (ends[0] == ends[1]) return bad(fmt::format("joins `{}` to itself: name two nodes", a));
    if (graph_.is_host(ends[0]) && graph_.is_host(ends[1]) && graph_.nodes.size() > 2)
      return bad(
          fmt::format("joins hosts `{}` and `{}`, which would reach no other node: put a switch between them", a, b));
    bool fits = true;
    for (const unsigned node : ends) fits = take_ports(f, node, static_cast<std::size_t>(row.count)) && fits;
    if (!fits) return false;
    for (std::int64_t i = 0; i < row.count; i++) graph_.join(ends[0], ends[1], row.wire);
    return true;
  }

  void fail(Fields& f, const char* field, const std::string& why) {
    good_ = false;
    f.refuse(field, why);
  }

  void add_nodes(const char* field, const std::vector<std::string>& names, unsigned tier) {
    for (const std::string& name : names) {
      const auto [other, is_new] = numbers_.try_emplace(name, static_cast<unsigned>(graph_.nodes.size()));
      if (!config::is_plain_name(name)) {
        fail(f_, field, fmt::format("has `{}`, which is no name: use letters, digits, _ and -", name));
      } else if (!is_new) {
        const bool twice = graph_.nodes[other->second].tier == tier;
        fail(f_, field, fmt::format("names `{}`{}", name, twice ? " twice" : ", which is a switch already"));
      }
      if (is_new) graph_.add(name, tier);
    }
  }

  // As many further ports of a node; that they are too many is said once.
  bool take_ports(Fields& f, unsigned node, std::size_t count) {
    const std::string& name = graph_.nodes[node].name;
    const std::size_t most = graph_.is_host(node) ? 1 : kPortsMax, before = wires_[node];
    wires_[node] += count;
    if (wires_[node] <= most) return true;
    if (before <= most && most == 1)
      fail(f, "between", fmt::format("gives host `{}` {} wires, and a host has one", name, wires_[node]));
    if (before <= most && most > 1)
      fail(f, "between", fmt::format("gives `{}` {} wires, and a switch has up to {} ports", name, wires_[node], most));
    return false;
  }

  // Names of nodes may hold what stands between two in that of a wire.
  void check_names_of_wires() {
    std::unordered_map<std::string, const Graph::Edge*> edges;
    const auto words = [this](const Graph::Edge& edge) {
      return fmt::format("[{}, {}]", graph_.nodes[edge.ends[0].node].name, graph_.nodes[edge.ends[1].node].name);
    };
    for (const Graph::Edge& edge : graph_.edges)
      if (const auto [other, is_new] = edges.try_emplace(edge.name, &edge); !is_new)
        fail(f_, "wires",
             fmt::format("between {} and between {} would both be called `{}`: give a node another name",
                         words(*other->second), words(edge), edge.name));
  }

  void check_reach() {
    for (unsigned node = 0; node < graph_.nodes.size(); node++)
      if (graph_.nodes[node].ports.empty())
        fail(f_, graph_.is_host(node) ? "hosts" : "switches",
             fmt::format("names `{}`, which no wire joins to another node", graph_.nodes[node].name));
    if (!good_) return;
    std::vector<bool> seen(graph_.nodes.size());
    std::vector<unsigned> reached = {0};
    seen[0] = true;
    for (std::size_t head = 0; head < reached.size(); head++)
      for (const Graph::Neighbor& port : graph_.nodes[reached[head]].ports) {
        if (seen[port.node]) continue;
        seen[port.node] = true;
        reached.push_back(port.node);
      }
    const auto apart = std::ranges::find(seen, false);
    if (apart != seen.end())
      fail(f_, "wires",
           fmt::format("must make one network: no way leads from `{}` to `{}`", graph_.nodes[0].name,
                       graph_.nodes[static_cast<std::size_t>(apart - seen.begin())].name));
  }

  std::string suggestion(const std::string& name) {
    if (++suggestions_ > kSuggestionsMax) return "";
    std::vector<std::string> names;
    for (const Graph::Node& node : graph_.nodes) names.push_back(node.name);
    return config::suggestion(name, names);
  }

  Fields& f_;
  Graph graph_;
  std::unordered_map<std::string, unsigned> numbers_;  // nodes by name
  std::vector<std::size_t> wires_;                     // of each node
  std::size_t pairs_ = 0;                              // of all rows
  unsigned suggestions_ = 0;
  const bool names_good_;
  bool good_;
};

}  // namespace

void Explicit::fields(Fields& f) {
  f.texts(
      "hosts", hosts,
      "names of the hosts, in the order of workloads' ranks (`h0..h15`: all from the one to the other); each has one "
      "wire");
  f.texts("switches", switches, "names of the switches, which may be ranges, too");
  bool names_good = config::expand_ranges(f, "hosts", hosts);
  names_good = config::expand_ranges(f, "switches", switches) && names_good;
  wire_fields(f, "host", host, "wires of hosts that have none of their own");
  wire_fields(f, "trunk", trunk, "wires between switches that have none of their own");
  Maker maker(f, hosts, switches, names_good);
  f.list("wires", wires, kWiresOfTopologyMax,
         "what is joined; a wire's link is called by both ends, `h0_s0`, a second one `h0_s0_2`",
         [&](Fields& g, Row& row) {
           g.texts("between", row.between,
                   "the two nodes, or ranges of them, `[h0..h7, s0]`: each of the one is joined to each of the other");
           std::vector<config::NameRange> ends;
           for (const std::string& names : row.between) ends.emplace_back(names);
           row.wire = maker.are_of_hosts(ends) ? host : trunk;
           g.rate("rate", row.wire.bits_per_second, {kRateMin, kRateMax}, "rate of the wire");
           g.duration("delay", row.wire.delay, {0, kSecond}, "its delay, one way");
           g.fraction("loss", row.wire.loss, {0, 1}, "share of packets that it loses");
           std::int64_t cost = row.wire.cost;
           g.integer("cost", cost, {1, kCostMax}, "routes take all ways over which the sum of these is the least");
           row.wire.cost = static_cast<unsigned>(cost);
           g.integer("count", row.count, {1, kPortsMax}, "such wires, side by side");
           maker.add_wires(g, row, ends);
         });
  if (f.given("hosts") || f.given("switches") || f.given("wires")) graph = maker.finish();
}

void Explicit::build(Graph& to) const {
  if (graph.nodes.empty())
    throw ConfigError("`explicit:` needs `hosts: [NAME, ...]` and `wires: [{between: [...]}, ...]`");
  to = graph;
}

}  // namespace rocebox::topology
