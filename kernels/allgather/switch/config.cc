// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/switch/config.h"

#include <algorithm>

#include "runtime/roce/multicast.h"

namespace rocebox::reduce {
namespace {

constexpr std::int64_t kSlotsMax = 1 << 16;
constexpr std::size_t kTreesMax = 1024;
// What all slots hold of all children: memory that a machine has for one switch of many.
constexpr std::uint64_t kHeldMax = std::uint64_t{1} << 30;

}  // namespace

void ChildConfig::fields(Fields& f, const switch_model::SwitchInfo& info) {
  info.read_port(f, "port", port, "port that leads to hosts, or to a switch below");
  if (port.empty()) f.refuse("port", "must be given");
  f.address("only", only, Presence::kOptional,
            "the host there, when it is the only one: of what is for it nothing comes from there");
}

void TreeConfig::fields(Fields& f, const switch_model::SwitchInfo& info) {
  f.list("children", children, switch_model::kSwitchPortsMax, "ports from which contributions come",
         [&](Fields& g, ChildConfig& child) { child.fields(g, info); });
  f.text("parent", parent, "port that leads to the root; empty: this switch is it");
  info.check_port(f, "parent", parent);
  f.mac("parent_mac", parent_mac, Presence::kOptional, "MAC address of the switch there, which sums get");
  for (std::size_t i = 0; i < children.size(); i++)
    for (std::size_t other = 0; other < i; other++)
      if (children[i].port == children[other].port) f.refuse("children", "name `" + children[i].port + "` twice");
  if (!parent.empty() && std::ranges::find(children, parent, &ChildConfig::port) != children.end())
    f.refuse("parent", "is one of the children, too");
}

void Config::fields(Fields& f, const switch_model::SwitchInfo& info) {
  constexpr Range<std::int64_t> kQkeys{1, UINT32_MAX};
  f.integer("float_qkey", float_qkey, kQkeys, "Q_Key of datagrams whose payload is numbers of 32-bit floating point");
  f.integer("int_qkey", int_qkey, kQkeys, "Q_Key of datagrams whose payload is whole numbers of 32 bits");
  if (float_qkey == int_qkey) f.refuse("int_qkey", "must not be `float_qkey`");
  f.integer("slots", slots, {1, kSlotsMax}, "chunks that are summed at a time: chunk n has slot n modulo `slots`");
  f.bytes("bytes", bytes, {4, 4096}, "payload of a datagram at most");
  f.mac("router_mac", router_mac, Presence::kOptional,
        "MAC address that whole sums get, so that `forward` routes them; empty: that which they came with");
  f.list("trees", trees, kTreesMax, "this switch's part of each tree; chunk n goes by tree n modulo their number",
         [&](Fields& g, TreeConfig& tree) { tree.fields(g, info); });
  const std::uint64_t held = static_cast<std::uint64_t>(slots) * children_max() * bytes;
  if (held >= kHeldMax) f.refuse("slots", "need 1 GiB or more, with the children of the largest tree and `bytes`");
}

std::size_t Config::children_max() const {
  std::size_t most = 0;
  for (const TreeConfig& tree : trees) most = std::max(most, tree.children.size());
  return most;
}

// A tree as the topology tells it: routes to groups, whose ports lead down but for one at most.
void Config::place(const Placement& placement, const switch_model::SwitchInfo& info) {
  router_mac = placement.mac;
  for (const Placement::Route& route : placement.routes) {
    if (!roce::is_multicast(route.prefix.address)) continue;
    TreeConfig& tree = trees.emplace_back();
    for (const Placement::Hop& hop : route.via) {
      const Placement::PlacedPort& port = placement.ports[hop.port];
      if (port.neighbor_tier > placement.tier) {
        tree.parent = info.ports[hop.port];
        tree.parent_mac = port.neighbor_mac;
        continue;
      }
      ChildConfig& child = tree.children.emplace_back(ChildConfig{info.ports[hop.port], {}});
      if (port.neighbor_tier > 0) continue;
      for (const Placement::Route& host : placement.routes)
        if (host.via.size() == 1 && host.via[0].port == hop.port && host.prefix.bits == 32 &&
            !roce::is_multicast(host.prefix.address))
          child.only = host.prefix.address;
    }
  }
}

}  // namespace rocebox::reduce
