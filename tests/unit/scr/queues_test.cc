// SPDX-License-Identifier: BSD-3-Clause
// Queues and threads of SCR, beside models of a few lines: what is taken together, and who handles it when.
#include "kernels/scr/queues.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "kernels/scr/processors.h"
#include "kernels/scr/ring.h"

namespace rocebox::scr {
namespace {

Strategies all_of(Strategy one) {
  Strategies all;
  all.fill(one);
  return all;
}

Event event_of(std::uint32_t flow, unsigned kind, std::int64_t time, std::uint64_t bytes, std::uint8_t detail = 0,
               std::uint16_t port = 0) {
  Event event{};
  event.flow = flow;
  event.kind = static_cast<std::uint8_t>(kind);
  event.time = event.since = time;
  event.bytes = bytes;
  event.value = static_cast<std::uint64_t>(time) * 10;
  event.count = 1;
  event.detail = detail;
  event.udp_source_port = port;
  return event;
}

TEST(ScrQueues, AnEventIsOneCacheLine) { EXPECT_EQ(sizeof(Event), 64u); }

TEST(ScrQueues, StrategiesAreWhatTheirNamesSay) {
  struct Case {
    Strategy strategy;
    std::int64_t since, time;
    std::uint64_t bytes, value;
    std::uint32_t count;
    unsigned size;
  };
  for (const Case& c :
       {Case{Strategy::kAccumulate, 1, 3, 60, 30, 3, 1}, Case{Strategy::kRateStable, 1, 3, 60, 30, 3, 1},
        Case{Strategy::kKeepLatest, 3, 3, 30, 30, 3, 1}, Case{Strategy::kKeepOldest, 1, 1, 10, 10, 3, 1},
        Case{Strategy::kNone, 1, 1, 10, 10, 1, 3}}) {
    SCOPED_TRACE(kStrategies[static_cast<unsigned>(c.strategy)].name);
    EventQueues queues(4, all_of(c.strategy), 1000);
    for (int i = 1; i <= 3; i++) queues.put(event_of(2, SCR_TX, i, static_cast<std::uint64_t>(i) * 10));
    const std::uint32_t key = queues.key(2, SCR_TX);
    ASSERT_EQ(queues.size(key), c.size);
    const Event got = queues.take(key);
    EXPECT_EQ(got.since, c.since);
    EXPECT_EQ(got.time, c.time);
    EXPECT_EQ(got.bytes, c.bytes);
    EXPECT_EQ(got.value, c.value);
    EXPECT_EQ(got.count, c.count);
  }
}

TEST(ScrQueues, OnlyWhatIsAlikeIsTakenTogether) {
  EventQueues queues(4, all_of(Strategy::kAccumulate), 1000);
  queues.put(event_of(0, SCR_NACK, 1, 0, SCR_NACK_RNR));
  queues.put(event_of(0, SCR_NACK, 2, 0, SCR_NACK_SEQUENCE));
  queues.put(event_of(0, SCR_RTT, 1, 0, 0, 5101));
  queues.put(event_of(0, SCR_RTT, 2, 0, 0, 5102));
  queues.put(event_of(0, SCR_RTT, 3, 0, 0, 5102));
  queues.put(event_of(SCR_NODE, SCR_HOST, 3, 0, SCR_HOST_TIMER));
  queues.put(event_of(SCR_NODE, SCR_HOST, 4, 0, SCR_HOST_TIMER));
  EXPECT_EQ(queues.size(queues.key(0, SCR_NACK)), 2u);
  EXPECT_EQ(queues.size(queues.key(0, SCR_RTT)), 2u);
  EXPECT_EQ(queues.size(queues.key(SCR_NODE, SCR_HOST)), 2u);
  queues.put(event_of(SCR_NODE, SCR_HOST, 5, 0, SCR_HOST_PCIE));
  queues.put(event_of(SCR_NODE, SCR_HOST, 6, 0, SCR_HOST_PCIE));
  EXPECT_EQ(queues.size(queues.key(SCR_NODE, SCR_HOST)), 3u) << "of its state the newest counts";
  EXPECT_EQ(queues.size(queues.key(1, SCR_NACK)), 0u) << "queues of other flows are others";
}

// Up to its capacity, whether it grows while it goes round or not.
TEST(ScrQueues, ARingIsFirstInFirstOut) {
  for (const std::size_t capacity : {5u, 256u, 1500u}) {
    std::mt19937 random(static_cast<unsigned>(capacity));
    Ring<int> ring(capacity);
    std::deque<int> model;
    bool was_full = false;
    for (int i = 0; i < 20000; i++) {
      ASSERT_EQ(ring.empty(), model.empty());
      ASSERT_EQ(ring.full(), model.size() == capacity);
      was_full |= ring.full();
      if (!ring.full() && random() % 16 < (i < 10000 ? 10 : 7)) {
        ring.push(i);
        model.push_back(i);
      } else if (!ring.empty()) {
        ASSERT_EQ(ring.front(), model.front());
        ring.pop();
        model.pop_front();
      }
    }
    EXPECT_TRUE(was_full);
  }
}

// No byte is lost, whatever comes, and an event is above the ceiling only where the queue is full.
TEST(ScrQueues, BytesAndCountsAreConserved) {
  constexpr std::uint64_t kCeiling = 4000;
  std::mt19937 random(20);
  EventQueues queues(3, all_of(Strategy::kAccumulate), kCeiling);
  std::map<std::uint32_t, std::uint64_t> put, taken, counted;
  std::map<std::uint32_t, std::int64_t> newest;
  std::uint64_t overfull = 0, above = 0, events = 0;
  for (int i = 0; i < 20000; i++) {
    const auto flow = static_cast<std::uint32_t>(random() % 3);
    const std::uint32_t key = queues.key(flow, SCR_TX);
    if (random() % 8) {
      const std::uint64_t bytes = 64 + random() % 1500;
      put[flow] += bytes;
      events++;
      overfull += queues.put(event_of(flow, SCR_TX, i, bytes)) == EventQueues::Put::kOverfull;
    } else if (queues.size(key)) {
      const Event event = queues.take(key);
      EXPECT_GE(event.since, newest[flow]) << "in order";
      newest[flow] = event.time;
      taken[flow] += event.bytes;
      counted[0] += event.count;
      above += event.bytes > kCeiling;
    }
  }
  for (std::uint32_t flow = 0; flow < 3; flow++) {
    for (const std::uint32_t key = queues.key(flow, SCR_TX); queues.size(key);) {
      const Event event = queues.take(key);
      taken[flow] += event.bytes;
      counted[0] += event.count;
      above += event.bytes > kCeiling;
    }
    EXPECT_EQ(put[flow], taken[flow]);
  }
  EXPECT_EQ(counted[0], events);
  EXPECT_GT(overfull, 0u);
  EXPECT_GT(above, 0u);
  EXPECT_LE(above, overfull);
}

TEST(ScrProcessors, AFlowsEventsAreOneThreadsAndPoolsAreApart) {
  const Processors processors({64, 16, 4}, 201 * SCR_KINDS);
  EXPECT_EQ(processors.threads(), 84u);
  for (std::uint32_t flow = 0; flow < 200; flow++) {
    const std::uint32_t first = flow * SCR_KINDS;
    for (const unsigned kind : {SCR_RX, SCR_ACK, SCR_NACK, SCR_CNP, SCR_RTT})
      EXPECT_EQ(processors.thread_of(first + kind), processors.thread_of(first + SCR_TX));
    EXPECT_EQ(processors.thread_of(first + SCR_TX), flow % 64) << "one to one while there are as many threads";
    EXPECT_EQ(processors.thread_of(first + SCR_PEER), 64 + flow % 16);
    EXPECT_EQ(processors.thread_of(first + SCR_HOST), 80 + flow % 4);
  }
}

// Beside a model: the earliest thread that can go on, in the order of numbers; in a thread first come, first served.
TEST(ScrProcessors, RunToCompletionInTheOrderOfTime) {
  constexpr std::uint32_t kFlows = 12, kThreads = 5;
  for (unsigned seed = 1; seed <= 20; seed++) {
    std::mt19937 random(seed);
    Processors processors({kThreads, 1, 1}, (kFlows + 1) * SCR_KINDS);
    struct Model {
      Nanos free_at = 0;
      std::deque<std::pair<Nanos, std::uint32_t>> waiting;
    };
    std::vector<Model> model(kThreads);
    std::vector<bool> stands(kFlows);
    Nanos now = 0;
    for (int i = 0; i < 2000; i++) {
      if (random() % 2) {
        const auto flow = static_cast<std::uint32_t>(random() % kFlows);
        if (!stands[flow]) {
          processors.add(flow * SCR_KINDS + SCR_TX, now + 7);
          model[flow % kThreads].waiting.emplace_back(now + 7, flow * SCR_KINDS + SCR_TX);
          stands[flow] = true;
        }
        now += static_cast<Nanos>(random() % 4);
        continue;
      }
      Nanos first = kNever;
      std::uint32_t who = 0;
      for (std::uint32_t t = 0; t < kThreads; t++)
        if (!model[t].waiting.empty() && std::max(model[t].waiting[0].first, model[t].free_at) < first) {
          first = std::max(model[t].waiting[0].first, model[t].free_at);
          who = t;
        }
      ASSERT_EQ(processors.due(), first);
      if (first == kNever) continue;
      now = std::max(now, first);
      std::uint32_t thread = 99;
      const std::uint32_t key = processors.take(thread);
      EXPECT_EQ(thread, who);
      EXPECT_EQ(key, model[who].waiting[0].second);
      stands[key / SCR_KINDS] = false;
      model[who].waiting.pop_front();
      const Nanos until = first + 1 + static_cast<Nanos>(random() % 9);
      model[who].free_at = until;
      processors.busy(thread, until);
    }
  }
}

}  // namespace
}  // namespace rocebox::scr
