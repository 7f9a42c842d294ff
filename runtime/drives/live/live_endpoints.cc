// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/live_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/config/document.h"
#include "runtime/config/units.h"

namespace rocebox {
namespace {

// Names in one answer: as many as DPDK's 16 KiB always hold.
constexpr std::size_t kNamesPerAnswer = 100;

template <class Each>
void for_each_member(const Json& object, const char* key, Each each) {
  if (!object.contains(key)) return;
  for (const auto& [name, member] : object[key].items()) each(name, member);
}

std::vector<std::string> device_names(const Json& report) {
  std::vector<std::string> names;
  for_each_member(report, "devices", [&](const std::string& name, const Json&) { names.push_back(name); });
  return names;
}
std::vector<std::string> link_names(const Json& report) {
  std::vector<std::string> names;
  for_each_member(report, "links", [&](const std::string& name, const Json&) { names.push_back(name); });
  return names;
}
std::vector<std::string> names_in_devices(const Json& report, const char* key) {
  std::vector<std::string> names;
  for_each_member(report, "devices", [&](const std::string& device, const Json& member) {
    for_each_member(member, key, [&](const std::string& name, const Json&) { names.push_back(device + "." + name); });
  });
  return names;
}
std::vector<std::string> port_names(const Json& report) { return names_in_devices(report, "ports"); }
std::vector<std::string> kernel_names(const Json& report) { return names_in_devices(report, "kernels"); }

// {device, rest} of a name that is known to be `device.rest`; device names hold no dots, or are the longest that fits.
std::pair<std::string, std::string> parted(const Json& report, const std::string& name) {
  for (std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1))
    if (report["devices"].contains(name.substr(0, dot))) return {name.substr(0, dot), name.substr(dot + 1)};
  return {};
}

// {"count", "names"}, from the given number on.
Json list(const std::vector<std::string>& names, const std::string& parameters) {
  std::size_t first = 0;
  if (!parameters.empty()) {
    const auto number = config::parse_integer(parameters);
    if (!number || *number < 0)
      throw std::runtime_error("the parameter is the number of the first name, from 0: " + parameters);
    first = std::min(names.size(), static_cast<std::size_t>(*number));
  }
  const std::size_t last = std::min(names.size(), first + kNamesPerAnswer);
  Json some = Json::array();
  for (std::size_t i = first; i < last; i++) some.push_back(names[i]);
  return {{"count", names.size()}, {"names", std::move(some)}};
}

}  // namespace

LiveEndpoints::LiveEndpoints(const Live& live, std::string instance) : live_(live), instance_(std::move(instance)) {
  endpoints_.add("/rocebox/run", "The run as a whole. Takes no parameters",
                 [this](const std::string&) { return run(); });
  add("port", port_names, &LiveEndpoints::port);
  add("device", device_names, &LiveEndpoints::device);
  add("kernel", kernel_names, &LiveEndpoints::kernel);
  add("link", link_names, &LiveEndpoints::link);
}

void LiveEndpoints::add(const std::string& what, Names names, Part part) {
  endpoints_.add("/rocebox/" + what + "s", fmt::format("Names of {}s. Parameters: number of the first", what),
                 [this, names](const std::string& parameters) {
                   refresh();
                   return list(names(report_), parameters);
                 });
  endpoints_.add("/rocebox/" + what, fmt::format("Counters of a {}. Parameters: name", what),
                 [this, what, names, part](const std::string& name) {
                   refresh();
                   const std::vector<std::string> all = names(report_);
                   if (std::find(all.begin(), all.end(), name) == all.end())
                     throw std::runtime_error(
                         name.empty()
                             ? fmt::format("name a {}: /rocebox/{}s lists them", what, what)
                             : fmt::format("there is no {} `{}`{}", what, name, config::suggestion(name, all)));
                   Json answer = {{what, name}, {"elapsed_ns", report_["run"]["elapsed_ns"]}};
                   answer.update((this->*part)(name));
                   return answer;
                 });
}

void LiveEndpoints::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (!report_.is_null() && now - made_ < kFresh) return;
  report_ = live_.report();
  made_ = now;
}

Json LiveEndpoints::run() {
  refresh();
  Json answer = {{"instance", instance_}};
  for (const char* key : {"config", "seed"}) answer[key] = report_[key];
  answer.update(report_["run"]);
  answer["shards"] = report_["shards"];
  return answer;
}

Json LiveEndpoints::port(const std::string& name) {
  const auto [device, port] = parted(report_, name);
  Json answer;
  for (const Json& row : report_["ports"])
    if (row["port"] == name) answer["live"] = row;
  if (answer.contains("live")) answer["live"].erase("port");
  answer["device"] = report_["devices"][device]["ports"][port];
  return answer;
}

Json LiveEndpoints::device(const std::string& name) {
  const Json& device = report_["devices"][name];
  Json answer;
  for (const char* key : {"counters", "latency"}) answer[key] = device[key];
  answer["kinds"] = kinds(false, name, "");
  return answer;
}

Json LiveEndpoints::kernel(const std::string& name) {
  const auto [device, kernel] = parted(report_, name);
  Json answer = report_["devices"][device]["kernels"][kernel];
  answer["kinds"] = kinds(false, device, kernel);
  return answer;
}

Json LiveEndpoints::link(const std::string& name) {
  Json answer = report_["links"][name];
  answer["kinds"] = kinds(true, name, "");
  return answer;
}

Json LiveEndpoints::kinds(bool is_link, const std::string& name, const std::string& kernel) const {
  const Testbed& testbed = live_.testbed();
  Json kinds = Json::object();
  for (unsigned i = 0; i < testbed.device_count(); i++) {
    if (testbed.is_link(i) != is_link || testbed.device(i).name() != name) continue;
    testbed.device(i).books().for_each_counter([&](const CounterView& counter) {
      const bool asked_for =
          is_link || (counter.port.empty() && counter.kernel == kernel);  // a link tells its kernel's
      if (asked_for && counter.kind != CounterKind::kCount) kinds[std::string(counter.name)] = kind_name(counter.kind);
    });
  }
  return kinds;
}

}  // namespace rocebox
