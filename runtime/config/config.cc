// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "runtime/config/describe.h"
#include "runtime/config/device.h"
#include "runtime/config/facing.h"
#include "runtime/config/pipeline_files.h"
#include "runtime/config/schedule.h"
#include "runtime/config/shared_addresses.h"
#include "runtime/config/top_fields.h"
#include "runtime/config/topology.h"
#include "runtime/config/units.h"
#include "runtime/config/workloads.h"
#include "runtime/limits.h"
#include "runtime/process/file_place.h"

namespace rocebox::config {
namespace {

constexpr const char* kByPorts = "`ports:`";

// Turns the raw document, whose shape top_fields() has checked, into the configuration.
class Loader {
 public:
  Loader(const std::string& file, Registry& registry, Mistakes& mistakes) : registry_(registry), mistakes_(mistakes) {
    config_.file = config_.path = file;
    config_.settings = mistakes_.settings();
  }

  RunConfig load(Node root, bool follow) {
    FieldsReader reader(&root, mistakes_, follow);
    std::optional<Topology> topology;
    TopFields top(registry_,
                  [&](const std::string& device) { return topology ? topology->placement(device) : nullptr; });
    top.fields_to_plugins(reader);
    load_plugins(top.plugins, reader.place_of("plugins"), follow);
    topology = Topology::expand(root, mistakes_, follow);
    // Without a pipeline its kernels and ports would seem to be misspelt wherever they are named.
    if (!resolve_pipelines(root, config_.file, registry_, mistakes_, follow)) return std::move(config_);
    top.fields_from_devices(reader);
    reader.finish();
    config_.seed = top.seed;
    config_.drain = top.drain;
    config_.pool = {static_cast<std::uint32_t>(top.pool_headers), static_cast<std::uint32_t>(top.pool_small),
                    static_cast<std::uint32_t>(top.pool_large), static_cast<std::uint32_t>(top.pool_giant)};
    config_.live = top.live;
    config_.live_values = top.live_values;
    config_.sim = top.sim;
    config_.sim_values = top.sim_values;
    if (const Node* live = root.find("live"))
      if (const Node* metrics = live->find("metrics")) config_.metrics_place = metrics->place;
    devices(root, top);
    if (topology) topology->finish(config_, registry_, mistakes_);
    for (const LinkConfig& link : config_.links)
      for (const PortName& end : link.between) claim(end, root.place, fmt::format("link `{}`", link.name));
    links(root, top);
    ports(root, top);
    add_workloads(top, root, config_, mistakes_);
    if (topology) {
      const Node* pool = root.find("pool");
      enlarge_pool(pool && pool->find("headers"), pool && pool->find("small"));
    }
    if (mistakes_.none()) add_schedule(top, root, topology ? &*topology : nullptr, registry_, config_, mistakes_);
    for (const WorkloadConfig& workload : config_.workloads)
      add_inputs(workload.values, fmt::format("an input of workload `{}`", workload.name));
    if (topology) add_inputs(topology->values(), "the topology");
    refuse_shared_interfaces(config_, mistakes_);
    if (const Node* node = root.find("expect"))
      for (std::size_t i = 0; i < top.expect.size(); i++)
        config_.expectations.push_back({top.expect[i], node->kind == Node::Kind::kList && i < node->items.size()
                                                           ? node->items[i].place
                                                           : node->place});
    if (mistakes_.none()) {
      check_facing(config_, mistakes_);
      refuse_shared_addresses(config_, root, mistakes_);
    }
    config_.notes = mistakes_.notes();
    config_.plugin_files = registry_.plugins();
    if (config_.devices.empty() && mistakes_.none()) mistakes_.add(root.place, "there is no device: give `devices:`");
    return std::move(config_);
  }

 private:
  void add_inputs(const OptionValues& values, const std::string& what) {
    for (const std::string& file : files_of(values)) config_.input_files.emplace_back(beside(config_.file, file), what);
  }

  void load_plugins(const std::vector<std::string>& files, Place place, bool follow) {
    for (const std::string& file : files) {
      config_.plugins.push_back(beside(config_.file, file));
      if (!follow) continue;
      try {
        registry_.load_plugin(config_.plugins.back());
      } catch (const ConfigError& error) {
        mistakes_.add(place, error.what());
      }
    }
  }

  void devices(const Node& root, TopFields& top) {
    for (TopFields::Device& raw : top.devices)
      config_.devices.push_back(resolve_device(raw, *root.find("devices")->find(raw.name), registry_, mistakes_));
  }

