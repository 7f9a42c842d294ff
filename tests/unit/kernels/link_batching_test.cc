// SPDX-License-Identifier: BSD-3-Clause
// The same answer for any batching, and equal runs, for every example and for random mixtures of
// options.
#include <gtest/gtest.h>

#include <random>

#include "kernels/link/link.h"
#include "runtime/config/fields_reader.h"
#include "tests/unit/harness.h"

namespace rocebox {
namespace {

struct Result {
  std::vector<test::Out> out[2];  // by port: batching may change the order between ports, never on one
  std::vector<std::uint64_t> counters;
  bool operator==(const Result&) const = default;
};

// Bursts at one instant of up to 100 packets of several kinds, in both directions.
Result run(const link::Config& config, unsigned batch_max, std::uint64_t seed = 1) {
  test::KernelBox box([&](Stats& stats) { return link::make(config, stats); }, seed);
  box.pipeline->set_batch_max(batch_max);
  auto random = [engine = std::mt19937(42)]() mutable { return static_cast<unsigned>(engine()); };
  std::uint32_t psn = 0xFFFFE0;
  Nanos now = 0;
  for (int burst = 0; burst < 150; burst++) {
    now += random() % 4 ? random() % 20'000 : 0;
    std::vector<std::vector<std::uint8_t>> frames;
    for (unsigned count = 1 + random() % (random() % 8 ? 12 : 100); count > 0; count--) {
      const std::vector<std::uint8_t> payload(random() % 300, 0x77);
      roce::PacketSpec spec;
      spec.destination_qp = 0x11 + random() % 2;
      spec.psn = psn;
      psn = (psn + (random() % 3 != 0)) & 0xFFFFFF;
      spec.underlay.tos = static_cast<std::uint8_t>(random() % 3);
      spec.payload = payload;
      frames.push_back(test::frame(spec));
      if (random() % 16 == 0) frames.back()[13] = 0x06;  // other traffic
    }
    box.send_burst(now, burst % 3 == 2, frames);
  }
  box.drain();
  Result result;
  for (test::Out& out : box.out) result.out[out.port].push_back(std::move(out));
  for (const auto& row : box.stats.rows()) result.counters.push_back(row.read());
  EXPECT_EQ(box.conservation().held(), 0u);
  return result;
}

void expect_same_for_any_batching(const link::Config& config, std::string_view what) {
  const Result one = run(config, 1);
  EXPECT_GT(one.out[0].size() + one.out[1].size(), 500u) << what;
  EXPECT_TRUE(one == run(config, 1)) << what << ": two equal runs";
  for (unsigned batch_max : {7u, 64u}) EXPECT_TRUE(one == run(config, batch_max)) << what << ", " << batch_max;
}

TEST(LinkBatching, EveryExample) {
  const Component type = link_component();
  for (const Example* example = type.examples; example->title; example++) {
    config::Mistakes mistakes("example");
    const config::Node node = config::parse_yaml(example->yaml, mistakes);
    config::FieldsReader fields(&node, mistakes);
    link::Config config;
    config.fields(fields);
    ASSERT_TRUE(mistakes.none()) << mistakes.text();
    expect_same_for_any_batching(config, example->title);
  }
}

TEST(LinkBatching, RandomMixtures) {
  auto random = [engine = std::mt19937(5)]() mutable { return static_cast<unsigned>(engine()); };
  auto maybe = [&](double share) { return random() % 2 ? share : 0.0; };
  for (int round = 0; round < 40; round++) {
    link::Config config;
    link::DirectionConfig& d = config.forward;
    if (random() % 2) d.rate = 1'000'000 + random() % 2'000'000'000;
    d.queue = random() % 20'000;
    d.queue_full = random() % 2 ? link::QueueFull::kTrim : link::QueueFull::kDrop;
    if (random() % 2) d.delay = random() % 50'000;
    if (random() % 2) d.jitter = random() % 50'000, d.jitter_reorders = d.jitter && random() % 2;
    d.reorder = maybe(0.2), d.reorder_by = 1 + random() % 9, d.reorder_timeout = 1000 + random() % 60'000;
    d.duplicate = maybe(0.2), d.corrupt = maybe(0.2), d.loss = maybe(0.1), d.trim = maybe(0.1);
    d.mark = maybe(0.1);
    d.packets = random() % 2 ? 64 : 4096;
    if (random() % 2) d.ecn = {500, 5000, 0.5};
    if (random() % 2) d.burst_loss = {0.05, 0.3, 0, 1};
    for (int i = 0; i < 40; i++) {
      link::Event event;
      event.action = static_cast<link::Action>(random() % 7);
      if (random() % 2)
        event.packet = 1 + random() % 500;
      else
        event.qpn = 0x11, event.psn = (0xFFFFE0 + random() % 500) & 0xFFFFFF, event.occurrence = random() % 3;
      event.by = 1 + random() % 30'000, event.packets = 1 + random() % 8, event.copies = 1 + random() % 4;
      d.events.push_back(event);
    }
    config.reverse = d;
    const Result one = run(config, 1);
    for (unsigned batch_max : {7u, 64u}) ASSERT_TRUE(one == run(config, batch_max)) << round << ", " << batch_max;
  }
}

}  // namespace
}  // namespace rocebox
