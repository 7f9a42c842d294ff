// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/contracts/allocations.h"

#include <cstdlib>
#include <new>

namespace {
bool counting = false;
std::uint64_t allocations = 0;
}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ROCEBOX_SANITIZED)
constexpr bool kCounted = false;
#else
constexpr bool kCounted = true;
void* operator new(std::size_t size) {
  if (counting) allocations++;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace rocebox::test {
bool allocations_are_counted() { return kCounted; }
std::uint64_t count_allocations(bool on) {
  counting = on;
  return allocations;
}
void reset_allocations() { allocations = 0; }
}  // namespace rocebox::test