  // A transport's window of packets for each host, on their way or in queues; many short ones together fill no less.
  void enlarge_pool(bool keeps_headers, bool keeps_small) {
    constexpr std::uint32_t kPacketsOfHostMin = 512;
    std::unordered_map<std::string_view, std::uint32_t> by_workloads;
    for (const WorkloadConfig& workload : config_.workloads) {
      const std::uint32_t wanted = workload.options->packets_in_flight();
      if (wanted == 0) continue;
      for (const std::string& host : workload.hosts) {
        std::uint32_t& most = by_workloads[host];
        most = std::max(most, wanted);
      }
    }
    std::size_t next = 0;  // hosts are in the order of the devices
    const auto& hosts = config_.topology_hosts;
    for (const DeviceConfig& device : config_.devices) {
      if (next == hosts.size() || device.name != hosts[next]) continue;
      next++;
      const DeviceOptions* whole = device.whole();
      const bool has_headers = whole && whole->packet_bytes() <= kHeaderPacketBytes;
      if (has_headers ? keeps_headers : keeps_small) continue;
      std::uint32_t& packets = has_headers ? config_.pool.headers : config_.pool.small;
      std::uint32_t wanted = whole ? whole->packets_in_flight() : 0;
      if (const auto most = by_workloads.find(device.name); most != by_workloads.end())
        wanted = std::max(wanted, most->second);
      packets = std::min(packets + std::max(wanted, kPacketsOfHostMin), static_cast<std::uint32_t>(kPoolMax));
    }
  }

  void links(const Node& root, TopFields& top) {
    std::unordered_set<std::string> device_names;
    for (const DeviceConfig& device : config_.devices) device_names.insert(device.name);
    for (const TopFields::Link& raw : top.links) {
      const Node* node = root.find("links")->find(raw.name);
      check_name(raw.name, node->place, mistakes_);
      const Node* between = node->find("between");
      LinkConfig link;
      link.name = raw.name;
      link.kernel = {raw.name, raw.kernel.type, raw.kernel.options, raw.kernel.values, node->place};
      if (!link.kernel.type) {
        mistakes_.add(node->place, "this build has no kernel that joins devices");
        continue;
      }
      if (raw.between.size() != 2) {
        mistakes_.add(between ? between->place : node->place, without_ends(raw.name, between != nullptr));
        continue;
      }
      bool good = true;
      for (int side = 0; side < 2; side++) {
        std::string why;
        if (resolve_port(config_, raw.between[static_cast<std::size_t>(side)], link.between[side], why)) continue;
        mistakes_.add(between->place, why);
        good = false;
      }
      if (!good) continue;
      for (const PortName& end : link.between) claim(end, between->place, fmt::format("link `{}`", raw.name));
      if (device_names.contains(raw.name))
        mistakes_.add(node->place, fmt::format("`{}` is already the name of a device", raw.name));
      config_.links.push_back(std::move(link));
    }
  }

  // Of a link whose two ends are not written: in a topology it may be one of its own that is meant.
  std::string without_ends(const std::string& name, bool has_between) const {
    constexpr std::string_view kNeeded = "`between: [device.port, device.port]`";
    std::vector<std::string> placed;
    for (const LinkConfig& link : config_.links)
      if (link.placed) placed.push_back(link.name);
    if (has_between || placed.empty() || mistakes_.full()) return fmt::format("link `{}` needs {}", name, kNeeded);
    const std::string beside =
        nearest(name, placed).empty() ? fmt::format("; a link beside its own needs {}", kNeeded) : "";
    return fmt::format("the topology has no link `{}`{}{}", name, suggestion(name, placed), beside);
  }

