// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/switch_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/config/document.h"
#include "runtime/roce/multicast.h"

namespace rocebox::switch_model {

SwitchConfig::SwitchConfig(const Registry& registry) : types_(registry.of_kind(kProgramKind)) {
  info.ports = {"p0", "p1", "p2", "p3"};
  for (const Component* type : types_)
    options_.emplace_back(static_cast<ProgramOptions*>(type->options(registry).release()));
}

const ProgramOptions* SwitchConfig::find(std::string_view program) const {
  for (std::size_t i = 0; i < options_.size(); i++)
    if (types_[i]->name == program) return options_[i].get();
  return nullptr;
}

bool SwitchConfig::runs(std::string_view program) const {
  return std::ranges::find(programs, program) != programs.end();
}

void SwitchConfig::check_ports(Fields& fields) const {
  if (info.ports.empty() || info.ports.size() > kSwitchPortsMax)
    return fields.refuse("ports", fmt::format("must name 1 to {} ports, names {}", kSwitchPortsMax, info.ports.size()));
  for (std::size_t i = 0; i < info.ports.size(); i++) {
    if (!config::is_plain_name(info.ports[i]))
      fields.refuse("ports", fmt::format("has `{}`, which is no name: use letters, digits, _ and -", info.ports[i]));
    if (std::find(info.ports.begin(), info.ports.begin() + static_cast<std::ptrdiff_t>(i), info.ports[i]) !=
        info.ports.begin() + static_cast<std::ptrdiff_t>(i))
      fields.refuse("ports", fmt::format("names `{}` twice", info.ports[i]));
  }
}

void SwitchConfig::check_programs(Fields& fields) const {
  std::vector<std::string> known;
  for (const Component* type : types_) known.emplace_back(type->name);
  if (programs.empty()) fields.refuse("programs", "must name one at least, such as [forward]: else nothing leaves");
  if (programs.size() > kProgramsMax)
    fields.refuse("programs", fmt::format("must name at most {} programs", kProgramsMax));
  for (std::size_t i = 0; i < programs.size(); i++) {
    if (!find(programs[i]))
      fields.refuse("programs",
                    fmt::format("names no program: `{}`{}", programs[i], config::suggestion(programs[i], known)));
    if (std::count(programs.begin(), programs.begin() + static_cast<std::ptrdiff_t>(i), programs[i]))
      fields.refuse("programs", fmt::format("names `{}` twice", programs[i]));
  }
  for (const std::string& name : known)
    if (fields.given(name) && !runs(name))
      fields.refuse(name, fmt::format("has options, and `programs: [{}]` does not name it", fmt::join(programs, ", ")));
}

void SwitchConfig::group_fields(Fields& fields, GroupConfig& group) const {
  fields.integer("group", group.group, {1, kGroupMax}, "its number");
  info.read_ports(fields, "ports", group.ports, "ports of the switch that packets of the group leave by");
  if (group.ports.empty()) fields.refuse("ports", "must name one at least");
}

void SwitchConfig::mirror_fields(Fields& f) {
  f.list("mirror_sessions", info.mirror_sessions, static_cast<std::size_t>(kMirrorSessionMax),
         "where copies go that programs ask for by a number", [this](Fields& g, MirrorSession& row) {
           g.integer("session", row.session, {1, kMirrorSessionMax}, "its number");
           info.read_port(g, "port", row.port, "port of the switch that copies leave by");
           g.bytes("bytes", row.bytes, {kMirrorBytesMin, 0xFFFF}, "a copy is cut to so many bytes");
         });
  std::vector<bool> seen(static_cast<std::size_t>(kMirrorSessionMax) + 1);
  for (const MirrorSession& row : info.mirror_sessions) {
    if (seen[static_cast<std::size_t>(row.session)])
      f.refuse("mirror_sessions", fmt::format("has session {} twice", row.session));
    seen[static_cast<std::size_t>(row.session)] = true;
  }
}

void SwitchConfig::place(const Placement& placement) {
  info.ports.clear();
  traffic_manager.placed.clear();
  for (const Placement::PlacedPort& port : placement.ports) {
    info.ports.push_back(port.name);
    traffic_manager.placed.push_back(port.bits_per_second);
  }
  // A route to a group leads to all its ports: groups are numbered in the order of these routes, from 1.
  for (const Placement::Route& route : placement.routes) {
    if (!roce::is_multicast(route.prefix.address) || route.via.empty()) continue;
    GroupConfig& row = groups.emplace_back(GroupConfig{static_cast<std::int64_t>(groups.size()) + 1, {}});
    for (const Placement::Hop& hop : route.via) row.ports.push_back(info.ports[hop.port]);
  }
  for (const std::unique_ptr<ProgramOptions>& program : options_) program->place(placement, info);
}

void SwitchConfig::fields(Fields& f) {
  f.texts("ports", info.ports, "names of the ports, in order");
  check_ports(f);
  std::int64_t pipes = info.pipes;
  f.integer("pipes", pipes, {1, kPipesMax},
            "pipes, each with register arrays of its own; ports are dealt out in equal blocks");
  info.pipes = static_cast<unsigned>(pipes);
  if (info.pipes > info.port_count())
    f.refuse("pipes", fmt::format("is more than the {} ports, which are dealt out to them", info.port_count()));
  f.texts("programs", programs, "programs of the pipeline, run in this order in each control");
  check_programs(f);
  mirror_fields(f);
  f.list("multicast_groups", groups, kGroupsMax, "ports that packets of a group leave by",
         [this](Fields& g, GroupConfig& group) { group_fields(g, group); });
  info.multicast_groups.clear();
  for (const GroupConfig& group : groups) info.multicast_groups.push_back(group.group);
  info.equal_ports.clear();
  info.routes = info.classifies = false;
  for (std::size_t i = 0; i < options_.size(); i++) {
    const bool runs_here = runs(types_[i]->name);
    // What does not run cannot contradict what does: a topology has placed it, too.
    SwitchInfo alone = info;
    if (!runs_here) alone.equal_ports.clear();
    f.group(types_[i]->name, types_[i]->summary, [&](Fields& g) { options_[i]->fields(g, alone); });
    if (runs_here) options_[i]->tell(info);
  }
  read_applications(f, applications, info);
  f.group("traffic_manager", "queues, rates, marks and pauses between ingress and egress",
          [this](Fields& g) { traffic_manager.fields(g, info); });
  f.duration("recirculation_delay", recirculation_delay, {1, kSecond}, "time in the loopback port of a recirculation");
  f.group("profile", "the chip that programs are to fit on, for strict mode and `rocebox check --resources`",
          [this](Fields& g) { profile.fields(g); });
  f.boolean(
      "strict", strict,
      "hold every access of the programs against what the hardware can do; breaches are counted and reported, and the "
      "packets go on; `rocebox check --strict` refuses");
  f.texts(
      "accept_unjudged", accept_unjudged,
      "tables, registers and hash units, as `program.name`, that no packet of `rocebox check --strict` need come to");
  values = f.values();
}

}  // namespace rocebox::switch_model
