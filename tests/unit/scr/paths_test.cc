// SPDX-License-Identifier: BSD-3-Clause
// The policies that probe: which way a flow goes (SCR, A.7), failures by time-out, answers that nobody asked for; and
// the agent that only measures, beside quantiles of the sorted samples.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/scr/engine_kit.h"

namespace rocebox::scr {
namespace {

// A network whose round trips depend on the source port; 0: what goes there is lost.
class Network {
 public:
  explicit Network(const std::vector<ParameterValue>& parameters, const std::string& policy = "paths")
      : box(policy_path(policy), parameters) {
    box.on_act = [this](const scr_action& action, Nanos at) {
      if (action.kind == SCR_SET_PORT) port = action.udp_source_port, moved.push_back(at);
      if (action.kind == SCR_PROBE && round_trip(action.udp_source_port))
        answers.emplace(at + round_trip(action.udp_source_port), action.udp_source_port);
    };
  }
  Nanos round_trip(std::uint16_t to) const {
    const auto known = round_trips.find(to);
    return known == round_trips.end() ? other : known->second;
  }
  // Until then; a TX event each `gap` (0: none).
  void run(Nanos end, Nanos gap = kMicrosecond) {
    for (; now < end; now += 500) {
      while (!answers.empty() && answers.begin()->first <= now) {
        const auto [at, to] = *answers.begin();
        answers.erase(answers.begin());
        answer(to, round_trip(to));
      }
      if (gap && now % gap == 0) box.put(SCR_TX, 0, now, 1098);
      box.engine->run(now, box);
    }
  }
  void answer(std::uint16_t to, Nanos rtt) {
    box.engine->run(now, box);
    Event event{};
    event.time = event.since = now;
    event.kind = SCR_RTT;
    event.count = 1;
    event.rtt = event.network_rtt = static_cast<std::uint32_t>(rtt);
    event.udp_source_port = to;
    box.engine->put(event);
  }