  void ports(const Node& root, TopFields& top) {
    for (const TopFields::PortRow& raw : top.ports) {
      const Node* node = root.find("ports")->find(raw.name);
      CaptureBinding binding;
      std::string why;
      if (!resolve_port(config_, raw.name, binding.port, why)) {
        mistakes_.add(node->place, why);
        continue;
      }
      // What leaves by a port for a link can be looked at; nothing else can be bound there.
      binding.joined = is_joined(binding.port) && raw.live.bindings == 0 && raw.in.empty() && !raw.out.empty();
      if (!binding.joined)
        claim(binding.port, node->place, kByPorts);
      else if (!tapped_.insert(binding.port.text()).second)
        mistakes_.add(node->place, fmt::format("port `{}` is already taken by {}", binding.port.text(), kByPorts));
      const unsigned bindings = raw.live.bindings + (node->find("pcap") ? 1u : 0u);
      if (bindings != 1 || (!raw.live.bindings && raw.in.empty() && raw.out.empty()))
        mistakes_.add(node->place, bindings > 1
                                       ? fmt::format("port `{}` is bound to more than one thing", raw.name)
                                       : fmt::format("port `{}` is bound to nothing: give such as `pcap: {{in: "
                                                     "..., out: ...}}` or `af_packet: eth0`",
                                                     raw.name));
      if (raw.live.bindings) {
        config_.live_ports.push_back({binding.port, raw.live, node->place, raw.live_values});
        continue;
      }
      for (const std::string& file : raw.in) binding.in.push_back(beside(config_.file, file));
      binding.out = beside(config_.file, raw.out);
      binding.filter = raw.filter;
      binding.pace = parse_pace(raw.pace).value_or(1);
      binding.loop = raw.loop;
      binding.place = node->place;
      const Node* pcap = node->find("pcap");
      const Node* in = pcap ? pcap->find("in") : nullptr;
      const Node* filter = pcap ? pcap->find("filter") : nullptr;
      if (in) binding.in_place = config_.place_text(in->place);
      if (filter) binding.filter_place = config_.place_text(filter->place);
      if (filter && raw.in.empty())
        mistakes_.add(filter->place,
                      fmt::format("port `{}` has a `filter:` but no `in:` whose packets it could choose", raw.name));
      for (const char* key : {"pace", "loop"})
        if (const Node* option = pcap ? pcap->find(key) : nullptr; option && raw.in.empty())
          mistakes_.add(option->place, fmt::format("port `{}` has a `{}:` but no `in:` to send", raw.name, key));
      config_.captures.push_back(std::move(binding));
    }
  }

  void claim(const PortName& port, Place place, const std::string& by) {
    const auto [found, is_new] = claimed_.try_emplace(port.text(), by);
    if (!is_new) mistakes_.add(place, fmt::format("port `{}` is already taken by {}", port.text(), found->second));
  }
  bool is_joined(const PortName& port) const {
    const auto found = claimed_.find(port.text());
    return found != claimed_.end() && found->second != kByPorts;
  }

  Registry& registry_;
  Mistakes& mistakes_;
  RunConfig config_;
  std::unordered_map<std::string, std::string> claimed_;  // ports, and who has them
  std::unordered_set<std::string> tapped_;                // joined ones that have a capture
};

}  // namespace

RunConfig load_text(std::string_view text, const std::string& file, Registry& registry, Mistakes& mistakes, bool follow,
                    const std::vector<Setting>& settings) {
  Node root = parse_yaml(text, mistakes);
  if (!mistakes.none()) return {};
  if (!root.is_map()) {
    mistakes.add(root.place, fmt::format("expected a mapping with `devices:`, found {}", kind_name(root.kind)));
    return {};
  }
  std::vector<std::string_view> keys = {"path"};
  for (const Component* kind : registry.of_kind(kDeviceKind)) keys.emplace_back(kind->name);
  for (const std::string_view key : keys) {
    const Node* node = root.find(key);
    if (!node || root.find("devices")) continue;
    mistakes.add(node->place,
                 "this is a pipeline: a configuration names it, as in `devices: {NAME: {pipeline: FILE}}`");
    return {};
  }
  if (const Node* lab = root.find("lab")) {
    mistakes.add(lab->place, "this is a lab: give it to `rocebox lab run`, or to `rocebox check`");
    return {};
  }
  apply_settings(root, settings, mistakes, [&registry] { return run_options(registry); });
  if (!mistakes.none()) return {};
  return load_node(root, file, registry, mistakes, follow);
}

RunConfig load_node(const Node& root, const std::string& file, Registry& registry, Mistakes& mistakes, bool follow) {
  return Loader(file, registry, mistakes).load(root, follow);
}

RunConfig load(const std::string& path, Registry& registry, Mistakes& mistakes, Pipes pipes,
               const std::vector<Setting>& settings) {
  const std::string file = shown_file(path);
  std::string text;
  try {
    text = read_text_file(path, pipes);
  } catch (const ConfigError& error) {
    mistakes.add({}, std::string(error.what()).substr(file.size() + 2));
    return {};
  }
  RunConfig config = load_text(text, file, registry, mistakes, true, settings);
  std::error_code ignored;
  config.path = path;
  if (path == "-" || !std::filesystem::is_regular_file(path, ignored)) config.origin = ConfigOrigin::kPipe;
  return config;
}

std::vector<std::string> run_options(const Registry& registry) {
  std::vector<std::string> keys;
  const nlohmann::ordered_json all = schema(registry);
  for (const auto& [key, value] : all["properties"].items()) keys.push_back(key);
  return keys;
}

nlohmann::ordered_json schema(const Registry& registry) {
  nlohmann::ordered_json object = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", "rocebox configuration"}};
  FieldsSchema visitor(object, &registry);
  TopFields top(registry);
  top.fields(visitor);
  return object;
}

}  // namespace rocebox::config
