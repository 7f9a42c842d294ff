// SPDX-License-Identifier: BSD-3-Clause
// swift_control, Swift as a program for PCC, beside closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "nic_model/dpa/library.h"
#include "nic_model/pcc/events.h"
#include "nic_model/pcc/process.h"

namespace rocebox::test::pcc_swift {
namespace {

using nic_model::pcc::Process;

constexpr std::uint64_t kLine = 100'000'000'000;
enum Parameter : std::uint32_t {
  kBase,
  kStep,
  kHops,
  kPerHop,
  kRange,
  kLeastWindow,
  kMostWindow,
  kPortBytes,
  kMtu,
  kBeta,
  kMostCut,
  kLeastRate
};
enum Count : std::uint32_t { kProbes, kRises, kCuts, kNacks };

std::string path() { return nic_model::dpa::library_path("swift_control"); }

// Swift, 3.5: base + hops * h + max(0, min(alpha / sqrt(w) + beta, range)), of a window in packets.
double target_of(const std::uint32_t* p, double window) {
  const double range = p[kRange], inverse_most = 1 / std::sqrt(p[kMostWindow] / 256.0);
  const double alpha = range / (1 / std::sqrt(p[kLeastWindow] / 256.0) - inverse_most), beta = -alpha * inverse_most;
  return p[kBase] + static_cast<double>(p[kHops] * p[kPerHop]) +
         std::max(0.0, std::min(alpha / std::sqrt(window) + beta, range));
}

// One flow, whose probes come back after a time that the network and one that the peer took.
class Flow {
 public:
  Flow() : process_(path(), nic_model::dpa::Program::read(path()), {4, kLine, 0, 4, kSecond}) {
    process_.new_flow(0, 0);
  }
  void probe(Nanos sent, std::uint32_t network, std::uint32_t answering) {
    auto event = nic_model::pcc::event_of(DOCA_PCC_DEV_EVNT_RTT, sent + network + answering, 17, ++serial_);
    nic_model::pcc::set_rtt(event, sent, sent + network / 2, sent + network / 2 + answering);
    tell(event, sent + network + answering);
    EXPECT_EQ(results_.rtt_req, 1u) << "one probe after the other";
  }
  void nack(Nanos now, std::uint8_t syndrome) {
    auto event = nic_model::pcc::event_of(DOCA_PCC_DEV_EVNT_ROCE_NACK, now, 17, ++serial_);
    nic_model::pcc::set_nack(event, syndrome);
    tell(event, now);
  }
  std::string set(std::uint32_t id, std::uint32_t value) { return process_.set_parameter(0, id, value, {}); }
  const std::uint32_t* parameters() const { return process_.tables().slot(0, 0)->parameters; }
  std::uint32_t count(std::uint32_t id) const { return process_.tables().slot(0, 0)->counters[id]; }
  std::uint32_t rate() const { return results_.rate; }

 private:
  void tell(doca_pcc_dev_event_t& event, Nanos now) {
    results_.rtt_req = 0;
    ASSERT_TRUE(process_.handle(0, event, results_, {now, 0, 0})) << process_.error();
  }
  Process process_;
  doca_pcc_dev_results_t results_{};
  std::uint32_t serial_ = 0;
};

TEST(PccSwift, TheTargetDelayIsTheClosedForm) {
  constexpr std::string_view kApi[] = {"doca_pcc_dev_", "rocebox_pcc_", "rocebox_dpa_fence"};
  const nic_model::dpa::Program program(path(), nic_model::dpa::Program::read(path()), kApi);
  const auto target =
      reinterpret_cast<std::uint32_t (*)(const std::uint32_t*, std::uint32_t)>(program.find("swift_control_target"));
  ASSERT_NE(target, nullptr);
  std::mt19937 random(5);
  const auto below = [&](unsigned limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 2000; round++) {
    const std::uint32_t least = 64 + below(1024), most = 2 * least + below(25600);
    const std::uint32_t p[] = {below(20000), 1, below(8), below(3000), below(20000), least, most};
    const double window = std::exp2(std::uniform_real_distribution(-3.0, 9.0)(random));
    const double right = target_of(p, window);
    // Roots and their inverses have 16 bits behind the point, of which the difference of the two ends may use few.
    const double ends = 1 / std::sqrt(least / 256.0) - 1 / std::sqrt(most / 256.0);
    EXPECT_NEAR(target(p, static_cast<std::uint32_t>(window * 65536)), right, 2 + 3.0 * p[kRange] / 65536 / ends);
  }
  const std::uint32_t p[] = {1000, 1, 2, 500, 4000, 256, 25600};
  EXPECT_EQ(target(p, 100 << 16), 2000u) << "at the largest window none of the range";
  EXPECT_EQ(target(p, 1 << 16), 6000u) << "at the least all of it";
  EXPECT_EQ(target(p, 1 << 12), 6000u);
}

TEST(PccSwift, RisesByAStepAndIsCutByTheExcessOnceInARoundTrip) {
  Flow flow;
  const std::uint32_t* p = flow.parameters();
  EXPECT_EQ(flow.set(kRange, 0), "");
  const std::uint32_t target = p[kBase] + p[kHops] * p[kPerHop];
  Nanos now = kMillisecond;
  flow.probe(now, target / 2, 0);
  EXPECT_EQ(flow.rate(), DOCA_PCC_DEV_MAX_RATE) << "as it begins, and no more than the port's";

  // 30% above the target: beta * 0.3 / 1.3.
  const std::uint32_t above = target * 13 / 10;
  flow.probe(now += kMillisecond, above, 0);
  const double share = 0.8 * (above - target) / above;
  EXPECT_NEAR(flow.rate(), DOCA_PCC_DEV_MAX_RATE * (1 - share), 40);
  const std::uint32_t after = flow.rate();
  flow.probe(now + 1, above, 0);
  EXPECT_EQ(flow.rate(), after) << "within a round trip";
  EXPECT_EQ(flow.count(kCuts), 1u);

  flow.probe(now += kMillisecond, target - 10, 500'000);
  EXPECT_EQ(flow.rate(), after + p[kStep]) << "the peer's time to answer is none of the network's";
  flow.probe(now += kMillisecond, 100 * target, 0);
  EXPECT_EQ(flow.rate(), after + p[kStep] - (after + p[kStep]) / 2) << "no more than the most that a cut takes";

  const std::uint32_t before = flow.rate();
  constexpr std::uint8_t kPsnSequenceError = 0x60, kRnrNak = 0x21;  // AETH syndromes
  flow.nack(now += 10 * kMillisecond, kPsnSequenceError);
  EXPECT_EQ(flow.rate(), before - before / 2) << "a loss";
  flow.nack(now += 10 * kMillisecond, kRnrNak);
  EXPECT_EQ(flow.rate(), before - before / 2) << "a receiver that is not ready is none";
  EXPECT_EQ(flow.count(kNacks), 1u);
  for (int i = 0; i < 30; i++) flow.probe(now += kMillisecond, 100 * target, 0);
  EXPECT_EQ(flow.rate(), p[kLeastRate]);
}

}  // namespace
}  // namespace rocebox::test::pcc_swift
