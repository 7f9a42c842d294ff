// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/lab/checks.h"
#include "runtime/lab/lab_wires.h"
#include "runtime/lab/output.h"
#include "runtime/limits.h"
#include "runtime/process/file_place.h"

namespace rocebox::lab {
namespace {

constexpr const char* kApplianceKeys[] = {"config", "cores", "bind"};

constexpr std::uint64_t kMachineMtuMin = 1280, kMachineMtuMax = 9000;  // IPv6's least; what vm.py takes

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

config::Place place_of_text(const config::Node& node, const char* key, std::size_t index) {
  const config::Node* list = node.find(key);
  if (!list) return node.place;
  return list->kind == config::Node::Kind::kList && index < list->items.size() ? list->items[index].place : list->place;
}

LabLoader::LabLoader(const std::string& file, const std::vector<std::string>& plugins, config::Mistakes& mistakes,
                     bool follow)
    : plugins_(plugins), mistakes_(mistakes), follow_(follow) {
  lab_.file = file;
}

LabConfig LabLoader::load(const config::Node& root) {
  const Registry registry;
  LabFields raw(registry);
  config::FieldsReader reader(&root, mistakes_);
  raw.fields(reader);
  reader.finish();
  if (!root.find("lab")) mistakes_.add(root.place, "there is no name: give `lab: NAME`");
  lab_.name = raw.lab;
  if (raw.hosts.empty() && (!root.find("hosts") || root.find("hosts")->is_map()))
    mistakes_.add(root.place, "there is no host: give `hosts:`");
  for (const LabFields::Host& each : raw.hosts) host(each, *root.find("hosts")->find(each.name));
  for (const LabFields::Appliance& each : raw.appliances) appliance(each, *root.find("appliances")->find(each.name));
  read_wires(raw.wires, root, lab_, mistakes_);
  traffic(raw.traffic, root);
  for (std::size_t i = 0; i < raw.expect.size(); i++)
    lab_.expectations.push_back({raw.expect[i], place_of_text(root, "expect", i)});
  return std::move(lab_);
}

void LabLoader::name(const std::string& name, config::Place place) {
  if (!config::is_plain_name(name))
    mistakes_.add(place, fmt::format("`{}` is no name: use letters, digits, _ and -", name));
  else if (lab_.host(name) || lab_.appliance(name))
    mistakes_.add(place, fmt::format("`{}` is already the name of a host", name));
}

void LabLoader::texts(const config::Node& node, const char* key, bool (*good)(const std::string&), const char* what) {
  const config::Node* list = node.find(key);
  if (!list) return;
  const auto check = [&](const config::Node& text) {
    if (text.kind == config::Node::Kind::kScalar && !good(text.scalar))
      mistakes_.add(text.place, fmt::format("`{}` of `{}`: expected {}", text.scalar, key, what));
  };
  check(*list);
  for (const config::Node& item : list->items) check(item);
}

void LabLoader::host(const LabFields::Host& raw, const config::Node& node) {
  name(raw.name, node.place);
  HostConfig host{raw.name, node.place, raw.interfaces, raw.routes, raw.sysctls};
  if (raw.has_interfaces && raw.has_only)
    mistakes_.add(node.place,
                  fmt::format("host `{}` has `interfaces:`; addresses and the like belong into them", raw.name));
  if (!raw.has_interfaces) host.interfaces.push_back(raw.only);
  for (const Interface& each : host.interfaces)
    interface(each, raw.has_interfaces ? *node.find("interfaces")->find(each.name) : node);
  texts(node, "sysctls", is_sysctl, "NAME=VALUE, such as net.ipv4.ip_forward=1");
  if (raw.is_machine) {
    machine(raw, node);
    host.machine = raw.machine;
    if (!raw.machine.image.empty()) host.machine->image = config::beside(lab_.file, raw.machine.image);
  }
  lab_.hosts.push_back(std::move(host));
}

// What is good for a namespace, but not for a virtual machine.
void LabLoader::machine(const LabFields::Host& raw, const config::Node& node) {
  const auto place = [&](const char* key) { return node.find(key) ? node.find(key)->place : node.place; };
  if (raw.has_interfaces)
    mistakes_.add(place("interfaces"), fmt::format("host `{}` is a virtual machine, which has one interface: give its "
                                                   "addresses and the like beside `vm:`",
                                                   raw.name));
  else if (raw.only.addresses.empty())
    mistakes_.add(node.place, fmt::format("host `{}` is a virtual machine, which needs `addresses:`", raw.name));
  if (raw.only.mtu < kMachineMtuMin || raw.only.mtu > kMachineMtuMax)
    mistakes_.add(place("mtu"), fmt::format("the `mtu` of a virtual machine must be from {} to {} B", kMachineMtuMin,
                                            kMachineMtuMax));
  if (node.find("offloads"))
    mistakes_.add(place("offloads"), fmt::format("host `{}` is a virtual machine, which has no offloads", raw.name));
  if (raw.machine.memory % (1u << 20) != 0) mistakes_.add(place("vm"), "`memory` must be whole MiB, such as 512MiB");
}

void LabLoader::interface(const Interface& raw, const config::Node& node) {
  if (const std::string why = why_no_interface_name(raw.name); !why.empty())
    mistakes_.add(node.place, fmt::format("`{}` is no name for an interface: {}", raw.name, why));
  texts(node, "addresses", is_address_with_prefix, "an address with prefix length, such as 10.99.0.1/24 or fd99::1/64");
  texts(node, "mac", is_mac, "the MAC address of a host, such as 02:00:00:00:00:01");
  texts(node, "neighbours", is_neighbour, "ADDRESS MAC, such as `10.99.0.2 02:00:00:00:00:02`");
}

void LabLoader::appliance(const LabFields::Appliance& raw, const config::Node& node) {
  name(raw.name, node.place);
  ApplianceConfig appliance;
  appliance.name = raw.name;
  appliance.place = node.place;
  appliance.cores = raw.cores;
  appliance.bind = raw.bind;
  appliance.registry = std::make_shared<Registry>();
  for (const std::string& plugin : plugins_) appliance.registry->load_plugin(plugin);
  if (!node.is_map()) return;
  if (!raw.config.empty()) {
    appliance.file = config::beside(lab_.file, raw.config);
    if (follow_) appliance_file(appliance, node);
  } else if (!node.find("config")) {
    inline_appliance(appliance, node);
  }
  lab_.appliances.push_back(std::move(appliance));
}

void LabLoader::appliance_file(ApplianceConfig& appliance, const config::Node& node) {
  config::Mistakes within(shown_file(appliance.file));
  appliance.config = config::load(appliance.file, *appliance.registry, within);
  if (within.none()) return;
  appliance.config.devices.clear();  // what follows from a mistake is none
  mistakes_.add(node.find("config")->place,
                fmt::format("the configuration of `{}` has {} mistake(s):", appliance.name, within.count()));
  mistakes_.add(within);
}

void LabLoader::inline_appliance(ApplianceConfig& appliance, const config::Node& node) {
  std::vector<std::string> known = config::run_options(*appliance.registry);
  config::Node own;
  own.kind = config::Node::Kind::kMap;
  own.place = node.place;
  for (const config::Entry& entry : node.entries)
    if (has(known, entry.key)) own.entries.push_back(entry);
  known.insert(known.begin(), std::begin(kApplianceKeys), std::end(kApplianceKeys));
  for (const config::Entry& entry : node.entries)
    if (!has(known, entry.key))
      mistakes_.add(entry.place, fmt::format("unknown key `{}`{}", entry.key, config::suggestion(entry.key, known)));
  if (!own.find("devices")) {
    mistakes_.add(node.place, fmt::format("appliance `{}` has no configuration: give `config: FILE`, or `devices:` "
                                          "and whatever else it takes",
                                          appliance.name));
    return;
  }
  const std::size_t before = mistakes_.count();
  appliance.config = config::load_node(own, lab_.file, *appliance.registry, mistakes_, follow_);
  if (mistakes_.count() > before) appliance.config.devices.clear();  // what follows from a mistake is none
}

void LabLoader::traffic(const std::vector<Traffic>& raw, const config::Node& root) {
  const config::Node* list = root.find("traffic");
  for (std::size_t i = 0; i < raw.size(); i++) {
    TrafficStep each;
    static_cast<Traffic&>(each) = raw[i];
    each.place = list->items[i].place;
    if (each.name.empty()) each.name = fmt::format("step_{}", i + 1);
    if (!each.output.empty()) each.output = config::beside(lab_.file, each.output);
    if (list->items[i].is_map()) step(each, list->items[i]);
    lab_.traffic.push_back(std::move(each));
  }
}

void LabLoader::step(const TrafficStep& step, const config::Node& node) {
  const auto place = [&](const char* key) { return node.find(key) ? node.find(key)->place : node.place; };
  if (!config::is_plain_name(step.name))
    mistakes_.add(place("name"), fmt::format("`{}` is no name: use letters, digits, _ and -", step.name));
  for (const TrafficStep& other : lab_.traffic)
    if (other.name == step.name)
      mistakes_.add(place("name"), fmt::format("there is a command named `{}` already", step.name));
  std::vector<std::string> hosts;
  for (const HostConfig& host : lab_.hosts) hosts.push_back(host.name);
  if (!lab_.host(step.host))
    mistakes_.add(place("host"), step.host.empty() ? fmt::format("`{}` needs `host:`, where it is run", step.name)
                                                   : fmt::format("there is no host `{}`{}", step.host,
                                                                 config::suggestion(step.host, hosts)));
  if (step.run.empty()) mistakes_.add(place("run"), fmt::format("`{}` needs `run:`, a command", step.name));
  for (const char* key : {"ready", "ready_port"})
    if (node.find(key) && !step.background)
      mistakes_.add(place(key), fmt::format("`{}` is for commands with `background: true`", key));
  std::string why;
  NumberRule rule;
  for (std::size_t i = 0; i < step.numbers.size(); i++)
    if (!parse_number_rule(step.numbers[i], rule, why))
      mistakes_.add(place_of_text(node, "numbers", i), why);
    else if (is_name_of_report(rule.name))
      mistakes_.add(place_of_text(node, "numbers", i),
                    fmt::format("the report has `{}` anyway; give the number another name", rule.name));
}

}  // namespace rocebox::lab
