// SPDX-License-Identifier: BSD-3-Clause
// hub: a kind of device. What comes in by a port leaves by all others. Example: `devices: {d: {hub: {ports: [a, b,
// c]}}}`.
#include "runtime/kernel/kernel_options.h"

using namespace rocebox;

namespace {

class Hub final : public Kernel {
 public:
  Hub(Port ports, Stats& stats)
      : ports_(ports), copy_failed_(stats.counter("copy_failed", "copies not made: the pool was dry")) {}

  void process(Context& context, Port in, Batch& batch) override {
    const Port first = in == 0 ? 1 : 0;
    for (unsigned i = 0; i < batch.size(); i++) {
      batch.send(i, first);
      for (Port out = first + 1; out < ports_; out++) {
        if (out == in) continue;
        PacketPtr copy = context.copy(batch[i]);
        if (copy)
          context.emit(std::move(copy), out, i);
        else
          copy_failed_.add();
      }
    }
  }

 private:
  Port ports_;
  Counter& copy_failed_;
};

class HubOptions final : public DeviceOptions {
 public:
  void fields(Fields& f) override {
    f.texts("ports", ports_, "names of the ports");
    if (ports_.size() < 2 || ports_.size() > kPortsMax)
      f.refuse("ports", "must name two at least, and no more than a device may have");
  }
  const std::vector<std::string>& ports() const override { return ports_; }
  std::unique_ptr<Kernel> make(Stats& stats) const override { return std::make_unique<Hub>(inputs(), stats); }
  std::unique_ptr<Change> change(const Kernel&) const override {
    throw ConfigError("none of its options can be changed while it runs");
  }

 private:
  std::vector<std::string> ports_ = {"p0", "p1"};
};

}  // namespace

extern "C" const Component* rocebox_components() {
  static const Component components[] = {device_kind<HubOptions>("hub", "repeats what comes in by all other ports"),
                                         {}};
  return components;
}