  EngineBox box;
  std::map<std::uint16_t, Nanos> round_trips;
  Nanos other = 10'000;
  std::multimap<Nanos, std::uint16_t> answers;
  std::vector<Nanos> moved;
  std::uint16_t port = 0;
  Nanos now = 1000;
};

TEST(ScrPaths, AFlowGoesTheQuickestWay) {
  Network network({{"ports", 4}, {"first", 5000}});
  network.round_trips = {{5000, 12'000}, {5001, 9000}, {5002, 5000}, {5003, 8000}};
  network.run(kMillisecond);
  EXPECT_EQ(network.port, 5002);
  const std::size_t moves = network.moved.size();
  network.round_trips[5003] = 4800;  // better, and not by the margin of a tenth
  network.run(2 * kMillisecond);
  EXPECT_EQ(network.port, 5002);
  EXPECT_EQ(network.moved.size(), moves);
  network.round_trips[5003] = 3000;
  network.run(3 * kMillisecond);
  EXPECT_EQ(network.port, 5003);
}

// As many flows as SCR's experiments have, each with eight paths: every probe of a round leaves, and is waited for.
TEST(ScrPaths, AThousandFlowsHaveEachAllTheirPaths) {
  constexpr std::uint32_t kFlows = 1024, kPorts = 8, kRounds = 3;
  constexpr Nanos kPeriod = kMillisecond;
  FrameworkConfig config;
  config.timing = {0, 0, 0, 0, 0, 0, 0};
  config.probe_timeout = 5 * kPeriod;
  EngineBox box(policy_path("paths"), {{"ports", kPorts}, {"first", 5000}, {"period", kPeriod}}, config);
  std::map<std::pair<std::uint32_t, std::uint16_t>, unsigned> probed;
  bool are_answered = true;
  std::vector<Event> answers;
  box.on_act = [&](const scr_action& action, Nanos at) {
    if (action.kind != SCR_PROBE) return;
    probed[{action.flow, action.udp_source_port}]++;
    Event event{};
    event.time = event.since = at;
    event.kind = SCR_RTT;
    event.count = 1;
    event.flow = action.flow;
    event.rtt = event.network_rtt = 5000;
    event.udp_source_port = action.udp_source_port;
    if (are_answered) answers.push_back(event);
  };
  for (std::uint32_t flow = 0; flow < kFlows; flow++) box.put(SCR_TX, flow, 1000, 1098);
  Nanos now = 1000;
  for (unsigned round = 0; round < kRounds; round++, now += kPeriod) {
    are_answered = round + 1 < kRounds;
    box.engine->run(now, box);
    for (Event& event : answers) {
      event.time = event.since = now;
      box.engine->put(event);
    }
    answers.clear();
  }
  EXPECT_EQ(probed.size(), std::size_t{kFlows} * kPorts);
  for (const auto& [path, count] : probed) EXPECT_GE(count, kRounds - 1) << path.first << " " << path.second;
  EXPECT_EQ(box.count("scr_wrong_actions"), 0u);
  EXPECT_EQ(box.count("scr_without_latency"), 0u);
  EXPECT_EQ(box.count("scr_probes_lost"), 0u);
  // Nobody answers the last round: all of it is lost, when its time is out and not before.
  box.engine->run(now - kPeriod + config.probe_timeout - 1, box);
  EXPECT_EQ(box.count("scr_probes_lost"), 0u);
  box.engine->run(now - kPeriod + config.probe_timeout, box);
  EXPECT_EQ(box.count("scr_probes_lost"), kFlows * kPorts);
}

TEST(ScrPaths, AFailedWayIsLeftWithinTheTimeout) {
  // The flow's thread keeps up: six events in 40 us, of 4 us each.
  constexpr Nanos kPeriod = 40'000, kGap = 20'000;
  Network network({{"ports", 4}, {"first", 5000}, {"period", kPeriod}});
  network.round_trips = {{5000, 12'000}, {5001, 9000}, {5002, 5000}, {5003, 8000}};
  network.run(kMillisecond, kGap);
  ASSERT_EQ(network.port, 5002);
  const Nanos failed = network.now;
  network.moved.clear();
  network.round_trips[5002] = 0;
  network.run(failed + kMillisecond, kGap);
  EXPECT_EQ(network.port, 5003) << "the best of the others";
  ASSERT_FALSE(network.moved.empty());
  // The next probe leaves within a period, and is lost 100 us later; then the law, and what goes with it: Figure 22.
  EXPECT_LE(network.moved.front() - failed, kPeriod + 100'000 + 3 * (7000 + 4000 + 6000));
  EXPECT_EQ(counter_of(network.box, "failures"), 1u) << "once, though each further probe is lost";
  network.round_trips[5002] = 5000;
  network.run(failed + 3 * kMillisecond, kGap);
  EXPECT_EQ(network.port, 5002);
  EXPECT_EQ(counter_of(network.box, "recoveries"), 1u);
}

TEST(ScrPaths, WithoutAnyWayItStaysAndGoesOnProbing) {
  Network network({{"ports", 3}, {"first", 5000}});
  network.other = 0;
  network.run(2 * kMillisecond);
  EXPECT_EQ(network.port, 5000);
  EXPECT_EQ(counter_of(network.box, "failures"), 3u);
  EXPECT_EQ(counter_of(network.box, "moves"), 1u) << "to its first one";
  network.round_trips[5001] = 6000;
  network.run(4 * kMillisecond);
  EXPECT_EQ(network.port, 5001);
}

TEST(ScrPaths, PlbMovesAtOnceWhenIdleAndLaterWhenNot) {
  for (const bool is_busy : {false, true}) {
    SCOPED_TRACE(is_busy ? "busy" : "idle");
    Network network({{"mode", 1}, {"ports", 1}, {"period", 20'000}, {"rounds", 4}, {"congested", 15'000}});
    network.run(200'000);
    const std::uint16_t first = network.port;
    ASSERT_EQ(network.moved.size(), 1u);
    const Nanos since = network.now;
    network.other = 18'000;
    network.run(since + 400'000, is_busy ? kMicrosecond : 0);
    ASSERT_GE(network.moved.size(), 2u);
    EXPECT_NE(network.port, first);
    const Nanos took = network.moved[1] - since;
    const Nanos rounds = 20'000 * (is_busy ? 8 : 4);
    EXPECT_GE(took, rounds - 20'000);
    EXPECT_LE(took, rounds + 90'000) << "with a round trip and the framework's latencies";
    EXPECT_GE(counter_of(network.box, is_busy ? "forced_moves" : "idle_moves"), 1u);
    EXPECT_EQ(counter_of(network.box, is_busy ? "idle_moves" : "forced_moves"), 0u);
  }
}

TEST(ScrPaths, MpRdmaSpraysOverWaysThatAreNotCongested) {
  Network network({{"mode", 2}, {"ports", 4}, {"first", 5000}});
  network.round_trips = {{5000, 8000}, {5001, 8500}, {5002, 30'000}, {5003, 0}};
  network.run(kMillisecond);
  std::map<std::uint16_t, unsigned> taken;
  network.box.on_act = [&taken, before = network.box.on_act](const scr_action& action, Nanos at) {
    if (action.kind == SCR_SET_PORT) taken[action.udp_source_port]++;
    before(action, at);
  };
  network.run(2 * kMillisecond);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_GT(taken[5000], 50u);
  EXPECT_NEAR(taken[5000], taken[5001], 1);
}

TEST(ScrPaths, ParametersThatChangeGiveAndTakePorts) {
  for (const std::int64_t mode : {0, 2}) {
    SCOPED_TRACE(mode);
    Network network({{"mode", mode}, {"ports", 1}, {"first", 5000}});
    network.round_trips = {{5000, 9000}, {5001, 8900}, {5002, 5000}};
    network.run(300'000);
    EXPECT_EQ(network.port, 5000);
    Engine& engine = *network.box.engine;
    const auto take = [&](std::int64_t ports) {
      engine.take(engine.values_of({{"mode", mode}, {"ports", ports}, {"first", 5000}}), network.now);
      network.run(network.now + 500'000);
    };
    std::set<std::uint16_t> probed, taken;
    network.box.on_act = [&, before = network.box.on_act](const scr_action& action, Nanos at) {
      if (action.kind == SCR_PROBE) probed.insert(action.udp_source_port);
      if (action.kind == SCR_SET_PORT) taken.insert(action.udp_source_port);
      before(action, at);
    };
    take(3);
    EXPECT_EQ(probed, (std::set<std::uint16_t>{5000, 5001, 5002}));
    EXPECT_TRUE(taken.contains(5002));
    EXPECT_FALSE(taken.contains(0));
    take(1);
    EXPECT_EQ(network.port, 5000);
    probed.clear();
    network.run(network.now + 200'000);
    EXPECT_EQ(probed, std::set<std::uint16_t>{5000});
  }
}

// Ports that a flow chose itself differ, and are none of the NIC's own.
TEST(ScrPaths, PortsByChanceDifferAndAreTheSameEachTime) {
  std::vector<std::set<std::uint16_t>> runs;
  for (int run = 0; run < 2; run++) {
    Network network({{"ports", 8}, {"seed", 5}});
    std::set<std::uint16_t> probed;
    network.box.on_act = [&](const scr_action& action, Nanos) {
      if (action.kind == SCR_PROBE) probed.insert(action.udp_source_port);
    };
    network.run(200'000);
    EXPECT_EQ(probed.size(), 8u);
    for (const std::uint16_t one : probed) {
      EXPECT_GE(one, 0xC000);
      EXPECT_TRUE(one != 49791 && one != 49792);
    }
    runs.push_back(probed);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(ScrPaths, AnswersNobodyAskedForMoveNothing) {
  Network network({{"ports", 2}, {"first", 5000}});
  network.round_trips = {{5000, 5000}, {5001, 9000}};
  network.run(kMillisecond);
  const std::uint64_t answers = counter_of(network.box, "answers");
  ASSERT_EQ(network.port, 5000);
  for (const int forged : {0, 4999, 5002, 65535}) {
    network.answer(static_cast<std::uint16_t>(forged), 1);
    network.box.engine->run(network.now += 1000, network.box);
  }
  network.box.engine->run(network.now + 12'000, network.box);
  EXPECT_EQ(network.port, 5000);
  EXPECT_LE(counter_of(network.box, "answers"), answers + 2) << "its own two that were under way";
}

TEST(ScrProbe, TellsQuantilesOfWhatItMeasured) {
  std::mt19937_64 random(17);
  Network network({{"period", 10'000'000'000}}, "probe");
  network.box.put(SCR_TX, 0, 1000, 1098);
  std::vector<std::uint64_t> sorted;
  for (int i = 0; i < 5000; i++) {
    const Nanos rtt = static_cast<Nanos>(random() >> (33 + random() % 24)) + 1;
    sorted.push_back(static_cast<std::uint64_t>(rtt));
    network.now += 20'000;
    network.answer(5000, rtt);
  }
  network.box.engine->run(network.now + kMillisecond, network.box);
  std::ranges::sort(sorted);
  EXPECT_EQ(counter_of(network.box, "answers"), 5000u);
  EXPECT_EQ(counter_of(network.box, "least_ns"), sorted.front());
  EXPECT_EQ(counter_of(network.box, "most_ns"), sorted.back());
  const auto near = [&](const char* name, std::size_t rank) {
    const auto right = static_cast<double>(sorted[rank - 1]);
    EXPECT_NEAR(static_cast<double>(counter_of(network.box, name)), right, right / 256 + 1) << name;
  };
  near("median_ns", 2500);
  near("p99_ns", 4950);
}

}  // namespace
}  // namespace rocebox::scr
