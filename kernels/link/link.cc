// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/link.h"

#include "kernels/link/direction.h"
#include "runtime/kernel/delay_way.h"

namespace rocebox {
namespace link {
namespace {

constexpr Port kLeft = 0, kRight = 1;

class Link final : public Kernel, private DelayLine {
 public:
  using Config = link::Config;
  Link(const Config& config, Stats& stats)
      : forward_(config.forward, stats, "forward_", kRight), reverse_(config.reverse, stats, "reverse_", kLeft) {}

  void process(Context& context, Port in, Batch& batch) override {
    if (!seeded_) [[unlikely]] {
      // Both at the first packet of either, so that the other's traffic does not decide the seeds.
      forward_.seed(context);
      reverse_.seed(context);
      seeded_ = true;
    }
    (in == kLeft ? forward_ : reverse_).process(context, batch);
  }
  DelayLine* delay_line() override { return this; }
  void on_timer(Context& context, Timer& timer) override {
    (timer.tag() == kRight ? forward_ : reverse_).on_timer(context);
  }
  std::unique_ptr<Change> prepare(const Config& config) const {
    auto change = std::make_unique<LinkChange>();
    change->forward = forward_.prepare(config.forward, "forward");
    change->reverse = reverse_.prepare(config.reverse, "reverse");
    return change;
  }
  void report(Report& report) const override {
    forward_.report(report, "forward");
    reverse_.report(report, "reverse");
  }

 private:
  DelayWay& way(Port in) override { return (in == kLeft ? forward_ : reverse_).way(); }
  DelayWay::CountedOfBoth settle(Nanos before) override { return {forward_.settle(before), reverse_.settle(before)}; }

  struct LinkChange final : Change {
    void apply(Kernel& kernel, Nanos now) override {
      static_cast<Link&>(kernel).forward_.apply(*forward, now);
      static_cast<Link&>(kernel).reverse_.apply(*reverse, now);
    }
    std::unique_ptr<Direction::Replacement> forward, reverse;
  };
  bool seeded_ = false;
  Direction forward_, reverse_;
};

constexpr Example kLinkExamples[] = {{"wide area: long, lossy, now and then out of order",
                                      R"(delay: 25us
loss: 1%
jitter: 3us
reorder: 2%
reorder_timeout: 200us
reverse:
  loss: 0.1%
  reorder: 0
)"},
                                     {"multipath: jitter lets packets overtake, copies and reordering beside it",
                                      R"(delay: 5us
jitter: 20us
jitter_reorders: true
reorder: 5%
reorder_by: 7
reorder_timeout: 30us
duplicate: 3%
packets: 64
)"},
                                     {"congested queue that marks and trims",
                                      R"(rate: 1Gbps
delay: 10us
queue: 16KiB
queue_full: trim
trim_dscp: 46
ecn:
  min: 2KiB
  max: 12KiB
  probability: 20%
reverse:
  rate: 333333333bps
  queue_full: drop
)"},
                                     {"loss in bursts, copies, corruption, no time at all",
                                      R"(burst_loss:
  enter: 2%
  leave: 25%
  loss_good: 0.1%
  loss_bad: 90%
loss: 1%
duplicate: 5%
corrupt: 5%
mark: 10%
trim: 5%
trim_dscp: 10
reorder: 4%
reorder_by: 5
reorder_timeout: 50us
)"},
                                     {"explicit events",
                                      R"(delay: 2us
events:
  - {packet: 3, do: drop}
  - {packet: 5, do: duplicate, copies: 3}
  - {packet: 8, do: delay, by: 40us}
  - {packet: 10, do: reorder, packets: 4}
  - {packet: 12, do: corrupt, offset: 60, mask: 0xFF}
  - {packet: 12, do: corrupt}
  - {packet: 14, do: trim}
  - {packet: 15, do: mark}
  - {qpn: 0x11, psn: 5, do: drop}
  - {qpn: 0x11, psn: 6, occurrence: 2, do: drop}
  - {qpn: 0x11, psn: 0xFFFFFF, occurrence: 0, do: reorder}
  - {qpn: 0x11, psn: 7, opcode: 0x0A, do: mark}
reverse:
  events:
    - {packet: 1, do: drop}
)"},
                                     {"some packets only, and corruption that the ICRC does not see",
                                      R"(match:
  qpn: 0x11
  kind: [data, nak]
loss: 10%
corrupt: 20%
corrupt_icrc: repaired
reorder: 5%
events:
  - {qpn: 0x10, relative_psn: 10, do: drop}
  - {qpn: 0x11, relative_psn: 0, occurrence: 2, do: duplicate}
  - {kind: ack, occurrence: 3, do: drop}
  - {opcode: 0x81, occurrence: 0, do: mark}
  - {source: 10.0.0.10, kind: data, occurrence: 7, do: corrupt, icrc: repaired}
)"},
                                     {nullptr, nullptr}};

}  // namespace

std::unique_ptr<Kernel> make(const Config& config, Stats& stats) { return std::make_unique<Link>(config, stats); }

}  // namespace link

Component link_component() {
  Component component = two_sided_kernel<link::Link>(
      "link", "a wire: rate, queue, delay, jitter, loss, reordering, corruption, trimming, marking",
      link::kLinkExamples);
  component.is_wire = true;
  return component;
}

}  // namespace rocebox
