// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "runtime/config/units.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

// One word of a chain and the arrow behind it.
struct Link {
  std::string name;
  std::optional<Port> port;
  bool both_ways = false;  // the arrow behind is <->
};

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                              std::string_view::npos;
}

// Splits "a <-> b.1 -> c"; empty when it is no chain.
std::vector<Link> split(std::string_view chain) {
  std::vector<Link> links;
  while (true) {
    const std::size_t arrow = chain.find("->");
    const bool both = arrow != std::string_view::npos && arrow > 0 && chain[arrow - 1] == '<';
    std::string_view word = trimmed(chain.substr(0, both ? arrow - 1 : arrow));
    Link link;
    link.both_ways = both;
    if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos) {
      const auto number = parse_integer(word.substr(dot + 1));
      if (!number || *number < 0 || *number >= static_cast<std::int64_t>(kPortsMax)) return {};
      link.port = static_cast<Port>(*number);
      word = word.substr(0, dot);
    }
    if (!is_name(word)) return {};
    link.name = word;
    links.push_back(std::move(link));
    if (arrow == std::string_view::npos) return links;
    chain.remove_prefix(arrow + 2);
  }
}

class Wirer {
 public:
  Wirer(const std::vector<PathKernel>& kernels, Place place, Mistakes& mistakes)
      : kernels_(kernels), place_(place), mistakes_(mistakes), used_(kernels.size()) {
    for (const PathKernel& kernel : kernels) wiring_.outputs.emplace_back(kernel.outputs);
  }

  void add(const std::string& chain) {
    const std::vector<Link> links = split(chain);
    if (links.size() < 2)
      return mistake(fmt::format("path `{}` is no chain of names and arrows, such as `host <-> link <-> wire`", chain));
    for (std::size_t i = 0; i < links.size(); i++)
      if (!known(chain, links, i)) return;
    for (std::size_t i = 0; i + 1 < links.size(); i++) {
      connect(links[i], true, links[i + 1], false);
      if (links[i].both_ways) connect(links[i + 1], false, links[i], true);
    }
  }

  Wiring finish() {
    for (std::size_t i = 0; i < kernels_.size(); i++)
      if (!used_[i]) mistake(fmt::format("kernel `{}` stands in no path", kernels_[i].name));
    if (wiring_.ports.empty())
      mistake("the path has no port: begin and end it with names of ports, such as `host` and `wire`");
    find_rings();
    return std::move(wiring_);
  }

 private:
  void mistake(std::string message) { mistakes_.add(place_, std::move(message)); }

  int kernel(std::string_view name) const {
    for (std::size_t i = 0; i < kernels_.size(); i++)
      if (kernels_[i].name == name) return static_cast<int>(i);
    return -1;
  }

  Port device_port(const std::string& name) {
    const auto found = std::find(wiring_.ports.begin(), wiring_.ports.end(), name);
    if (found != wiring_.ports.end()) return static_cast<Port>(found - wiring_.ports.begin());
    wiring_.ports.push_back(name);
    wiring_.inputs.emplace_back();
    return static_cast<Port>(wiring_.ports.size() - 1);
  }

  bool known(const std::string& chain, const std::vector<Link>& links, std::size_t i) {
    const Link& link = links[i];
    const bool inside = i > 0 && i + 1 < links.size();
    const int index = kernel(link.name);
    if (index < 0) {
      std::vector<std::string> names;
      for (const PathKernel& k : kernels_) names.push_back(k.name);
      if (inside)
        mistake(fmt::format("path `{}`: unknown kernel `{}`{}", chain, link.name, suggestion(link.name, names)));
      else if (link.port)
        mistake(fmt::format("path `{}`: `{}` is a port of the device and has no port numbers", chain, link.name));
      else
        device_port(link.name);
      return !inside && !link.port;
    }
    used_[static_cast<std::size_t>(index)] = true;
    const PathKernel& k = kernels_[static_cast<std::size_t>(index)];
    const bool both = link.both_ways || (i > 0 && links[i - 1].both_ways);
    if (both && k.shape != Shape::kTwoSided) {
      mistake(fmt::format("path `{}`: kernel `{}` is not two-sided; use `->`", chain, link.name));
      return false;
    }
    if (i + 1 < links.size() && k.outputs == 0) {
      mistake(fmt::format("path `{}`: kernel `{}` has no outputs", chain, link.name));
      return false;
    }
    const Port ports = i == 0 ? k.outputs : k.inputs;
    if (link.port && (inside || *link.port >= ports)) {
      mistake(inside ? fmt::format("path `{}`: `.{}` is possible at the ends of a chain only", chain, *link.port)
                     : fmt::format("path `{}`: kernel `{}` has ports 0 to {}", chain, link.name, ports - 1));
      return false;
    }
    return true;
  }

