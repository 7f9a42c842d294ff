// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab_wires.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/units.h"
#include "runtime/lab/checks.h"
#include "runtime/lab/lab_loader.h"

namespace rocebox::lab {
namespace {

constexpr std::string_view kArrow = "<->";

class WireReader {
 public:
  WireReader(LabConfig& lab, config::Mistakes& mistakes) : lab_(lab), mistakes_(mistakes) {}

  void wire(const std::string& text, config::Place place) {
    WireConfig wire{text, place, {}};
    const std::size_t arrow = text.find(kArrow);
    if (arrow == std::string::npos || text.find(kArrow, arrow + kArrow.size()) != std::string::npos)
      return mistakes_.add(place, fmt::format("`{}` is no wire: write such as `left <-> bump.a`", text));
    const std::string sides[] = {text.substr(0, arrow), text.substr(arrow + kArrow.size())};
    for (int side = 0; side < 2; side++) {
      std::string why;
      if (!end(std::string(config::trimmed(sides[side])), wire.ends[side], why)) {
        mistakes_.add(place, why);
        continue;
      }
      claim(wire.ends[side], place, text);
    }
    lab_.wires.push_back(std::move(wire));
  }

  // TAPs, and what is not joined though it should be.
  void finish() {
    for (WireConfig& wire : lab_.wires) find_tap(wire);
    for (const HostConfig& host : lab_.hosts)
      for (const Interface& interface : host.interfaces)
        if (!is_claimed({host.name, interface.name, {}}))
          mistakes_.add(host.place,
                        fmt::format("`{}.{}` is joined to nothing: give `wires:`", host.name, interface.name));
    for (const ApplianceConfig& appliance : lab_.appliances) unjoined_ports(appliance);
  }

 private:
  bool end(const std::string& text, End& end, std::string& why) {
    const std::size_t dot = text.find('.');
    end.node = text.substr(0, dot);
    const std::string rest = dot == std::string::npos ? "" : text.substr(dot + 1);
    if (const HostConfig* host = lab_.host(end.node)) return interface_of(*host, rest, end, why);
    if (const ApplianceConfig* appliance = lab_.appliance(end.node)) return port_of(*appliance, rest, end, why);
    std::vector<std::string> known;
    for (const HostConfig& host : lab_.hosts) known.push_back(host.name);
    for (const ApplianceConfig& appliance : lab_.appliances) known.push_back(appliance.name);
    why = fmt::format("there is no host and no appliance `{}`{}", end.node, config::suggestion(end.node, known));
    return false;
  }

  bool interface_of(const HostConfig& host, const std::string& name, End& end, std::string& why) {
    std::vector<std::string> known;
    for (const Interface& interface : host.interfaces) known.push_back(interface.name);
    end.interface = name.empty() && known.size() == 1 ? known[0] : name;
    if (std::find(known.begin(), known.end(), end.interface) != known.end()) return true;
    why = name.empty()
              ? fmt::format("host `{}` has {} interfaces; write such as `{}.eth0`", host.name, known.size(), host.name)
              : fmt::format("host `{}` has no interface `{}`{}", host.name, name, config::suggestion(name, known));
    return false;
  }

  bool port_of(const ApplianceConfig& appliance, const std::string& name, End& end, std::string& why) {
    end.port = name;
    if (appliance.config.devices.empty()) return true;  // its own mistakes say more
    config::PortName port;
    if (!config::resolve_port(appliance.config, name, port, why)) {
      if (name.empty())
        why = fmt::format(
            "`{}` is an appliance; name its port: `{}.{}`", appliance.name, appliance.name,
            appliance.config.devices[0].wiring.ports.empty() ? "PORT" : appliance.config.devices[0].wiring.ports[0]);
      else
        why = fmt::format("appliance `{}`: {}", appliance.name, why);
      return false;
    }
    for (const config::LinkConfig& link : appliance.config.links) {
      if (link.between[0] != port && link.between[1] != port) continue;
      why =
          fmt::format("port `{}` of appliance `{}` is joined by its link `{}`", port.text(), appliance.name, link.name);
      return false;
    }
    end.port = port.text();
    end.interface = free_name(end.node, port.port);
    return true;
  }

