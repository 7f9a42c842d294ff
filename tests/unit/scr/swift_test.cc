// SPDX-License-Identifier: BSD-3-Clause
// The policy `swift` beside closed forms: its target delay, and two flows at one bottleneck whose queue is modelled.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

using Target = std::uint32_t (*)(const std::int64_t*, std::uint64_t, std::uint32_t);

// base + hops * h + max(0, min(alpha / sqrt(w) + beta, range)), with windows in packets.
double target_of(const std::int64_t* p, double rate, double rtt) {
  const auto window = [&](double r) { return r * rtt / 8e9 / static_cast<double>(p[6]); };
  const auto range = static_cast<double>(p[3]);
  const double inverse_most = 1 / std::sqrt(window(static_cast<double>(p[5])));
  const double alpha = range / (1 / std::sqrt(window(static_cast<double>(p[4]))) - inverse_most);
  const double beta = -alpha * inverse_most;
  return static_cast<double>(p[0] + p[1] * p[2]) +
         std::max(0.0, std::min(alpha / std::sqrt(window(rate)) + beta, range));
}

TEST(ScrSwift, TheTargetDelayIsTheClosedForm) {
  const std::string path = policy_path("swift");
  constexpr std::string_view kApi[] = {"scr_"};
  const nic_model::dpa::Program program(path, nic_model::dpa::Program::read(path), kApi);
  const auto target = reinterpret_cast<Target>(program.find("swift_target"));
  ASSERT_NE(target, nullptr);
  // A.6: base 1 us, 1 hop of 2 us, range 2 us, 32 to 96 Gbps.
  const std::int64_t paper[] = {1000, 1, 2000, 2000, 32'000'000'000, 96'000'000'000, 1024};
  for (std::uint64_t rate = 1'000'000'000; rate <= 100'000'000'000; rate += 500'000'000)
    for (const std::uint32_t rtt : {2000u, 6000u, 20000u, 100000u}) {
      const double right = target_of(paper, static_cast<double>(rate), rtt);
      EXPECT_NEAR(target(paper, rate, rtt), right, 6) << rate << " bit/s, " << rtt << " ns";
    }
  EXPECT_EQ(target(paper, 96'000'000'000, 6000), 3000u) << "at the highest rate none of the range";
  EXPECT_EQ(target(paper, 32'000'000'000, 6000), 5000u) << "at the lowest all of it";
  EXPECT_EQ(target(paper, 1'000'000'000, 6000), 5000u);
}

// A bottleneck that all packets go through: its queue is what the probes see.
class Bottleneck {
 public:
  Bottleneck(EngineBox& box, double capacity, Nanos base) : box_(box), capacity_(capacity), base_(base) {
    box.on_act = [this](const scr_action& action, Nanos at) {
      if (action.kind == SCR_PROBE) answers_.emplace_back(at, action.flow);
    };
  }
  // Time goes on in steps of a microsecond; `flows` send at their rates.
  void run(std::uint32_t flows, Nanos span, double background = 0) {
    for (const Nanos end = now_ + span; now_ < end; now_ += 1000) {
      double sum = background;
      for (std::uint32_t flow = 0; flow < flows; flow++) {
        const double rate = box_.rates[flow] > 0 ? box_.rates[flow] : EngineBox::kLine;
        sum += rate;
        sent_[flow] += rate * 1e-6 / 8;
        if (now_ % 5000 == 0) box_.put(SCR_TX, flow, now_, 1098);
      }
      queue_ = std::max(0.0, queue_ + (sum - capacity_) * 1e-6 / 8);
      most_ = std::max(most_, queue_);
      box_.engine->run(now_, box_);
      for (std::size_t i = 0; i < answers_.size();) {
        const auto [at, flow] = answers_[i];
        const auto rtt = base_ + static_cast<Nanos>(queue_ * 8e9 / capacity_);
        if (at + rtt > now_) {
          i++;
          continue;
        }
        answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
        Event event{};
        event.time = event.since = now_;
        event.flow = flow;
        event.kind = SCR_RTT;
        event.count = 1;
        event.rtt = event.network_rtt = static_cast<std::uint32_t>(rtt);
        box_.engine->put(event);
      }
    }
  }
  double sent_[8] = {};
  double queue_ = 0, most_ = 0;

 private:
  EngineBox& box_;
  double capacity_;
  Nanos base_, now_ = 1000;
  std::vector<std::pair<Nanos, std::uint32_t>> answers_;
};

TEST(ScrSwift, TwoFlowsConvergeToEqualShares) {
  EngineBox box(policy_path("swift"), {{"base", 4000}, {"hops", 0}, {"range", 8000}, {"min_rate", 10'000'000'000}});
  Bottleneck link(box, 100e9, 4000);
  link.run(1, 10 * kMillisecond);
  link.run(2, 60 * kMillisecond);
  const double first = link.sent_[0], second = link.sent_[1];
  link.run(2, 20 * kMillisecond);
  const double a = link.sent_[0] - first, b = link.sent_[1] - second;
  EXPECT_NEAR(a / (a + b), 0.5, 0.08);
  EXPECT_GT((a + b) * 8 / 20e-3, 80e9) << "and use the link";
}

TEST(ScrSwift, LeavesABackgroundItsPart) {
  double before = 1e12;
  for (const double background : {20e9, 40e9, 60e9}) {
    EngineBox box(policy_path("swift"), {});
    Bottleneck link(box, 100e9, 2500);
    link.run(1, 20 * kMillisecond, background);
    const double sent = link.sent_[0];
    link.run(1, 20 * kMillisecond, background);
    const double rate = (link.sent_[0] - sent) * 8 / 20e-3;
    EXPECT_NEAR(rate, 100e9 - background, 12e9) << background;
    EXPECT_LT(rate, before);
    before = rate;
  }
}

TEST(ScrSwift, LostProbesCutTheRateAndProbingGoesOn) {
  EngineBox box(policy_path("swift"), {});
  Bottleneck link(box, 100e9, 2500);
  link.run(1, kMillisecond);
  const double before = box.rates[0] > 0 ? box.rates[0] : EngineBox::kLine;
  box.on_act = [](const scr_action&, Nanos) {};  // answers get lost
  link.run(1, 2 * kMillisecond);
  EXPECT_LT(box.rates[0], before / 4);
  EXPECT_GE(box.rates[0], 100e6) << "never below the floor";
  EXPECT_GT(box.count("scr_probes_lost"), 10u);
}

}  // namespace
}  // namespace rocebox::scr
