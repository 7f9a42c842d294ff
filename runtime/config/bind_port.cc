// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/config.h"

namespace rocebox::config {

void bind_port(RunConfig& config, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals + 1 == argument.size())
    throw ConfigError(fmt::format("--port {}: write PORT=BINDING, such as left='{{af_packet: eth0}}'", argument));
  LiveBinding binding;
  std::string why;
  if (!resolve_port(config, argument.substr(0, equals), binding.port, why))
    throw ConfigError(fmt::format("--port {}: {}", argument, why));
  for (const LinkConfig& link : config.links)
    if (link.between[0] == binding.port || link.between[1] == binding.port)
      throw ConfigError(fmt::format("--port {}: the port is joined by link `{}`", argument, link.name));
  Mistakes mistakes("--port " + argument.substr(0, equals));
  const Node written = parse_yaml(std::string_view(argument).substr(equals + 1), mistakes);
  FieldsReader reader(&written, mistakes);
  binding.live.fields(reader);
  reader.finish();
  binding.values = reader.values();
  if (mistakes.none() && binding.live.bindings != 1)
    mistakes.add({}, fmt::format("bound to {}: give one binding, such as {{af_packet: eth0}}",
                                 binding.live.bindings ? "more than one thing" : "nothing"));
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  const auto same = [&](const auto& other) { return other.port == binding.port; };
  std::erase_if(config.captures, same);
  if (std::any_of(config.live_ports.begin(), config.live_ports.end(),
                  [&](const LiveBinding& other) { return same(other) && !other.place.is_known(); }))
    throw ConfigError(fmt::format("--port {}: port `{}` is given twice", argument, binding.port.text()));
  std::erase_if(config.live_ports, same);
  config.live_ports.push_back(std::move(binding));
}

}  // namespace rocebox::config
