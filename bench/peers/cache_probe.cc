// SPDX-License-Identifier: BSD-3-Clause
// How long a load takes that waits for the one before it: in a working set of KIB whose lines lie side by side, and in
// as many lines of which each has a page of 4 KiB for itself, in huge pages as far as the system has them. The
// yardsticks of what depends on caches that others share, and on how many pages' places a processor, and a hypervisor
// below it, remembers. usage: cache_probe KIB...  One line each: KIB, and both in nanoseconds.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kLine = 64, kPage = 4096, kHuge = std::size_t{2} << 20, kLoads = 400'000;
struct alignas(kLine) Line {
  const Line* next = nullptr;
};

// Lines that lie `apart` bytes from each other, each at another place of its page, so that all sets of a cache have
// some.
class Lines {
 public:
  Lines(std::size_t count, std::size_t apart)
      : memory_(std::aligned_alloc(kHuge, (count * apart + kHuge - 1) / kHuge * kHuge)), count_(count), apart_(apart) {
    if (!memory_) throw std::bad_alloc();
    (void)madvise(memory_, count * apart, MADV_HUGEPAGE);  // advice
    // One round through all of them in an order that no prefetcher guesses.
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    for (std::size_t i = 0; i < count; i++) new (at(order[i])) Line{at(order[(i + 1) % count])};
  }
  ~Lines() { std::free(memory_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  std::size_t count() const { return count_; }
  Line* at(std::size_t i) const {
    const std::size_t in_page = apart_ > kLine ? i * 37 % (kPage / kLine) * kLine : 0;
    return reinterpret_cast<Line*>(static_cast<std::byte*>(memory_) + i * apart_ + in_page);
  }

 private:
  void* memory_;
  std::size_t count_, apart_;
};

double nanoseconds_a_load(const Lines& lines) {
  const Line* at = lines.at(0);
  const auto follow = [&at](std::size_t loads) {
    for (std::size_t i = 0; i < loads; i++) at = at->next;
  };
  follow(lines.count());
  const auto start = std::chrono::steady_clock::now();
  follow(kLoads);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  if (!at) std::abort();  // so that the loads are not left out
  return took.count() / kLoads;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr unsigned long kKibMax = 64 << 10;  // 4 GiB of pages
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
    const std::size_t lines = kib * 1024 / kLine;
    std::printf("%lu %.1f %.1f\n", kib, nanoseconds_a_load({lines, kLine}), nanoseconds_a_load({lines, kPage}));
  }
}
