// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/testbed.h"

#include <algorithm>

#include "runtime/engine/pipeline_device.h"

namespace rocebox {
namespace {

// A wire is a bump of its own with one kernel: port 0 is its first end.
std::unique_ptr<Device> make_link(const config::LinkConfig& link, Pool& pool, std::uint64_t seed) {
  std::vector<KernelPlan> plans;
  plans.push_back({link.kernel.type->name,
                   link.kernel.type->name,
                   Shape::kTwoSided,
                   {{Edge::kOutside, 0}, {Edge::kOutside, 1}},
                   [&link](Stats& stats) { return link.kernel.options->make(stats); }});
  return std::make_unique<PipelineDevice>(link.name, std::vector<std::string>{"a", "b"},
                                          std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, seed);
}

}  // namespace

std::unique_ptr<Device> make_device(const config::DeviceConfig& device, Pool& pool, std::uint64_t seed,
                                    Hardware hardware, config::Place* making) {
  std::vector<KernelPlan> plans;
  for (std::size_t i = 0; i < device.kernels.size(); i++) {
    const config::KernelConfig& kernel = device.kernels[i];
    plans.push_back({kernel.name, kernel.type->name, kernel.options->shape(), device.wiring.outputs[i],
                     [&kernel, hardware, making](Stats& stats) {
                       if (making) *making = kernel.place;
                       const KernelOptions& options = *kernel.options;
                       const bool strict = hardware == Hardware::kStrict && options.models_hardware();
                       return strict ? options.make_strict(stats) : options.make(stats);
                     }});
  }
  return std::make_unique<PipelineDevice>(device.name, device.wiring.ports, device.wiring.inputs, std::move(plans),
                                          pool, seed);
}

Testbed::Testbed(const config::RunConfig& config, Pool& pool, std::uint64_t seed, Fabric::Output output,
                 unsigned batch_max)
    : fabric_(std::move(output)) {
  make_all(config, pool, seed);
  for (unsigned i = 0; i < devices_.size(); i++) numbers_.emplace(devices_[i]->name(), i);
  for (auto& device : devices_) {
    device->set_batch_max(batch_max);
    fabric_.add(*device);
  }
  const std::size_t first_link = devices_.size() - links_.size();
  for (std::size_t i = 0; i < links_.size(); i++)
    for (Port side = 0; side < 2; side++)
      fabric_.join({static_cast<unsigned>(first_link + i), side}, port(links_[i]->between[side]));
}

// All mistakes are told, but of what stands in one place, as of hosts of a topology, one.
void Testbed::make_all(const config::RunConfig& config, Pool& pool, std::uint64_t seed) {
  config::Mistakes mistakes = config.further_mistakes();
  std::vector<config::Place> refused;
  const auto was_refused = [&](const config::KernelConfig& kernel) {
    return std::ranges::find(refused, kernel.place) != refused.end();
  };
  const auto refuse = [&](config::Place place, const ConfigError& error) {
    mistakes.add(place, error.what());
    refused.push_back(place);
  };
  for (const config::DeviceConfig& device : config.devices) {
    if (std::ranges::any_of(device.kernels, was_refused)) continue;
    config::Place making = device.place;
    try {
      devices_.push_back(make_device(device, pool, seed, Hardware::kAsConfigured, &making));
    } catch (const ConfigError& error) {
      refuse(making, error);
    }
  }
  for (const config::LinkConfig& link : config.links) {
    links_.push_back(&link);
    if (was_refused(link.kernel)) continue;
    try {
      devices_.push_back(make_link(link, pool, seed));
    } catch (const ConfigError& error) {
      refuse(link.kernel.place, error);
    }
  }
  if (!mistakes.none()) throw ConfigError(mistakes.text());
}

unsigned Testbed::number(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) throw ConfigError("there is no device `" + name + "`");  // load() has checked all names
  return found->second;
}

FabricPort Testbed::port(const config::PortName& name) const {
  const unsigned device = number(name.device);
  const auto& ports = devices_[device]->ports();
  return {device, static_cast<Port>(std::find(ports.begin(), ports.end(), name.port) - ports.begin())};
}

void Testbed::tap_joined(const config::RunConfig& config, const Fabric::Tap& write) {
  for (const config::CaptureBinding& binding : config.captures)
    if (binding.joined) fabric_.tap(port(binding.port), write);
}

void Testbed::report_sum(const std::vector<const Testbed*>& shards, Json& report, Detail detail) {
  const Testbed& any = *shards[0];
  const std::size_t first_link = any.devices_.size() - any.links_.size();
  for (std::size_t i = 0; i < any.devices_.size(); i++) {
    const std::string& name = any.devices_[i]->name();
    Json device;
    JsonReport writer(device);
    for (const Testbed* shard : shards) shard->devices_[i]->books().report(writer, detail);
    if (i < first_link) {
      report["devices"][name] = std::move(device);
      continue;
    }
    Json& link = report["links"][name];
    const config::LinkConfig& written = *any.links_[i - first_link];
    link["between"] = written.between[0].text() + " <-> " + written.between[1].text();
    Json& kernel = device["kernels"][written.kernel.type->name];
    kernel.erase("type");
    link.update(kernel);
    link["counters"]["packets_held"] = device["counters"]["packets_held"];
  }
}

}  // namespace rocebox
