// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/lab_skeleton.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/cli/commands.h"
#include "runtime/drives/live/live.h"
#include "runtime/process/eal.h"
#include "runtime/process/memory.h"

namespace rocebox::cli {
namespace {

constexpr const char* kMistake = "mistake";

// The configuration with every port that is bound to something bound to nothing instead.
config::RunConfig with_null_ports(const lab::LabConfig& lab, const lab::ApplianceConfig& appliance) {
  std::vector<std::string> ports;
  for (const config::LiveBinding& binding : appliance.config.live_ports) ports.push_back(binding.port.text());
  for (const lab::WireConfig& wire : lab.wires)
    for (const lab::End& end : wire.ends)
      if (end.node == appliance.name && std::find(ports.begin(), ports.end(), end.port) == ports.end())
        ports.push_back(end.port);
  config::RunConfig config = appliance.config;
  for (const std::string& port : ports) config::bind_port(config, port + "={net_null: {}}");
  // Queues of ports that lead nowhere take packets which the real ones may not.
  config.pool.small += static_cast<std::uint32_t>(ports.size()) * 4096;
  return config;
}

Json skeleton_of(const lab::LabConfig& lab, const lab::ApplianceConfig& appliance) {
  const config::RunConfig config = with_null_ports(lab, appliance);
  const std::vector<unsigned> cores = choose_cores(appliance.cores, config.live);
  start_eal(live_options(config, cores));
  Pool pool = make_pool(config);
  const Live live(config, pool, cores);
  return live.report();
}

// In the child: what goes to the parent, one JSON document.
[[noreturn]] void answer(const lab::LabConfig& lab, const lab::ApplianceConfig& appliance, int descriptor) {
  Json result;
  try {
    result = skeleton_of(lab, appliance);
  } catch (const std::exception& error) {
    result = {{kMistake, error.what()}};
  }
  std::FILE* stream = fdopen(descriptor, "w");
  const std::string text = result.dump(-1, ' ', false, Json::error_handler_t::replace);
  const bool written = stream && std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  std::_Exit(written && std::fflush(stream) == 0 ? 0 : 1);
}

std::string read_all(int descriptor) {
  std::string text;
  char bytes[65536];
  for (ssize_t got; (got = read(descriptor, bytes, sizeof bytes)) != 0;) {
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  return text;
}

}  // namespace

Json appliance_skeletons(const lab::LabConfig& config) {
  Json all = Json::object();
  for (const lab::ApplianceConfig& appliance : config.appliances) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error(fmt::format("no process: {}", std::strerror(errno)));
    if (child == 0) answer(config, appliance, ends[1]);
    close(ends[1]);
    Json report = Json::parse(read_all(ends[0]), nullptr, false);
    close(ends[0]);
    waitpid(child, nullptr, 0);
    const std::string place = config.place_text(appliance.place);
    if (!report.is_object())
      throw std::runtime_error(fmt::format("{}: appliance `{}` cannot be tried out", place, appliance.name));
    if (report.contains(kMistake))
      throw ConfigError(
          fmt::format("{}: appliance `{}`: {}", place, appliance.name, report[kMistake].get<std::string>()));
    all[appliance.name] = std::move(report);
  }
  return all;
}

}  // namespace rocebox::cli
