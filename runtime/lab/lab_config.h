// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a lab: hosts, appliances, wires between them, traffic, and what is expected. Plain data,
// checked.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/lab/lab_fields.h"

namespace rocebox::lab {

/// A machine of the lab: a network namespace, or a virtual machine whose QEMU lives in one.
struct HostConfig {
  std::string name;
  config::Place place;
  std::vector<Interface> interfaces;
  std::vector<std::string> routes, sysctls;
  std::optional<VirtualMachine> machine = {};
};

/// One `rocebox run`.
struct ApplianceConfig {
  std::string name;
  config::Place place;
  std::string file;  ///< of its configuration; empty: it stands in the lab's own
  std::shared_ptr<Registry> registry;
  config::RunConfig config;
  std::string cores;
  Bind bind = Bind::kAfPacket;
};

/// One end of a wire.
struct End {
  std::string node;       ///< host or appliance
  std::string interface;  ///< its name in there
  std::string port;       ///< of an appliance: `device.port`; empty for a host
  bool is_host() const { return port.empty(); }
  bool operator==(const End&) const = default;
};

struct WireConfig {
  std::string text;
  config::Place place;
  End ends[2];
  bool tap = false;      ///< from a TAP of an appliance to a host
  bool machine = false;  ///< from the TAP of a virtual machine; when neither: a veth pair
};

struct TrafficStep : Traffic {
  config::Place place;
};

struct LabConfig {
  std::string file;  ///< what stands for it in messages and reports
  std::string path;  ///< what was read; `-` is standard input
  std::string name;
  std::vector<HostConfig> hosts;
  std::vector<ApplianceConfig> appliances;
  std::vector<WireConfig> wires;
  std::vector<TrafficStep> traffic;
  std::vector<config::ExpectationText> expectations;

  const HostConfig* host(std::string_view name) const;
  const ApplianceConfig* appliance(std::string_view name) const;
  bool is_machine(const End& end) const;
  const Interface& interface(const End& end) const;
  /// The MTU of a wire: that of its host's interface; between appliances, the largest of the lab.
  std::uint64_t mtu(const WireConfig& wire) const;
  /// "FILE:LINE:COLUMN".
  std::string place_text(config::Place place) const;
};

/// Whether a document is a lab, not a configuration for `run` and `replay`: it has `lab:`.
bool is_lab(const config::Node& root);

/// Checks the configuration of a lab, which was read from `path`, and reads those of its appliances. Throws ConfigError
/// with every mistake, one a line. `plugins`: to load for every appliance.
LabConfig load(const std::string& text, const std::string& path, const std::vector<std::string>& plugins);
/// The same, with mistakes as a list; `follow` false: files that it names are not looked at.
LabConfig load_text(std::string_view text, const std::string& file, const std::vector<std::string>& plugins,
                    config::Mistakes& mistakes, bool follow = true);

/// The name of the lab that `argument` means: the `lab:` of a file, whatever else stands in it, or the name itself.
/// Throws ConfigError.
std::string lab_name(const std::string& argument);
/// Throws ConfigError when a lab cannot have that name.
void require_lab_name(const std::string& name, const std::string& by);

/// JSON Schema (draft 2020-12) of a lab with the kernels of `registry`.
nlohmann::ordered_json schema(const Registry& registry);

}  // namespace rocebox::lab