  // A two-sided kernel's port 0 looks left and its port 1 looks right, whichever way the packets go.
  Port side(const Link& link, int index, bool looks_right) const {
    if (link.port) return *link.port;
    if (kernels_[static_cast<std::size_t>(index)].shape == Shape::kTwoSided) return looks_right ? 1 : 0;
    return 0;
  }

  void connect(const Link& from, bool from_looks_right, const Link& to, bool to_looks_right) {
    const int from_kernel = kernel(from.name), to_kernel = kernel(to.name);
    const Edge target = to_kernel < 0 ? Edge{Edge::kOutside, device_port(to.name)}
                                      : Edge{to_kernel, side(to, to_kernel, to_looks_right)};
    Edge& source =
        from_kernel < 0
            ? wiring_.inputs[device_port(from.name)]
            : wiring_.outputs[static_cast<std::size_t>(from_kernel)][side(from, from_kernel, from_looks_right)];
    if (source.stage != Edge::kNowhere)
      mistake(fmt::format("`{}` is wired twice in the direction of `{}`", from.name, to.name));
    source = target;
  }

  // A ring would send a packet round for ever. Two-sided kernels count as passing to their other side.
  void find_rings() {
    std::vector<std::vector<int>> state(kernels_.size());
    for (std::size_t i = 0; i < kernels_.size(); i++) state[i].assign(std::max<std::size_t>(1, kernels_[i].inputs), 0);
    bool ring = false;
    const std::function<void(Edge)> visit = [&](Edge at) {
      if (at.stage < 0 || ring) return;
      const auto k = static_cast<std::size_t>(at.stage);
      int& mark = state[k][at.port];
      if (mark == 2) return;
      if (mark == 1) {
        ring = true;
        return mistake(fmt::format("the path leads from kernel `{}` back to itself; a ring needs a device port between",
                                   kernels_[k].name));
      }
      mark = 1;
      const std::vector<Edge>& outputs = wiring_.outputs[k];
      if (kernels_[k].shape == Shape::kTwoSided)
        visit(outputs[at.port == 0 ? 1 : 0]);
      else
        for (const Edge& edge : outputs) visit(edge);
      mark = 2;
    };
    for (const Edge& input : wiring_.inputs) visit(input);
    for (std::size_t i = 0; i < kernels_.size(); i++)
      for (Port port = 0; port < kernels_[i].inputs; port++) visit({static_cast<int>(i), port});
  }

  const std::vector<PathKernel>& kernels_;
  Place place_;
  Mistakes& mistakes_;
  std::vector<bool> used_;
  Wiring wiring_;
};

}  // namespace

Wiring wire(const std::vector<std::string>& chains, const std::vector<PathKernel>& kernels, Place place,
            Mistakes& mistakes) {
  Wirer wirer(kernels, place, mistakes);
  for (const std::string& chain : chains) wirer.add(chain);
  return wirer.finish();
}

std::vector<std::string> path_names(const std::vector<std::string>& chains) {
  std::vector<std::string> names;
  for (const std::string& chain : chains)
    for (const Link& link : split(chain))
      if (std::find(names.begin(), names.end(), link.name) == names.end()) names.push_back(link.name);
  return names;
}

}  // namespace rocebox::config
