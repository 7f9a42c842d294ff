// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace rocebox {
namespace {

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20, kPage = 4096;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers do not have
constexpr int kLargeBlock = 128 << 10;

void* address(std::uintptr_t at) { return reinterpret_cast<void*>(at); }
std::uintptr_t rounded_up(std::uintptr_t at) { return (at + kHugePage - 1) & ~(kHugePage - 1); }
std::uintptr_t rounded_down(std::uintptr_t at) { return at & ~(kHugePage - 1); }

// Whether a good part of a huge page is in memory already: what was never touched is to stay so.
bool is_dense(std::uintptr_t page) {
  std::array<unsigned char, kHugePage / kPage> present;
  if (mincore(address(page), kHugePage, present.data()) != 0) return false;
  return std::ranges::count_if(present, [](unsigned char p) { return p & 1; }) >= std::ssize(present) / 4;
}

void collapse(std::uintptr_t start, std::uintptr_t end) {
  for (std::uintptr_t page = rounded_up(start); page < rounded_down(end); page += kHugePage)
    if (is_dense(page) && madvise(address(page), kHugePage, kCollapse) != 0) return;
}

}  // namespace

void keep_large_blocks_apart() { (void)mallopt(M_MMAP_THRESHOLD, kLargeBlock); }

void use_huge_pages_for_heap() {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (!maps) return;
  std::array<char, 512> line;
  unsigned long start = 0, end = 0;
  bool found = false;
  while (!found && std::fgets(line.data(), line.size(), maps)) {
    int name = 0;
    found = std::sscanf(line.data(), "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &name) == 2 && name > 0 &&
            std::string_view(line.data() + name).starts_with("[heap]");
  }
  std::fclose(maps);
  if (found) collapse(start, end);
}

}  // namespace rocebox
