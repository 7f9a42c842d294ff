// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/switch.h"

#include "switch_model/datapath.h"

namespace rocebox {
namespace switch_model {
namespace {

constexpr Example kExamples[] = {{"a learning switch with slow ports, marks and lossless classes",
                                  R"(strict: true
pipes: 2
traffic_manager:
  rate: 1Gbps
  rates: [{ports: [p2], rate: 100Mbps}]
  buffer: 64KiB
  packets: 256
  class_of: dscp
  scheduler: round_robin
  ecn: {min: 4KiB, max: 16KiB, probability: 50%}
  pfc: {classes: [0, 3], xoff: 12KiB, xon: 6KiB}
forward:
  mac_age: 50ms
  mac_entries: 16
)"},
                                 {"static addresses with equal paths, groups, unknown ones dropped",
                                  R"(strict: true
forward:
  learning: false
  unknown: drop
  macs:
    - {mac: 02:00:00:00:00:02, ports: [p1, p2, p3]}
    - {mac: 02:00:00:00:00:01, group: 5}
multicast_groups:
  - {group: 5, ports: [p0, p1, p3]}
)"},
                                 {"packets that the switch makes, among those that come in, through slow ports",
                                  R"(strict: true
pipes: 2
traffic_manager: {rate: 10Gbps}
forward: {macs: [{mac: 02:00:00:00:00:99, ports: [p1]}]}
packet_generator:
  - {port: p0, every: 20us, times: 8, batches: 2, packets: 70, packet_gap: 0, batch_gap: 3us, packet: {destination_mac: 02:00:00:00:00:99}}
  - {port: p3, start: 7us, packets: 60, packet_gap: 2us, packet: {hex: '0200 0000 0001 0200 0000 0009 88b5 00000000'}}
)"},
                                 {nullptr, nullptr}};

// Those of a switch: of its ports, its programs and its traffic manager.
class SwitchOptions final : public DeviceOptions {
 public:
  explicit SwitchOptions(const Registry& registry) : config_(registry) {}
  void fields(Fields& fields) override { config_.fields(fields); }
  const std::vector<std::string>& ports() const override { return config_.info.ports; }
  void place(const Placement& placement) override { config_.place(placement); }
  bool routes() const override { return config_.info.routes; }
  std::uint64_t port_rate(Port port) const override { return config_.traffic_manager.rate_of(config_.info, port); }
  const char* one_core_because() const override { return "whose tables and buffer are one"; }
  std::unique_ptr<Kernel> make(Stats& stats) const override {
    return std::make_unique<Datapath>(config_, stats, config_.strict);
  }
  std::unique_ptr<Kernel> make_strict(Stats& stats) const override {
    return std::make_unique<Datapath>(config_, stats, true);
  }
  bool models_hardware() const override { return true; }
  std::unique_ptr<Change> change(const Kernel& running) const override {
    return static_cast<const Datapath&>(running).prepare(config_);
  }
  std::uint64_t eal_bytes() const override {
    // What DPDK takes for small tables: hundreds of switches that route to a few prefixes have next to none.
    constexpr std::uint64_t kFew = 64 << 10;
    const ProgramOptions* only = config_.programs.size() == 1 ? config_.find(config_.programs[0]) : nullptr;
    const bool few = only && only->eal_bytes() > 0 && only->eal_bytes() <= kFew;
    std::uint64_t bytes = std::uint64_t{few ? 2u : 16u} << 20;
    for (const std::string& program : config_.programs)
      if (const ProgramOptions* options = config_.find(program)) bytes += options->eal_bytes();
    return bytes;
  }
  bool makes_packets() const override { return !config_.applications.empty(); }

 private:
  SwitchConfig config_;
};

}  // namespace
}  // namespace switch_model

Component switch_component() {
  return device_kind<switch_model::SwitchOptions>(
      "switch", "a Tofino-style switch: programs over match-action stages, and a traffic manager",
      switch_model::kExamples);
}

}  // namespace rocebox
