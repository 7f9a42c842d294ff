// SPDX-License-Identifier: BSD-3-Clause
// How long a load takes that waits for the one before it, in a working set of KIB on pages as the system gives them:
// the yardstick of what depends on caches that others share. usage: cache_probe KIB...  One line each: KIB, and
// nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kLine = 64, kLoads = 400'000;
struct alignas(kLine) Line {
  std::size_t next = 0;
};

// One round through all lines in an order that no prefetcher guesses.
std::vector<Line> ring(std::size_t lines) {
  std::vector<std::size_t> order(lines);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  std::vector<Line> all(lines);
  for (std::size_t i = 0; i < lines; i++) all[order[i]].next = order[(i + 1) % lines];
  return all;
}

double nanoseconds_a_load(const std::vector<Line>& all) {
  std::size_t at = 0;
  const auto follow = [&all, &at](std::size_t loads) {
    for (std::size_t i = 0; i < loads; i++) at = all[at].next;
  };
  follow(all.size());
  const auto start = std::chrono::steady_clock::now();
  follow(kLoads);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  if (at >= all.size()) std::abort();  // so that the loads are not left out
  return took.count() / kLoads;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr unsigned long kKibMax = 1 << 20;
  if (argc < 2) {
    std::fprintf(stderr, "usage: cache_probe KIB...\n");
    return 2;
  }
  for (int i = 1; i < argc; i++) {
    char* end = nullptr;
    const unsigned long kib = std::strtoul(argv[i], &end, 10);
    if (*end != '\0' || kib == 0 || kib > kKibMax) {
      std::fprintf(stderr, "cache_probe: %s is no number of KiB from 1 to %lu\n", argv[i], kKibMax);
      return 2;
    }
    std::printf("%lu %.1f\n", kib, nanoseconds_a_load(ring(kib * 1024 / kLine)));
  }
}
