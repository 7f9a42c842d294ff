// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a run: what exists, how it is joined, what is expected. Plain data, checked.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/config/live_fields.h"
#include "runtime/config/path.h"
#include "runtime/config/settings.h"
#include "runtime/config/sim_fields.h"
#include "runtime/config/text_file.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/kernel/workload.h"
#include "runtime/packet/pool.h"

namespace rocebox::config {

/// A kernel in a device, a whole device, or a link: its component, and the options that it is made of.
struct KernelConfig {
  std::string name;
  const Component* type = nullptr;
  std::shared_ptr<const KernelOptions> options;
  OptionValues values;  ///< of these options
  Place place{};        ///< of what is written of them, or of what names it
};
/// A bump has a path of kernels; another kind is one kernel, whose inputs and outputs are its ports.
struct DeviceConfig {
  std::string name;
  std::string pipeline;  ///< file that path and kernels are from; empty: they were written in the configuration
  Place place;
  const Component* kind = nullptr;  ///< null: a bump
  std::vector<std::string> path;
  std::vector<KernelConfig> kernels;
  Wiring wiring;
  bool placed = false;  ///< by a topology

  /// The options of a device that is no bump; null for a bump.
  const DeviceOptions* whole() const {
    return kind && !kernels.empty() ? static_cast<const DeviceOptions*>(kernels[0].options.get()) : nullptr;
  }
};

/// A device port as `device.port`.
struct PortName {
  std::string device, port;
  std::string text() const { return device + "." + port; }
  bool operator==(const PortName&) const = default;
};

/// The captures that a port is bound to, in replay and live.
struct CaptureBinding {
  PortName port;
  std::vector<std::string> in;             ///< files, merged by time; `-` is standard input
  std::string filter;                      ///< libpcap filter over `in`; empty: everything
  std::string out;                         ///< file; empty: what leaves is counted only; `-` is standard output
  std::string in_place{}, filter_place{};  ///< who says so, for messages: `FILE:LINE:COLUMN`, or an option
  double pace = 1;                         ///< live: times as fast as captured; 0: as fast as packets are taken
  std::int64_t loop = 1;                   ///< live: how often `in` is sent; 0: until the run is stopped
  Place place{};                           ///< of the port's row
  bool joined = false;                     ///< by a link: `out` gets what leaves by the port for the link
};

/// What a port is bound to in the live drive.
struct LiveBinding {
  PortName port{};
  LivePortOptions live{};
  Place place{};  ///< unknown: the command line (--port) says so
  OptionValues values{};
};

struct LinkConfig {
  std::string name;
  PortName between[2];
  KernelConfig kernel;                ///< of the registry's wire()
  std::uint64_t bits_per_second = 0;  ///< at which the devices at its ends send, as a topology says; 0: not known
  unsigned cost = 1;                  ///< in a topology's routes, which go where the sum of these is least
  bool placed = false;                ///< by a topology
  OptionValues written{};             ///< of a placed one, for it alone
};

/// What hosts do in the virtual and the live drive.
struct WorkloadConfig {
  std::string name;
  Place place;
  const Component* type = nullptr;
  std::shared_ptr<const WorkloadOptions> options;
  OptionValues values;             ///< of these options
  std::vector<std::string> hosts;  ///< devices
  bool given_hosts = false;        ///< else those of the topology
  Nanos start = 0;                 ///< behind the beginning of the run, or the end of the last of `after`
  std::vector<std::string> after;  ///< other workloads
  bool background = false;         ///< the run does not wait for it
};

/// Options of a kernel or link from a time on.
struct ScheduledChange {
  std::string name;  ///< of the entry of `schedule:`
  Place place;
  Nanos at;                                      ///< from the beginning of the run
  unsigned device, kernel;                       ///< devices first, then links; of that device
  std::shared_ptr<const KernelOptions> options;  ///< all of them, changed or not
};

/// A condition over the report, as written.
struct ExpectationText {
  std::string text;
  Place place;
};

/// Where a configuration was read from. A pipe is read once, and what stands in the command line does not change.
enum class ConfigOrigin : std::uint8_t { kFile, kPipe, kArguments };

struct RunConfig {
  std::string file;  ///< what stands for it in messages and reports
  std::string path;  ///< what was read; `-` is standard input
  ConfigOrigin origin = ConfigOrigin::kFile;
  std::vector<std::string> words;         ///< of ConfigOrigin::kArguments: what places mean, see place_text()
  std::vector<std::string> settings;      ///< that gave values to it: what places mean, too
  std::vector<std::string> notes;         ///< of what is written and has no effect, each with its place
  std::vector<std::string> plugin_files;  ///< loaded for it, whoever names them
  std::int64_t seed = 1;
  Nanos drain = 10 * kSecond;
  PoolSizes pool;
  std::vector<std::string> plugins;
  std::vector<DeviceConfig> devices;
  std::vector<CaptureBinding> captures;
  std::vector<LiveBinding> live_ports;
  LiveOptions live;
  OptionValues live_values;
  Place metrics_place{};  ///< of what says where metrics are served
  std::vector<LinkConfig> links;
  std::vector<WorkloadConfig> workloads;
  SimConfig sim;
  OptionValues sim_values;
  std::vector<ScheduledChange> schedule;  ///< by time
  OptionValues schedule_values;
  std::vector<std::string> topology_hosts;                    ///< devices that a topology has placed as hosts
  std::vector<std::pair<std::string, Placement>> placements;  ///< of all devices that it has placed
  OptionValues topology_values, topology_devices;             ///< what was written: of it, and for single devices of it
  std::vector<ExpectationText> expectations;
  std::vector<std::pair<std::string, std::string>> input_files;  ///< that options name: paths, and what each is

