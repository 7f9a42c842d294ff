// SPDX-License-Identifier: BSD-3-Clause
// Observer: the kernel itself. process() reads Writes with immediate, report() writes what has come of each message;
// nothing is changed.
#pragma once
#include "kernels/sdr/observer/config.h"
#include "kernels/sdr/observer/connections.h"
#include "kernels/sdr/observer/counters.h"
#include "kernels/sdr/observer/messages.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::sdr::observer {

class Observer final : public Kernel {
 public:
  using Config = observer::Config;

  Observer(const Config& config, Stats& stats);
  void process(Context& context, Port in, Batch& batch) override;
  void report(Report& report) const override;

 private:
  static constexpr std::uint32_t kNone = Connections::kNone;

  // Where a packet belongs, found for the whole batch before any packet is counted.
  struct Lookup {
    QpKey key;
    std::uint64_t hash;
    std::uint32_t qp;
    Part part;
    bool is_ours;
  };

  bool look_up(Packet packet, Lookup& lookup) const;
  void take(Packet packet, Lookup& lookup, Nanos now);
  void report_connection(Report& report, std::uint32_t index) const;
  void report_qp(Report& report, std::uint32_t index) const;
  void report_message(Report& report, const Slot& slot, const MissingRuns& missing) const;
  void report_chunks(Report& report, const Slot& slot, std::span<const std::uint64_t> bits) const;
  void report_event(Report& report, const Event& event) const;

  const Config config_;
  const ImmediateLayout layout_;
  Counters counters_;
  Connections connections_;
  Messages messages_;
};

}  // namespace rocebox::sdr::observer
