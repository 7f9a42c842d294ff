// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/lab/checks.h"
#include "runtime/lab/namespaces.h"
#include "runtime/lab/process.h"
#include "runtime/process/capabilities.h"

namespace rocebox::lab {
namespace {

using Words = std::vector<std::string>;

std::pair<const char*, Setting> settings_of(const Offloads& o, std::size_t index) {
  const std::pair<const char*, Setting> all[] = {{"tso", o.tso},        {"gso", o.gso},        {"gro", o.gro},
                                                 {"rx", o.rx_checksum}, {"tx", o.tx_checksum}, {"rxvlan", o.rx_vlan},
                                                 {"txvlan", o.tx_vlan}};
  return index < std::size(all) ? all[index] : std::pair<const char*, Setting>(nullptr, Setting::kDefault);
}

// What `ethtool -K INTERFACE` is to be told.
Words offload_words(const Offloads& offloads) {
  Words words;
  for (std::size_t i = 0; settings_of(offloads, i).first; i++) {
    const auto [name, setting] = settings_of(offloads, i);
    if (setting != Setting::kDefault) words.insert(words.end(), {name, setting == Setting::kOn ? "on" : "off"});
  }
  return words;
}

bool has_ipv6() { return std::filesystem::exists("/proc/sys/net/ipv6"); }

class Builder {
 public:
  explicit Builder(const LabConfig& lab) : lab_(lab) {}

  void node(const std::string& name, config::Place place, bool is_host) {
    const std::string space = namespace_name(lab_.name, name);
    run(place, {"ip", "netns", "add", space});
    run(place, {"ip", "-n", space, "link", "set", "lo", "up"});
    if (!has_ipv6()) return;
    // Nobody else is in a lab, so addresses need not be asked about for a second. An appliance's ends are no hosts: the
    // kernel must not send discovery of its own from them.
    const char* setting = is_host ? "net.ipv6.conf.default.accept_dad=0" : "net.ipv6.conf.default.disable_ipv6=1";
    run(place, within(space, {"sysctl", "-q", "-w", setting}));
  }

  void veth(const WireConfig& wire) {
    const End &a = wire.ends[0], &b = wire.ends[1];
    const std::string mtu = std::to_string(lab_.mtu(wire));
    run(wire.place, {"ip", "-n", space_of(a), "link", "add", "name", a.interface, "mtu", mtu, "type", "veth", "peer",
                     "name", b.interface, "mtu", mtu, "netns", space_of(b)});
    for (const End& end : wire.ends) {
      if (end.is_host()) continue;
      run(wire.place, {"ip", "-n", space_of(end), "link", "set", "dev", end.interface, "up"});
    }
  }

  void interface(const HostConfig& host, const Interface& interface) {
    const std::string space = namespace_name(lab_.name, host.name), &name = interface.name;
    const auto ip = [&](Words words) {
      words.insert(words.begin(), {"ip", "-n", space});
      run(host.place, words);
    };
    if (!interface.mac.empty()) ip({"link", "set", "dev", name, "address", interface.mac});
    ip({"link", "set", "dev", name, "mtu", std::to_string(interface.mtu)});
    const Words offloads = offload_words(interface.offloads);
    if (!offloads.empty()) {
      Words words = within(space, {"ethtool", "-K", name});
      words.insert(words.end(), offloads.begin(), offloads.end());
      run(host.place, words);
    }
    ip({"link", "set", "dev", name, "up"});
    for (const std::string& address : interface.addresses) ip({"address", "add", address, "dev", name});
    for (const std::string& neighbour : interface.neighbours) {
      const Words words = neighbour_words(neighbour, name);
      ip(Words(words.begin() + 1, words.end()));
    }
  }

  // What a host of TAPs is given waits until it has them. A virtual machine sees to itself.
  void host(const HostConfig& host, bool taps) {
    if (host.machine) return;
    const std::string space = namespace_name(lab_.name, host.name);
    const bool complete = has_taps(host) == taps;
    if (complete)
      for (const std::string& setting : host.sysctls) run(host.place, within(space, {"sysctl", "-q", "-w", setting}));
    for (const Interface& each : host.interfaces)
      if (is_tap(host, each) == taps) interface(host, each);
    if (!complete) return;
    for (const std::string& route : host.routes) {
      Words words = route_words(route);
      words.insert(words.begin() + 1, {"-n", space});
      run(host.place, words);
    }
  }

