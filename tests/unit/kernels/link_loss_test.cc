// SPDX-License-Identifier: BSD-3-Clause
// Random loss against theory, and the independence of impairments and directions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/link/link.h"
#include "tests/unit/harness.h"

namespace rocebox::link_loss_test {
namespace {

using Change = std::function<void(link::DirectionConfig&)>;

std::vector<std::uint8_t> packet() {
  roce::PacketSpec spec;
  spec.underlay.tos = roce::kEcnEct0;
  static const std::vector<std::uint8_t> payload(16, 1);
  spec.payload = payload;
  return test::frame(spec);
}

// For each of `count` packets: whether it left.
std::vector<bool> survivors(const link::Config& config, unsigned count, std::uint64_t seed = 1, Port in = 0) {
  test::KernelBox box([&](Stats& stats) { return link::make(config, stats); }, seed);
  const auto bytes = packet();
  std::vector<bool> left(count);
  auto note = [&] {
    for (const test::Out& out : box.out) left[out.meta.identity - 1] = true;
    box.out.clear();
  };
  for (unsigned i = 0; i < count; i++) {
    box.send(i * Nanos{1000}, in, bytes);
    note();
  }
  box.drain();
  note();
  return left;
}

std::vector<bool> survivors(const Change& change, unsigned count, std::uint64_t seed = 1) {
  link::Config config;
  change(config.forward);
  return survivors(config, count, seed);
}

double lost_share(const std::vector<bool>& left) {
  return static_cast<double>(std::count(left.begin(), left.end(), false)) / static_cast<double>(left.size());
}

TEST(LinkLoss, BernoulliIsWithinFourSigma) {
  constexpr unsigned kPackets = 200'000;
  for (double p : {0.0, 0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0}) {
    const double share = lost_share(survivors([&](auto& d) { d.loss = p; }, kPackets));
    EXPECT_LE(std::abs(share - p), 4 * std::sqrt(p * (1 - p) / kPackets)) << p;
  }
}

TEST(LinkLoss, BernoulliLossesDoNotCluster) {
  const auto left = survivors([](auto& d) { d.loss = 0.1; }, 200'000);
  double both = 0;
  for (std::size_t i = 1; i < left.size(); i++) both += !left[i] && !left[i - 1];
  EXPECT_NEAR(both / 200'000, 0.01, 4 * std::sqrt(0.01 / 200'000));
}

// With loss 0 and 1 by state, what is lost shows the state itself.
TEST(LinkBurstLoss, StateShareAndBurstLengthAgreeWithTheory) {
  constexpr unsigned kPackets = 200'000;
  constexpr double p = 0.01, r = 0.2;
  const auto left = survivors(
      [&](auto& d) {
        d.burst_loss.enter = p;
        d.burst_loss.leave = r;
      },
      kPackets);
  double bad = 0, bursts = 0;
  for (std::size_t i = 0; i < left.size(); i++) {
    bad += !left[i];
    bursts += !left[i] && (i == 0 || left[i - 1]);
  }
  // The chain's correlation 1-p-r widens the share's deviation by sqrt((2-p-r)/(p+r)).
  const double share = p / (p + r);
  const double sigma = std::sqrt(share * (1 - share) / kPackets * (2 - p - r) / (p + r));
  EXPECT_NEAR(bad / kPackets, share, 4 * sigma);
  // Burst lengths are geometric: mean 1/r, deviation sqrt(1-r)/r.
  EXPECT_NEAR(bad / bursts, 1 / r, 4 * std::sqrt(1 - r) / r / std::sqrt(bursts));
  // Bursts begin at rate p from the good state.
  EXPECT_NEAR(bursts / (kPackets - bad), p, 4 * std::sqrt(p / (kPackets - bad)));
}

TEST(LinkBurstLoss, LossInBothStatesAddsUp) {
  constexpr unsigned kPackets = 200'000;
  constexpr double p = 0.05, r = 0.1, good = 0.02, bad = 0.6;
  const auto left = survivors([&](auto& d) { d.burst_loss = {p, r, good, bad}; }, kPackets);
  const double expected = (p * bad + r * good) / (p + r);
  const double share = p / (p + r);
  const double state = share * (1 - share) * (2 - p - r) / (p + r) * (bad - good) * (bad - good);
  const double sigma = std::sqrt((state + expected * (1 - expected)) / kPackets);
  EXPECT_NEAR(lost_share(left), expected, 4 * sigma);
}

TEST(LinkBurstLoss, TheStateChangesBeforeThePacket) {
  const auto left = survivors([](auto& d) { d.burst_loss = {1, 1, 0, 1}; }, 6);
  EXPECT_EQ(left, (std::vector<bool>{false, true, false, true, false, true}));
}

TEST(LinkBurstLoss, BothKindsOfLossMayBeOn) {
  link::Config config;
  config.forward.loss = 0.5;
  config.forward.burst_loss = {0.5, 0.5, 0, 1};
  test::KernelBox box([&](Stats& stats) { return link::make(config, stats); });
  for (int i = 0; i < 4000; i++) box.send(i, 0, packet());
  EXPECT_NEAR(static_cast<double>(box.stats.read("forward_drop_burst_loss")), 2000, 200);
  EXPECT_NEAR(static_cast<double>(box.stats.read("forward_drop_loss")), 1000, 150);
}

TEST(LinkStreams, NoImpairmentShiftsThePatternOfLosses) {
  const Change base = [](auto& d) { d.loss = 0.05; };
  const auto expected = survivors(base, 5000);
  const std::pair<const char*, Change> others[] = {
      {"corrupt", [](auto& d) { d.corrupt = 0.3; }},
      {"duplicate", [](auto& d) { d.duplicate = 0.3; }},
      {"mark", [](auto& d) { d.mark = 0.3; }},
      {"trim", [](auto& d) { d.trim = 0.3; }},
      {"delay", [](auto& d) { d.delay = 12'000; }},
      {"jitter", [](auto& d) { d.jitter = 9'000, d.jitter_reorders = true; }},
      {"reorder", [](auto& d) { d.reorder = 0.3; }},
      {"rate", [](auto& d) { d.rate = 100'000'000'000; }},
      {"ecn",
       [](auto& d) {
         d.rate = 100'000'000'000, d.ecn = {1, 2, 0.5};
       }},
      {"silent bursts", [](auto& d) {
         d.burst_loss = {0.1, 0.1, 0, 0};
       }}};
  for (const auto& [name, change] : others) {
    const auto left = survivors([&, change = change](auto& d) { base(d), change(d); }, 5000);
    EXPECT_EQ(left, expected) << name;
  }
  EXPECT_NE(survivors(base, 5000, 2), expected) << "another seed, another pattern";
}

TEST(LinkStreams, LossShiftsNoOtherPattern) {
  auto corrupted = [](double loss, double burst) {
    link::Config config;
    config.forward.corrupt = 0.1;
    config.forward.loss = loss;
    if (burst > 0) config.forward.burst_loss = {burst, 0.5, 0, 1};
    test::KernelBox box([&](Stats& stats) { return link::make(config, stats); });
    const auto bytes = packet();
    for (int i = 0; i < 5000; i++) box.send(i, 0, bytes);
    std::vector<std::vector<std::uint8_t>> by_sequence(5001);
    for (const test::Out& out : box.out) by_sequence[out.meta.identity] = out.bytes;
    return by_sequence;
  };
  const auto clean = corrupted(0, 0), lossy = corrupted(0.2, 0.1);
  for (std::size_t i = 1; i < clean.size(); i++)
    if (!lossy[i].empty()) {
      ASSERT_EQ(lossy[i], clean[i]) << "same packets, same bits";
    }
}

TEST(LinkStreams, DirectionsAreIndependent) {
  link::Config config;
  config.forward.loss = config.reverse.loss = 0.2;
  const auto alone = survivors(config, 4000);
  const auto reverse_alone = survivors(config, 4000, 1, 1);
  EXPECT_NE(alone, reverse_alone);
  test::KernelBox box([&](Stats& stats) { return link::make(config, stats); });
  const auto bytes = packet();
  for (int i = 0; i < 4000; i++) {
    box.send(i, 1, bytes);
    box.send(i, 0, bytes);
  }
  std::vector<bool> forward(4000), reverse(4000);
  for (const test::Out& out : box.out) (out.port == 1 ? forward : reverse)[(out.meta.identity - 1) / 2] = true;
  EXPECT_EQ(forward, alone);
  EXPECT_EQ(reverse, reverse_alone);
}

}  // namespace
}  // namespace rocebox::link_loss_test
