// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/themis.h"

#include "kernels/themis/egress.h"
#include "kernels/themis/ingress.h"

namespace rocebox {
namespace themis {
namespace {

class Themis {
 public:
  using Config = themis::Config;

  Themis(const Config& config, const switch_model::Build& build)
      : count_(build.stats),
        word_(build.layout.metadata(kTaskWords)),
        shared_(config, build),
        control_(config, build.info,
                 {shared_.ingress_qps, shared_.egress_qps, shared_.source, shared_.destination, shared_.hits}, count_),
        ingress_(config, build, word_, shared_, control_, count_),
        egress_(config, build, word_, shared_, control_, count_) {}

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    ingress_.run(access, pass);
  }
  template <class Access>
  void egress(Access& access, Pass& pass) {
    egress_.run(access, pass);
  }
  void on_timer(Pass& pass, std::uint64_t tag) { control_.on_timer(pass, tag); }
  void report(Report& report) const { control_.report(report); }
  void stimuli(std::vector<Stimulus>& all) const { control_.stimuli(all); }

 private:
  Counters count_;
  unsigned word_;
  Shared shared_;
  ControlPlane control_;
  Ingress ingress_;
  Egress egress_;
};

constexpr Example kExamples[] = {{"a ToR that sprays by UDP source port, with little state",
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
                                 {nullptr, nullptr}};

}  // namespace
}  // namespace themis

switch_model::ProgramType themis_program_type() {
  return switch_model::program_type<themis::Themis>(
      "themis", "packet spraying by PSN for commodity RNICs: blocks the NACKs that only reordering caused",
      themis::kExamples);
}

}  // namespace rocebox