  void move_tap(const WireConfig& wire) {
    const int maker = wire.machine ? (lab_.is_machine(wire.ends[0]) ? 0 : 1) : (wire.ends[0].is_host() ? 1 : 0);
    const End &from = wire.ends[maker], &to = wire.ends[1 - maker];
    run(wire.place, {"ip", "-n", space_of(from), "link", "set", "dev", from.interface, "netns", space_of(to), "name",
                     to.interface});
    if (!to.is_host()) run(wire.place, {"ip", "-n", space_of(to), "link", "set", "dev", to.interface, "up"});
  }

  // A TAP where QEMU can take it. Its queue holds what the machine has no time to take yet, and drops in silence
  // beyond.
  void machine_tap(const HostConfig& host) {
    const std::string space = namespace_name(lab_.name, host.name), &name = host.interfaces[0].name;
    run(host.place, {"ip", "-n", space, "tuntap", "add", "dev", name, "mode", "tap"});
    run(host.place, {"ip", "-n", space, "link", "set", "dev", name, "mtu", std::to_string(host.interfaces[0].mtu),
                     "txqueuelen", "8192", "up"});
  }

 private:
  std::string space_of(const End& end) const { return namespace_name(lab_.name, end.node); }

  bool is_tap(const HostConfig& host, const Interface& interface) const {
    return std::any_of(lab_.wires.begin(), lab_.wires.end(), [&](const WireConfig& wire) {
      const End end{host.name, interface.name, {}};
      return (wire.tap || wire.machine) && (wire.ends[0] == end || wire.ends[1] == end);
    });
  }
  bool has_taps(const HostConfig& host) const {
    return std::any_of(host.interfaces.begin(), host.interfaces.end(),
                       [&](const Interface& interface) { return is_tap(host, interface); });
  }

  void run(config::Place place, const Words& words) const {
    const CallResult done = call(words);
    if (done.status == 0) return;
    throw ConfigError(fmt::format("{}: `{}` failed: {}", lab_.place_text(place), fmt::join(words, " "),
                                  done.said.empty() ? fmt::format("status {}", done.status) : done.said));
  }

  const LabConfig& lab_;
};

}  // namespace

void require_tools(const LabConfig& lab) {
  if (!missing_capabilities({Capability::kSysAdmin, Capability::kNetAdmin}).empty())
    throw ConfigError(
        fmt::format("{}: a lab is made of network namespaces, which takes CAP_SYS_ADMIN and "
                    "CAP_NET_ADMIN: run it as root",
                    lab.file));
  const std::pair<const char*, const char*> tools[] = {
      {"ip", "iproute2"}, {"sysctl", "procps"}, {"ethtool", "ethtool"}};
  for (const auto& [tool, package] : tools)
    if (find_program(tool).empty())
      throw ConfigError(
          fmt::format("{}: the command `{}` is missing: install the package {}", lab.file, tool, package));
}

void build_network(const LabConfig& lab) {
  Builder builder(lab);
  for (const HostConfig& host : lab.hosts) builder.node(host.name, host.place, !host.machine);
  for (const ApplianceConfig& appliance : lab.appliances) builder.node(appliance.name, appliance.place, false);
  for (const WireConfig& wire : lab.wires)
    if (!wire.tap && !wire.machine) builder.veth(wire);
  for (const HostConfig& host : lab.hosts)
    if (host.machine) builder.machine_tap(host);
  for (const HostConfig& host : lab.hosts) builder.host(host, false);
}

void join_machines(const LabConfig& lab) {
  Builder builder(lab);
  for (const WireConfig& wire : lab.wires)
    if (wire.machine) builder.move_tap(wire);
}

void join_taps(const LabConfig& lab) {
  Builder builder(lab);
  bool any = false;
  for (const WireConfig& wire : lab.wires) {
    if (wire.tap) builder.move_tap(wire);
    any = any || wire.tap || wire.machine;
  }
  if (!any) return;
  for (const HostConfig& host : lab.hosts) builder.host(host, true);
}

}  // namespace rocebox::lab
