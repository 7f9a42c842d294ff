// SPDX-License-Identifier: BSD-3-Clause
// Testbed: the devices and links of a configuration, made and joined in a fabric.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/engine/fabric.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// Whether what models hardware is held to what that can do, or as its options say.
enum class Hardware : std::uint8_t { kAsConfigured, kStrict };

/// Makes one device of a configuration that has been checked; throws ConfigError for what only making it shows, and has
/// then said in `making` where the options stand with which that came.
std::unique_ptr<Device> make_device(const config::DeviceConfig& device, Pool& pool, std::uint64_t seed,
                                    Hardware hardware = Hardware::kAsConfigured, config::Place* making = nullptr);

class Testbed {
 public:
  /// Makes every device. Throws ConfigError with what only that shows, each with its place. `output` takes what leaves
  /// by ports that no link joins. `batch_max` is Pipeline::set_batch_max of every device; one packet at a time is the
  /// meaning of pipelines that fork and merge.
  Testbed(const config::RunConfig& config, Pool& pool, std::uint64_t seed, Fabric::Output output,
          unsigned batch_max = 1);

  Fabric& fabric() { return fabric_; }
  const Fabric& fabric() const { return fabric_; }
  FabricPort port(const config::PortName& name) const;
  /// The device of that name, which the configuration has.
  unsigned number(const std::string& name) const;
  Device& device(unsigned number) { return *devices_[number]; }
  const Device& device(unsigned number) const { return *devices_[number]; }
  /// Devices of the configuration first, then its links.
  unsigned device_count() const { return static_cast<unsigned>(devices_.size()); }

  bool is_link(unsigned number) const { return number >= devices_.size() - links_.size(); }

  /// Has `write` look at what leaves by ports that a link joins and that have a capture all the same.
  void tap_joined(const config::RunConfig& config, const Fabric::Tap& write);

  /// Adds `devices` and `links`; see Device::report.
  void report(Json& report, Detail detail = Detail::kAll) const { report_sum({this}, report, detail); }
  /// The same of the shards of a run, each of which has a testbed of the same configuration: what is counted is summed
  /// up as its kind says (see JsonReport).
  static void report_sum(const std::vector<const Testbed*>& shards, Json& report, Detail detail);

 private:
  void make_all(const config::RunConfig& config, Pool& pool, std::uint64_t seed);

  std::vector<std::unique_ptr<Device>> devices_;
  std::unordered_map<std::string, unsigned> numbers_;  // by name
  std::vector<const config::LinkConfig*> links_;       // devices_ behind the first of them are links
  Fabric fabric_;                                      // after devices_: it refers to them
};

}  // namespace rocebox
