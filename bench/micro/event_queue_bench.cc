// SPDX-License-Identifier: BSD-3-Clause
// What an event costs by the structure that keeps what is due, see event_queues.h. Two loads:
//   devices  10,000 devices of a fabric, each with one time: most are due within microseconds, some within minutes. One
//            that is due hands a packet to another, whose time becomes an earlier one.
//   timers   1,000,000 retransmission timers: nine of ten events are an ACK, which moves a timer that has not fired;
//   the
//            tenth lets the earliest fire.
//   acks     10,000 of them, whose ACKs come in the order of their packets: each moves the earliest timer to the end,
//   and
//            the drive asks what is next.
#include <benchmark/benchmark.h>

#include <random>

#include "bench/micro/event_queues.h"

namespace rocebox::bench {
namespace {

constexpr std::size_t kDevices = 10'000, kTimers = 1'000'000, kDraws = 1 << 20;
constexpr Nanos kMicrosecond = 1'000, kMillisecond = 1'000'000;

// Draws made before, so that none is timed.
struct Draws {
  explicit Draws(std::size_t items) {
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < kDraws; i++) {
      item.push_back(static_cast<std::uint32_t>(random() % items));
      soon.push_back(static_cast<Nanos>(80 + random() % (10 * kMicrosecond)));
      far.push_back(static_cast<Nanos>(random() % (300'000 * kMillisecond)));
      timeout.push_back(static_cast<Nanos>(4 * kMillisecond + random() % kMillisecond));
    }
  }
  std::vector<std::uint32_t> item;
  std::vector<Nanos> soon, far, timeout;
};

template <class Queue>
void devices(benchmark::State& state) {
  const Draws draws(kDevices);
  Queue queue(kDevices);
  std::vector<Nanos> due(kDevices);
  for (std::uint32_t i = 0; i < kDevices; i++) queue.arm(i, due[i] = draws.soon[i % kDraws]);
  std::size_t n = 0;
  for (auto _ : state) {
    n = (n + 1) % kDraws;
    Nanos now;
    const std::uint32_t first = queue.pop(now);
    queue.arm(first, due[first] = now + (n % 16 ? draws.soon[n] : draws.far[n]));
    const std::uint32_t other = draws.item[n];
    const Nanos at = now + draws.soon[(n + 1) % kDraws] / 8;
    if (at < due[other]) queue.arm(other, due[other] = at);
  }
  state.counters["entries"] = static_cast<double>(queue.entries());
}

template <class Queue>
void timers(benchmark::State& state) {
  const Draws draws(kTimers);
  Queue queue(kTimers);
  for (std::uint32_t i = 0; i < kTimers; i++) queue.arm(i, draws.timeout[i % kDraws] + i % 4096);
  std::size_t n = 0;
  Nanos now = 0;
  for (auto _ : state) {
    n = (n + 1) % kDraws;
    if (n % 10 == 0) {
      const std::uint32_t first = queue.pop(now);
      queue.arm(first, now + draws.timeout[n]);
    } else {
      queue.arm(draws.item[n], now + draws.timeout[n]);
    }
  }
  state.counters["entries"] = static_cast<double>(queue.entries());
}

template <class Queue>
void acks(benchmark::State& state) {
  constexpr Nanos kTimeout = 4 * kMillisecond, kBetween = 80;
  Queue queue(kDevices);
  Nanos now = 0;
  for (std::uint32_t i = 0; i < kDevices; i++) queue.arm(i, (now += kBetween) + kTimeout);
  std::uint32_t item = 0;
  for (auto _ : state) {
    queue.arm(item, (now += kBetween) + kTimeout);
    if (++item == kDevices) item = 0;
    benchmark::DoNotOptimize(queue.next());
  }
  state.counters["entries"] = static_cast<double>(queue.entries());
}

template <class Queue>
void all(const char* name) {
  benchmark::RegisterBenchmark((std::string("devices/") + name).c_str(), devices<Queue>)->Iterations(500'000);
  benchmark::RegisterBenchmark((std::string("timers/") + name).c_str(), timers<Queue>)->Iterations(2'000'000);
  benchmark::RegisterBenchmark((std::string("acks/") + name).c_str(), acks<Queue>)->Iterations(50'000);
}

const bool kRegistered = [] {
  all<StaleHeap>("heap of copies");
  all<NaryHeap<2>>("indexed heap, 2");
  all<NaryHeap<4>>("indexed heap, 4");
  all<NaryHeap<8>>("indexed heap, 8");
  all<Wheel>("wheel before a heap");
  all<RadixHeap>("radix heap");
  all<CalendarQueue>("calendar queue");
  return true;
}();

}  // namespace
}  // namespace rocebox::bench
