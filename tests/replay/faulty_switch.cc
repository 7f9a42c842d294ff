// SPDX-License-Identifier: BSD-3-Clause
// A plugin with a program of a switch, whose ingress control can make each of the mistakes that strict mode knows.
// `rocebox check --strict` must find them through the command, as in a program that somebody brings along.
#include "switch_model/program.h"
#include "switch_model/tables/exact_table.h"

namespace rocebox::switch_model {
namespace {

// kHidden: nothing that hardware could not do, but a register that no packet comes to.
enum Fault { kNone, kTwice, kLoop, kBack, kBeyond, kOther, kTable, kHidden };

class Faulty {
 public:
  struct Config {
    std::int64_t fault = kNone;
    void fields(Fields& f, const SwitchInfo&) { f.integer("fault", fault, {kNone, kHidden}, "which mistake"); }
  };
  Faulty(const Config& config, const Build& build)
      : fault_(config.fault),
        early_(build.layout.registers<std::uint32_t>("early", {Gress::kIngress, 1}, 16)),
        late_(build.layout.registers<std::uint32_t>("late", {Gress::kIngress, 4}, 16)),
        leaving_(build.layout.registers<std::uint32_t>("leaving", {Gress::kEgress, 5}, 16)),
        qps_(build.layout, "qps", {Gress::kIngress, 2}, 16) {}

  template <class Access>
  void ingress(Access& access, Pass& pass) {
    const auto count = [](std::uint32_t& n) { return ++n; };
    for (PacketState& p : pass) {
      p.egress_port = static_cast<Port>(1 - p.ingress_port);
      if (fault_ != kBack) access.update(p, early_, 1, count);
      access.lookup(p, qps_, std::uint32_t{7});
      if (fault_ == kTable) access.lookup(p, qps_, std::uint32_t{8});
      access.update(p, late_, fault_ == kBeyond ? 16u : 2u, count);
      if (fault_ == kTwice) access.update(p, late_, 3, count);
      if (fault_ == kLoop)
        for (unsigned i = 0; i < 4; i++) access.update(p, late_, i, count);
      if (fault_ == kBack) access.update(p, early_, 1, count);
      if (fault_ == kOther) access.update(p, leaving_, 0, count);
    }
  }
  template <class Access>
  void egress(Access& access, Pass& pass) {
    for (PacketState& p : pass)
      if (fault_ != kHidden) access.read(p, leaving_, 1);
  }

 private:
  std::int64_t fault_;
  RegisterArray<std::uint32_t> early_, late_, leaving_;
  ExactTable<std::uint32_t, std::uint8_t> qps_;
};

}  // namespace
}  // namespace rocebox::switch_model

extern "C" const rocebox::Component* rocebox_components() {
  static const rocebox::Component components[] = {
      rocebox::switch_model::program<rocebox::switch_model::Faulty>("faulty", "makes one mistake"), {}};
  return components;
}
