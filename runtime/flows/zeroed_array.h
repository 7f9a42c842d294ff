// SPDX-License-Identifier: BSD-3-Clause
// ZeroedArray: memory for the state of flows, sized when made; and when the system is asked for its pages.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/packet/reserved_memory.h"

namespace rocebox::flows {

/// The pages that memory is asked for in. Huge ones spare address translations where large blocks of it are walked
/// through again and again, or are used all over; where little of it is used, they cost more memory, and the first use
/// of each costs what zeroing 2 MiB does: hundreds of microseconds, or milliseconds. So they are for what is touched
/// when made. What is smaller than one has small ones.
enum class Pages : std::uint8_t { kSmall, kHuge };
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// When the system is asked for an array's pages: where a TouchedWhenMade lives as the array is made, or, page by page,
/// when first used: for room of which most is never needed.
enum class Touch : std::uint8_t { kWhenMade, kAsUsed };

/// While one lives, the arrays that its thread makes have their pages from the start, the first `bytes_max` of them all
/// together. A drive that must not miss packets has one around the making of its devices: the state of a new flow then
/// costs no page fault. Without one, memory is what is used.
class TouchedWhenMade {
 public:
  explicit TouchedWhenMade(std::size_t bytes_max)
      : before_(std::exchange(left_, bytes_max)), lived_(std::exchange(lives_, true)) {}
  ~TouchedWhenMade() {
    left_ = before_;
    lives_ = lived_;
  }
  TouchedWhenMade(const TouchedWhenMade&) = delete;
  TouchedWhenMade& operator=(const TouchedWhenMade&) = delete;

  /// Of `bytes`, those that may lie in huge pages: where one lives, no more than it will touch.
  static std::size_t huge_max(std::size_t bytes) { return lives_ ? std::min(bytes, left_) : bytes; }

  /// Writes zeros to a byte of each page of memory that holds zeros, from its start on, as far as may be.
  static void touch(void* memory, std::size_t bytes) {
    bytes = std::min(bytes, left_);
    if (bytes == 0) return;
    left_ -= bytes;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* at = static_cast<volatile std::uint8_t*>(memory);
    for (std::size_t i = 0; i < bytes; i += page) at[i] = 0;
    at[bytes - 1] = 0;
  }

 private:
  inline static thread_local std::size_t left_ = 0;
  inline static thread_local bool lives_ = false;
  std::size_t before_;
  bool lived_;
};

/// An array of zero bytes, on a cache line boundary. Where no TouchedWhenMade lives, or with Touch::kAsUsed, it is not
/// written when made: the system gives a page of memory when that is first touched, so a table sized for many flows
/// costs what it holds. Throws std::bad_alloc.
template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_destructible_v<T>);  // ... and zero bytes must be a value of it
  static constexpr std::size_t kAlign = 64;

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(std::size_t size, Pages pages = Pages::kSmall, Touch touch = Touch::kWhenMade) : size_(size) {
    const bool huge = pages == Pages::kHuge && size >= kHugePageBytes / sizeof(T);
    const std::size_t align = huge ? kHugePageBytes : kAlign;
    if (size > (SIZE_MAX - align) / sizeof(T)) throw std::bad_alloc();
    memory_ = ReservedMemory(size * sizeof(T), align);
    data_ = static_cast<T*>(memory_.get());
    // Advice: without huge pages all works as before.
    const std::size_t huge_bytes = TouchedWhenMade::huge_max(size * sizeof(T)) / kHugePageBytes * kHugePageBytes;
    if (huge && huge_bytes) madvise(data_, huge_bytes, MADV_HUGEPAGE);
    if (touch == Touch::kWhenMade) TouchedWhenMade::touch(data_, size * sizeof(T));
  }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  ReservedMemory memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rocebox::flows
