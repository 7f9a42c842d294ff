// SPDX-License-Identifier: BSD-3-Clause
// The top of the configuration as declared fields: the one source for reading, schema and dump.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/fields_reader.h"
#include "runtime/config/live_fields.h"
#include "runtime/config/sim_fields.h"
#include "runtime/kernel/kernel_options.h"
#include "runtime/kernel/workload.h"

namespace rocebox::config {

class TopFields {
 public:
  struct KernelRow {
    std::string name, type_name;
    const Component* type = nullptr;
    std::shared_ptr<KernelOptions> options{};
    OptionValues values{};
  };
  struct Device {
    std::string name, pipeline;
    bool placed = false;  ///< by a topology
    int kind = 0;         ///< 0: a bump, or as `whole` says
    KernelRow whole{};    ///< the device itself, of another kind; type null: a bump
    std::vector<std::string> path;
    std::vector<KernelRow> kernels;
  };
  struct Link {
    std::string name;
    std::vector<std::string> between;
    KernelRow kernel{};
  };
  struct Workload {
    std::string name, type_name;
    const Component* type = nullptr;
    std::shared_ptr<WorkloadOptions> options{};
    OptionValues values{};
    std::vector<std::string> hosts, after;
    std::vector<std::size_t> host_items;  ///< of the list, of each host
    bool hosts_good = true;               ///< none of them was left out
    Nanos start = 0;
    bool background = false;
  };
  /// What changes while the run goes on.
  struct ScheduleRow {
    std::string name;
    Nanos at = 0;
  };
  struct PortRow {
    std::string name;
    std::vector<std::string> in;
    std::string filter, out, pace = "as_captured";
    std::int64_t loop = 1;
    LivePortOptions live;
    OptionValues live_values{};
  };

  /// What a topology says to a device of that name; null: nothing.
  using PlacementOf = std::function<const Placement*(const std::string& device)>;
  explicit TopFields(const Registry& registry, PlacementOf placement_of = nullptr)
      : registry_(registry), placement_of_(std::move(placement_of)) {}

  std::int64_t seed = 1;
  Nanos drain = 10 * kSecond;
  std::int64_t pool_headers = 0, pool_small = 16384, pool_large = 4096, pool_giant = 64;
  std::vector<std::string> plugins, expect;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<PortRow> ports;
  std::vector<Workload> workloads;
  std::vector<ScheduleRow> schedule;
  LiveOptions live;
  SimConfig sim;
  OptionValues live_values, sim_values;

  /// Shows every field to `f`; reading appends to the vectors. Kernel options are shown too, checked against their
  /// type.
  void fields(ConfigFields& f);
  /// The same in two steps, between which plugins are loaded: what they bring are words of the rest.
  void fields_to_plugins(ConfigFields& f);
  void fields_from_devices(ConfigFields& f);
  /// Those of a device that a pipeline file may have: all but `pipeline:`.
  void pipeline_fields(ConfigFields& f, Device& device);
  /// Options of `row.type` of which none was written.
  static void read_defaults(KernelRow& row, const Registry& registry);

 private:
  void device_fields(ConfigFields& f, Device& device);
  void kernel_fields(ConfigFields& f, KernelRow& row);
  void workload_fields(ConfigFields& f, Workload& workload);
  void fill(ConfigFields& f, const KernelRow& named, KernelRow& row);
  const Registry& registry_;
  PlacementOf placement_of_;
};

}  // namespace rocebox::config
