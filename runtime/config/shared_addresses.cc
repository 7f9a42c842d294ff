// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/shared_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rocebox::config {
namespace {

// Devices by number, joined to networks by links; or to what MAC addresses reach, which ends at devices that route.
class Networks {
 public:
  Networks(const RunConfig& config, bool of_macs) : parents_(config.devices.size()) {
    std::iota(parents_.begin(), parents_.end(), 0u);
    std::unordered_map<std::string, unsigned> numbers;
    for (unsigned i = 0; i < config.devices.size(); i++) numbers.emplace(config.devices[i].name, i);
    const auto routes = [&](unsigned device) {
      const DeviceOptions* const whole = config.devices[device].whole();
      return whole && whole->routes();
    };
    for (const LinkConfig& link : config.links) {
      const unsigned ends[] = {numbers.at(link.between[0].device), numbers.at(link.between[1].device)};
      if (of_macs && (routes(ends[0]) || routes(ends[1]))) continue;
      parents_[of(ends[0])] = of(ends[1]);
    }
  }
  /// The network of a device: one of its devices.
  unsigned of(unsigned device) {
    while (parents_[device] != device) device = parents_[device] = parents_[parents_[device]];
    return device;
  }

 private:
  std::vector<unsigned> parents_;
};

// Who has an address, and by which option.
struct Owner {
  unsigned device;
  const char* option;
};

// Where the option of a device is written: of one that a topology places perhaps for all of them.
const Node* written(const Node& root, const DeviceConfig& device, const char* option) {
  const Node* node = root.find("devices");
  for (const std::string_view key :
       {std::string_view(device.name), std::string_view(device.kind->name), std::string_view(option)})
    node = node ? node->find(key) : nullptr;
  return node;
}

std::string mend(const DeviceConfig& device, const Owner& owner, const Node* option, const Node* first) {
  if (device.placed && option && first && option->place == first->place)
    return fmt::format("it is written for each of them: leave `{}` out, since the topology gives each its own",
                       owner.option);
  if (!option) return "it was made of what else they have: give each an `address` and a `mac` of its own";
  return fmt::format("give each its own `{}`", owner.option);
}

void tell(const RunConfig& config, const Node& root, const std::string& address, const std::vector<Owner>& owners,
          Mistakes& mistakes) {
  const DeviceConfig& first = config.devices[owners[0].device];
  const DeviceConfig& second = config.devices[owners[1].device];
  const Node* option = written(root, second, owners[1].option);
  const std::string more = owners.size() > 2 ? fmt::format(" and {} more", owners.size() - 2) : "";
  mistakes.add(option ? option->place : second.place,
               fmt::format("devices `{}`{} `{}`{}, which links join, have the address {}: {}", first.name,
                           more.empty() ? " and" : ",", second.name, more, address,
                           mend(second, owners[1], option, written(root, first, owners[0].option))));
}

}  // namespace

void refuse_shared_addresses(const RunConfig& config, const Node& root, Mistakes& mistakes) {
  Networks networks(config, false), segments(config, true);
  std::map<std::pair<unsigned, std::string>, std::vector<Owner>> all;
  std::vector<const decltype(all)::value_type*> shared;  // in the order of the configuration
  for (unsigned i = 0; i < config.devices.size(); i++) {
    if (!config.devices[i].whole()) continue;
    for (OwnAddress& address : config.devices[i].whole()->own_addresses()) {
      const auto [found, is_new] =
          all.try_emplace({(address.is_mac ? segments : networks).of(i), std::move(address.text)});
      std::vector<Owner>& owners = found->second;
      if (!owners.empty() && owners.back().device == i) continue;
      owners.push_back({i, address.option});
      if (owners.size() == 2) shared.push_back(&*found);
    }
  }
  // A MAC address may be made of the IP address: who shares both hears of the first.
  std::vector<std::vector<unsigned>> told;
  for (const auto* row : shared) {
    std::vector<unsigned> devices;
    for (const Owner& owner : row->second) devices.push_back(owner.device);
    if (std::ranges::find(told, devices) != told.end()) continue;
    tell(config, root, row->first.second, row->second, mistakes);
    told.push_back(std::move(devices));
  }
}

}  // namespace rocebox::config
