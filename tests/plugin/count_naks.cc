// SPDX-License-Identifier: BSD-3-Clause
// count_naks: a program of a switch that counts the NAKs of each queue pair, and drops those beyond the first `most`.
// Example: `switch: {ports: [a, b], programs: [forward, count_naks], count_naks: {most: 3}}`.
#include "runtime/kernel/stimulus.h"
#include "runtime/roce/parse.h"
#include "switch_model/program.h"
#include "switch_model/tables/exact_table.h"

using namespace rocebox;
using namespace rocebox::switch_model;

namespace {

class CountNaks {
 public:
  struct Config {
    std::int64_t qps = 1024, most = 3;
    void fields(Fields& f, const SwitchInfo&) {
      f.integer("qps", qps, {1, 1 << 20}, "queue pairs counted: those of the lowest numbers");
      f.integer("most", most, {0, UINT32_MAX}, "NAKs of a queue pair that pass");
    }
  };
  CountNaks(const Config& config, const Build& build)
      : qps_(build.layout, "qps", {Gress::kEgress, 0}, static_cast<std::uint32_t>(config.qps)),
        naks_(build.layout.registers<std::uint32_t>("naks", {Gress::kEgress, 1}, static_cast<std::uint64_t>(config.qps),
                                                    1)),
        naks_seen_(build.stats.counter("naks_seen", "NAKs of the queue pairs that are counted")),
        drop_many_naks_(build.stats.counter("drop_many_naks", "NAKs of a queue pair beyond the first `most`")),
        most_(config.most),
        last_qp_(static_cast<std::uint32_t>(config.qps - 1)) {
    for (std::uint32_t qpn = 0; qpn < config.qps; qpn++) qps_.insert(qpn, {});
  }

  static constexpr bool kOwnsWhatItWrites = true;  // it writes no packet
  static constexpr std::array<std::string_view, 1> kChangeable = {"most"};
  void check_change(const Config&) const {}
  void change(const Config& config) { most_ = config.most; }

  template <class Access>
  void egress(Access& access, Pass& pass) {
    for (PacketState& p : pass) {
      const roce::Aeth* aeth = roce::is_roce(p.packet) ? roce::aeth(p.packet) : nullptr;
      if (!aeth || roce::aeth_kind(aeth->syndrome) != roce::AethKind::kNak) continue;
      const std::uint32_t qp = access.lookup(p, qps_, static_cast<std::uint32_t>(roce::bth(p.packet).destination_qp));
      if (qp == kMiss) continue;
      naks_seen_.add();
      if (access.update(p, naks_, qp, [](std::uint32_t& n) { return ++n; }) > most_) pass.drop(p, drop_many_naks_);
    }
  }

  /// Packets of every kind to a queue pair that is counted, for `rocebox check --strict`.
  void stimuli(std::vector<Stimulus>& all) const {
    Stimulus stimulus;
    stimulus.destination_qp = last_qp_;
    all.push_back(stimulus);
  }

 private:
  ExactTable<std::uint32_t, std::uint8_t> qps_;
  RegisterArray<std::uint32_t> naks_;
  Counter &naks_seen_, &drop_many_naks_;
  std::int64_t most_;
  std::uint32_t last_qp_;
};

}  // namespace

extern "C" const Component* rocebox_components() {
  static const Component components[] = {
      program<CountNaks>("count_naks", "counts the NAKs of each queue pair and drops those beyond the first ones"), {}};
  return components;
}