  // The port's own name where Linux takes it, else one by number.
  std::string free_name(const std::string& node, const std::string& wish) const {
    const auto free = [&](const std::string& name) {
      return why_no_interface_name(name).empty() && std::none_of(claimed_.begin(), claimed_.end(), [&](const auto& c) {
               return c.first.node == node && c.first.interface == name;
             });
    };
    std::string name = wish;
    for (int number = 0; !free(name); number++) name = fmt::format("port{}", number);
    return name;
  }

  void claim(const End& end, config::Place place, const std::string& text) {
    for (const auto& [other, by] : claimed_)
      if (other.node == end.node && (end.is_host() ? other.interface == end.interface : other.port == end.port))
        return mistakes_.add(place, fmt::format("`{}.{}` is already joined by `{}`", end.node,
                                                end.is_host() ? end.interface : end.port, by));
    claimed_.emplace_back(end, text);
  }
  bool is_claimed(const End& end) const {
    return std::any_of(claimed_.begin(), claimed_.end(), [&](const auto& c) { return c.first == end; });
  }

  void find_tap(WireConfig& wire) {
    const End &a = wire.ends[0], &b = wire.ends[1];
    wire.machine = lab_.is_machine(a) || lab_.is_machine(b);
    if (lab_.is_machine(a) && lab_.is_machine(b))
      return mistakes_.add(
          wire.place, fmt::format("`{}` and `{}` are virtual machines: put an appliance between them", a.node, b.node));
    for (const End& end : wire.ends) {
      const ApplianceConfig* appliance = end.is_host() ? nullptr : lab_.appliance(end.node);
      if (!appliance || appliance->bind != Bind::kTap) continue;
      if (wire.machine) {
        mistakes_.add(wire.place, fmt::format("appliance `{}` has `bind: tap`, and a virtual machine brings a TAP "
                                              "itself: leave `bind:` out",
                                              appliance->name));
        continue;
      }
      wire.tap = true;
      const End& other = &end == &wire.ends[0] ? wire.ends[1] : wire.ends[0];
      if (!other.is_host())
        mistakes_.add(wire.place,
                      fmt::format("appliance `{}` has `bind: tap`, so its wires lead to hosts", appliance->name));
    }
  }

  void unjoined_ports(const ApplianceConfig& appliance) {
    for (const config::LiveBinding& binding : appliance.config.live_ports) {
      const bool joined = std::any_of(claimed_.begin(), claimed_.end(), [&](const auto& c) {
        return c.first.node == appliance.name && c.first.port == binding.port.text();
      });
      const config::PortKind kind = binding.live.kind;
      const bool outside = kind == config::PortKind::kAfPacket || kind == config::PortKind::kAfXdp;
      if (!joined && outside)
        mistakes_.add(appliance.place,
                      fmt::format("port `{}` of appliance `{}` is bound to `{}`, which is not in the lab: join it in "
                                  "`wires:`",
                                  binding.port.text(), appliance.name, binding.live.text()));
    }
    const bool any =
        std::any_of(claimed_.begin(), claimed_.end(), [&](const auto& c) { return c.first.node == appliance.name; });
    if (!any && appliance.config.live_ports.empty() && appliance.config.captures.empty() &&
        !appliance.config.devices.empty())
      mistakes_.add(appliance.place, fmt::format("appliance `{}` is joined to nothing: give `wires:`", appliance.name));
  }

  LabConfig& lab_;
  config::Mistakes& mistakes_;
  std::vector<std::pair<End, std::string>> claimed_;
};

}  // namespace

void read_wires(const std::vector<std::string>& texts, const config::Node& root, LabConfig& lab,
                config::Mistakes& mistakes) {
  WireReader reader(lab, mistakes);
  for (std::size_t i = 0; i < texts.size(); i++) reader.wire(texts[i], place_of_text(root, "wires", i));
  reader.finish();
}

}  // namespace rocebox::lab
