// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "runtime/config/describe.h"
#include "runtime/lab/checks.h"
#include "runtime/lab/lab_loader.h"
#include "runtime/lab/lab_wires.h"
#include "runtime/process/file_place.h"

namespace rocebox::lab {
namespace {

constexpr std::size_t kLabNameMax = 64;  // it stands in names of files

template <class Row>
const Row* find_named(const std::vector<Row>& rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::string why_no_lab_name(const std::string& name) {
  if (!config::is_plain_name(name)) return "use letters, digits, _ and -";
  return name.size() > kLabNameMax ? fmt::format("use at most {} characters", kLabNameMax) : "";
}

}  // namespace

const HostConfig* LabConfig::host(std::string_view name_of) const { return find_named(hosts, name_of); }
const ApplianceConfig* LabConfig::appliance(std::string_view name_of) const { return find_named(appliances, name_of); }
bool LabConfig::is_machine(const End& end) const {
  const HostConfig* found = end.is_host() ? host(end.node) : nullptr;
  return found && found->machine;
}
const Interface& LabConfig::interface(const End& end) const {
  return *find_named(host(end.node)->interfaces, end.interface);
}

std::uint64_t LabConfig::mtu(const WireConfig& wire) const {
  for (const End& end : wire.ends)
    if (end.is_host()) return interface(end).mtu;
  std::uint64_t largest = Interface().mtu;
  for (const HostConfig& each : hosts)
    for (const Interface& one : each.interfaces) largest = std::max(largest, one.mtu);
  return largest;
}

std::string LabConfig::place_text(config::Place place) const { return config::place_text(file, place); }

bool is_lab(const config::Node& root) { return root.is_map() && root.find("lab"); }

LabConfig load_text(std::string_view text, const std::string& file, const std::vector<std::string>& plugins,
                    config::Mistakes& mistakes, bool follow) {
  const config::Node root = config::parse_yaml(text, mistakes);
  if (!mistakes.none()) return {};
  if (!root.is_map()) {
    mistakes.add(root.place, fmt::format("expected a mapping with `lab:`, found {}", config::kind_name(root.kind)));
    return {};
  }
  if (!is_lab(root) && root.find("devices")) {
    mistakes.add(root.place, "this is no lab, which has `lab: NAME` and `hosts:`; `rocebox run` takes this file");
    return {};
  }
  LabConfig lab = LabLoader(file, plugins, mistakes, follow).load(root);
  if (is_lab(root))
    if (const std::string why = why_no_lab_name(lab.name); !why.empty())
      mistakes.add(root.find("lab")->place, fmt::format("`{}` is no name for a lab: {}", lab.name, why));
  return lab;
}

LabConfig load(const std::string& text, const std::string& path, const std::vector<std::string>& plugins) {
  const std::string file = shown_file(path);
  config::Mistakes mistakes(file);
  LabConfig lab = load_text(text, file, plugins, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  lab.path = path;
  return lab;
}

std::string lab_name(const std::string& argument) {
  std::error_code ignored;
  if (argument != "-" && !std::filesystem::exists(argument, ignored) && why_no_lab_name(argument).empty())
    return argument;
  config::Mistakes mistakes(shown_file(argument));
  const config::Node root = config::parse_yaml(config::read_text_file(argument, config::Pipes::kTaken), mistakes);
  const config::Node* name = root.is_map() ? root.find("lab") : nullptr;
  if (!name || name->kind != config::Node::Kind::kScalar)
    throw ConfigError(
        fmt::format("{}: it has no `lab: NAME`; give the name itself: rocebox lab down NAME", shown_file(argument)));
  require_lab_name(name->scalar, shown_file(argument));
  return name->scalar;
}

void require_lab_name(const std::string& name, const std::string& by) {
  if (const std::string why = why_no_lab_name(name); !why.empty())
    throw ConfigError(fmt::format("{}: `{}` is no name for a lab: {}", by, name, why));
}

nlohmann::ordered_json schema(const Registry& registry) {
  nlohmann::ordered_json object = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", "rocebox lab"}};
  config::FieldsSchema visitor(object, &registry);
  LabFields fields(registry);
  fields.fields(visitor);
  object["required"] = {"lab", "hosts"};
  return object;
}

}  // namespace rocebox::lab
