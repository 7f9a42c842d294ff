// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/commands.h"
#include "runtime/packet/eal.h"
#include "runtime/packet/memory.h"

namespace rocebox::cli {

Registry make_registry(const std::vector<std::string>& plugins) {
  Registry registry;
  for (const std::string& plugin : plugins) registry.load_plugin(plugin);
  return registry;
}

config::RunConfig load_or_throw(const std::string& file, Registry& registry) {
  config::Mistakes mistakes(file);
  config::RunConfig config = config::load(file, registry, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  return config;
}

void start_for(const config::RunConfig& config) {
  try {
    config.pool.require_memory(available_memory_bytes());
  } catch (const ConfigError& error) {
    throw ConfigError(config.file + ": " + error.what());
  }
  start_eal(config.pool.mebibytes());
}

}  // namespace rocebox::cli
