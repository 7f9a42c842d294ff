// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/themis.h"

#include <fmt/format.h>

#include "kernels/themis/egress.h"
#include "kernels/themis/ingress.h"
#include "kernels/themis/trial.h"

namespace rocebox {
namespace themis {
namespace {

class Themis {
 public:
  using Config = themis::Config;

  Themis(const Config& config, const switch_model::Build& build)
      : config_(config),
        info_(build.info),
        count_(build.stats),
        shared_(config, build),
        control_(config, build.info,
                 {shared_.ingress_qps, shared_.egress_qps, shared_.source, shared_.destination, shared_.hits,
                  shared_.is_host},
                 count_),
        ingress_(config, build, shared_, control_, count_),
        egress_(build, shared_, control_, count_) {
    if (shared_.spray == Spray::kOff) build.layout.unused_program("`spray: off`");
  }

  static constexpr bool kOwnsWhatItWrites = true;  // mirrors, which share nothing
  static constexpr std::array<std::string_view, 9> kChangeable = {
      "paths",         "path_map",   "ooo_threshold", "avoidance_window", "reroute_timeouts",
      "stash_timeout", "qp_timeout", "learning",      "connections"};
  void check_change(const Config& config) const {
    if (config.paths_count() > shared_.paths_max)
      throw ConfigError(fmt::format("themis: `paths: {}` is more than there is room for: `paths_max: {}` at the start",
                                    config.paths, shared_.paths_max));
  }
  void change(const Config& config) {
    if (config.paths_count() != shared_.source.paths()) count_.paths_changed.add();
    shared_.source.change(config.paths_count(), static_cast<std::uint32_t>(config.avoidance_window),
                          config.reroute_timeouts);
    shared_.destination.change(config.paths_count(), static_cast<std::uint32_t>(config.ooo_threshold));
    ingress_.set_path_map(config);
    control_.change(config);
  }

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    ingress_.run(access, pass);
  }
  template <class Access>
  void egress(Access& access, Pass& pass) {
    egress_.run(access, pass);
  }
  void on_timer(Pass& pass, Timer& timer) { control_.on_timer(pass, timer); }
  void report(Report& report) const {
    report.setting("paths", static_cast<std::int64_t>(shared_.source.paths()));
    control_.report(report);
  }
  void stimuli(std::vector<Stimulus>& all) const {
    control_.stimuli(all);
    add_trial(config_, info_, all);
  }

 private:
  const Config config_;  // as it was at the start, for stimuli
  const switch_model::SwitchInfo& info_;
  Counters count_;
  Shared shared_;
  ControlPlane control_;
  Ingress ingress_;
  Egress egress_;
};

constexpr char kNeeds[] = "{spray: 'off'}";  // else it must know which ports lead to NICs

constexpr Example kThemisExamples[] = {{"a ToR that sprays by UDP source port, with little state",
                                        R"(strict: true
pipes: 2
programs: [forward, themis]
themis:
  hosts: [p0, p1]
  spray: udp_source_port
  paths: 3
  path_map: ['0', '0x0101', '0x0202']
  operations: [write, send, read, atomic]
  qps: 4
  window: 16
  ooo_threshold: 8
  avoidance_window: 5
  stash_timeout: 20us
  qp_timeout: 5ms
)"},
                                       {"a router in front of a rack, sprays by egress port over three paths",
                                        R"(strict: true
pipes: 2
programs: [forward, themis]
forward:
  router_mac: 02:00:00:00:00:02
  routes:
    - {prefix: 10.0.0.0/24, via: [{port: p0, mac: 02:00:00:00:01:00}]}
    - {prefix: 10.0.1.0/24, via: [{port: p1, mac: 02:00:00:00:01:01}, {port: p2, mac: 02:00:00:00:01:02}, {port: p3, mac: 02:00:00:00:01:03}]}
themis:
  hosts: [p0]
  paths: 3
  qps: 8
  window: 64
  ooo_threshold: 32
  avoidance_window: 9
  stash_timeout: 250us
  qp_timeout: 1ms
  connections:
    - {local: 10.0.0.11, local_qpn: 0x11, remote: 10.0.1.11, remote_qpn: 0x11, first_psn: 7}
)"},
                                       {nullptr, nullptr}};

}  // namespace
}  // namespace themis

Component themis_component() {
  return switch_model::program<themis::Themis, themis::kNeeds>(
      "themis", "packet spraying by PSN for commodity RNICs: blocks the NACKs that only reordering caused",
      themis::kThemisExamples);
}

}  // namespace rocebox
