// SPDX-License-Identifier: BSD-3-Clause
// The effective configuration as YAML that loads to the same configuration: every option that counts, with its value;
// groups and entries of lists as far as they were written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/config/config.h"
#include "runtime/config/effective.h"
#include "runtime/config/units.h"
#include "runtime/config/yaml_text.h"

namespace rocebox::config {
namespace {

// A path as it must be written in the configuration: beside its file. Whole paths, `-` and names of streams stay.
std::string as_written(const RunConfig& config, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(config.file).parent_path();
  if (folder.empty() || path.empty() || path[0] == '/' || path == "-" || path == "-.pcapng") return path;
  const std::string relative = std::filesystem::path(path).lexically_relative(folder.lexically_normal()).string();
  return relative.empty() ? path : relative;
}

std::vector<std::string> as_written(const RunConfig& config, std::vector<std::string> paths) {
  for (std::string& path : paths) path = as_written(config, path);
  return paths;
}

OptionValue plain(std::string name, std::string text) {
  return {std::move(name), OptionValue::Kind::kPlain, true, std::move(text)};
}
OptionValue text(std::string name, std::string text) {
  return {std::move(name), OptionValue::Kind::kText, true, std::move(text)};
}
OptionValue group(std::string name, OptionValues values) {
  OptionValue all{std::move(name), OptionValue::Kind::kGroup, true};
  all.entries.push_back(std::move(values));
  return all;
}
void add_texts(OptionValues& to, std::string name, const std::vector<std::string>& texts) {
  if (!texts.empty()) to.push_back({std::move(name), OptionValue::Kind::kTexts, true, {}, texts});
}
void append(OptionValues& to, const OptionValues& more) { to.insert(to.end(), more.begin(), more.end()); }

OptionValues device_values(const DeviceConfig& device) {
  if (device.kind) return {plain("kind", device.kind->name), group(device.kind->name, device.kernels[0].values)};
  OptionValues values = {plain("kind", "bump")};
  add_texts(values, "path", device.path);
  OptionValues kernels;
  for (const KernelConfig& kernel : device.kernels) {
    OptionValues options = {plain("type", kernel.type->name)};
    append(options, kernel.values);
    kernels.push_back(group(kernel.name, std::move(options)));
  }
  if (!kernels.empty()) values.push_back(group("kernels", std::move(kernels)));
  return values;
}

OptionValues capture_values(const RunConfig& config, const CaptureBinding& binding) {
  OptionValues values;
  add_texts(values, "in", as_written(config, binding.in));
  if (!binding.filter.empty()) values.push_back(text("filter", binding.filter));
  if (!binding.out.empty()) values.push_back(text("out", as_written(config, binding.out)));
  if (!binding.in.empty()) {
    values.push_back(plain("pace", format_pace(binding.pace)));
    values.push_back(plain("loop", fmt::format("{}", binding.loop)));
  }
  return {group("pcap", std::move(values))};
}

// Values of list entries that were not given may not be written, and a group that was not given could mean something
// else.
void print(const OptionValues& values, std::string& out, unsigned indent, bool only_given) {
  for (const OptionValue& value : values) {
    if (!value.given && (only_given || value.kind == OptionValue::Kind::kGroup)) continue;
    if (!value.given && value.kind == OptionValue::Kind::kItems && value.entries.empty()) continue;
    out += fmt::format("{:{}}{}:", "", indent, value.name);
    switch (value.kind) {
      case OptionValue::Kind::kPlain:
        out += " " + value.text + "\n";
        break;
      case OptionValue::Kind::kText:
        out += " " + yaml_text(value.text) + "\n";
        break;
      case OptionValue::Kind::kTexts: {
        std::vector<std::string> quoted;
        for (const std::string& one : value.texts) quoted.push_back(yaml_text(one));
        out += fmt::format(" [{}]\n", fmt::join(quoted, ", "));
        break;
      }
      case OptionValue::Kind::kGroup: {
        std::string block;
        print(value.entries[0], block, indent + 2, false);
        out += block.empty() ? " {}\n" : "\n" + block;
        break;
      }
      case OptionValue::Kind::kItems:
        out += value.entries.empty() ? " []\n" : "\n";  // an empty one may stand in place of another list
        for (const OptionValues& entry : value.entries) {
          std::string block;
          print(entry, block, indent + 4, true);
          if (block.size() > indent + 4) block[indent + 2] = '-';
          out += block;
        }
    }
  }
}

}  // namespace

OptionValues effective_values(const RunConfig& config) {
  const auto number = [](std::string name, auto value) { return plain(std::move(name), fmt::format("{}", value)); };
  OptionValues all = {number("seed", config.seed), plain("drain", format_duration(config.drain)),
                      group("pool", {number("headers", config.pool.headers), number("small", config.pool.small),
                                     number("large", config.pool.large), number("giant", config.pool.giant)})};
  add_texts(all, "plugins", as_written(config, config.plugins));
  OptionValues devices = config.topology_devices, links, ports;
  if (!config.topology_values.empty()) all.push_back(group("topology", config.topology_values));
  for (const DeviceConfig& device : config.devices)
    if (!device.placed) devices.push_back(group(device.name, device_values(device)));
  if (!devices.empty() || config.topology_values.empty()) all.push_back(group("devices", std::move(devices)));
  for (const LinkConfig& link : config.links) {
    if (link.placed) {
      if (!link.written.empty()) links.push_back(group(link.name, link.written));
      continue;
    }
    OptionValues values = {plain("between", fmt::format("[{}, {}]", link.between[0].text(), link.between[1].text()))};
    append(values, link.kernel.values);
    links.push_back(group(link.name, std::move(values)));
  }
  if (!links.empty()) all.push_back(group("links", std::move(links)));
  for (const CaptureBinding& binding : config.captures)
    ports.push_back(group(binding.port.text(), capture_values(config, binding)));
  for (const LiveBinding& binding : config.live_ports) {
    OptionValues given = binding.values;
    std::erase_if(given, [](const OptionValue& value) { return !value.given; });
    ports.push_back(group(binding.port.text(), std::move(given)));
  }
  if (!ports.empty()) all.push_back(group("ports", std::move(ports)));
  all.push_back(group("live", config.live_values));
  OptionValues workloads;
  for (const WorkloadConfig& workload : config.workloads) {
    OptionValues values = {plain("type", workload.type->name)};
    if (workload.given_hosts) add_texts(values, "hosts", workload.hosts);
    values.push_back(plain("start", format_duration(workload.start)));
    add_texts(values, "after", workload.after);
    if (workload.background) values.push_back(plain("background", "true"));
    append(values, workload.values);
    workloads.push_back(group(workload.name, std::move(values)));
  }
  if (!workloads.empty()) {
    all.push_back(group("workloads", std::move(workloads)));
    all.push_back(group("sim", config.sim_values));
  }
  if (!config.schedule_values.empty()) all.push_back(group("schedule", config.schedule_values));
  std::vector<std::string> expectations;
  for (const ExpectationText& expectation : config.expectations) expectations.push_back(expectation.text);
  add_texts(all, "expect", expectations);
  return all;
}

std::string effective_yaml(const RunConfig& config) {
  std::string out;
  print(effective_values(config), out, 0, false);
  return out;
}

}  // namespace rocebox::config