  /// Who says what stands at a place of this configuration.
  std::string place_text(Place place) const { return config::place_text(file, place, words, settings); }
  /// For what is found once it is loaded.
  Mistakes further_mistakes() const { return Mistakes(file, words, settings); }
  /// Who binds a port: the configuration, or the command line beside it.
  std::string bound_by(Place place) const { return place.is_known() ? place_text(place) : file + ": --port"; }
};

/// Reads and checks a configuration; paths in it become relative to its folder. Plugins that it names are loaded
/// into `registry`. Mistakes are added; the result is usable only when there are none. `mistakes` has shown_file(path).
RunConfig load(const std::string& path, Registry& registry, Mistakes& mistakes, Pipes pipes = Pipes::kRefused,
               const std::vector<Setting>& settings = {});
/// The same from a text, for tests and fuzzing; `follow` false: no other file is opened; plugins are not
/// loaded, and pipelines that are not a part of the text are a mistake.
RunConfig load_text(std::string_view text, const std::string& file, Registry& registry, Mistakes& mistakes,
                    bool follow = true, const std::vector<Setting>& settings = {});

/// The same from a mapping that may be a part of the document `file`: places and paths are those of the document.
RunConfig load_node(const Node& root, const std::string& file, Registry& registry, Mistakes& mistakes,
                    bool follow = true);

/// Finds the port that `name` means: `device.port`, or `port` when one device has such a port. Explains in `why`
/// when there is none.
bool resolve_port(const RunConfig& config, std::string_view name, PortName& port, std::string& why);

/// The ports of devices that no binding and no link names.
std::vector<PortName> unbound_ports(const RunConfig& config);

/// Binds a port to something live, in place of what the configuration says: `PORT=BINDING`, BINDING as it would stand
/// under `ports:`, such as `{af_packet: eth0}`. Throws ConfigError.
void bind_port(RunConfig& config, const std::string& argument);

/// Network interfaces, NICs and the like that two ports of a run would share: each would take the other's packets, or
/// every packet would come in twice. The mistakes have the place of the second.
void refuse_shared_interfaces(const RunConfig& config, Mistakes& mistakes);

/// MiB of memory that EAL must be given: for the pool, and for what devices keep there.
std::uint64_t eal_mebibytes(const RunConfig& config);

/// The effective configuration as YAML: every option that counts, with its value, groups and lists as far as they were
/// written; loads to the same configuration.
std::string effective_yaml(const RunConfig& config);

/// The options that a configuration has at its top level.
std::vector<std::string> run_options(const Registry& registry);

/// JSON Schema (draft 2020-12) of the configuration with the kernels of `registry`.
nlohmann::ordered_json schema(const Registry& registry);

}  // namespace rocebox::config
