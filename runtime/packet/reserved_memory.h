// SPDX-License-Identifier: BSD-3-Clause
// ReservedMemory: room for the most that there can be, of which little is used.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>  // its macros do nothing where AddressSanitizer is not
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#endif

namespace rocebox {

/// A block of zero bytes. Where it is large, the system itself gives a page of it when that is first touched:
/// AddressSanitizer's allocator would write down of every byte that it is there, and then that it is gone, an eighth of
/// a gibibyte each for a table of one. AddressSanitizer finds who touches what lies right behind the block.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  /// `bytes` on a boundary of `align`, a power of two; `zeroed` false: what is in them does not matter. Throws
  /// std::bad_alloc.
  ReservedMemory(std::size_t bytes, std::size_t align, bool zeroed = true) {
    if (bytes > SIZE_MAX - align - kFence) throw std::bad_alloc();
    std::size_t space = bytes + align + kFence;
    large_ = space >= kLarge ? space : 0;
    block_ = large_   ? mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
             : zeroed ? std::calloc(space, 1)
                      : std::malloc(space);
    if (block_ == MAP_FAILED) block_ = nullptr;
    if (!block_) throw std::bad_alloc();
    start_ = block_;
    std::align(align, bytes, start_, space);
    fence_ = static_cast<std::byte*>(start_) + bytes;
    ASAN_POISON_MEMORY_REGION(fence_, kFence);
  }
  ReservedMemory(ReservedMemory&& other) noexcept { swap(other); }
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    ReservedMemory(std::move(other)).swap(*this);
    return *this;
  }
  ~ReservedMemory() {
    if (!block_) return;
    ASAN_UNPOISON_MEMORY_REGION(fence_, kFence);
    if (large_)
      munmap(block_, large_);
    else
      std::free(block_);
  }

  void* get() const { return start_; }
  void swap(ReservedMemory& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(start_, other.start_);
    std::swap(fence_, other.fence_);
    std::swap(large_, other.large_);
  }

 private:
  static constexpr std::size_t kLarge = 128 << 10;  // as malloc's own first bound
  static constexpr std::size_t kFence = 64;         // that nobody may touch

  void* block_ = nullptr;
  void* start_ = nullptr;
  void* fence_ = nullptr;
  std::size_t large_ = 0;  // bytes of the mapping; 0: malloc's
};

/// Room for `size` values, none of which is made: where each is written before it is read.
template <class T>
class ReservedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// Throws std::bad_alloc.
  explicit ReservedArray(std::size_t size)
      : memory_(size <= SIZE_MAX / sizeof(T) ? size * sizeof(T) : throw std::bad_alloc(), alignof(T), false) {}
  T* get() const { return static_cast<T*>(memory_.get()); }
  T& operator[](std::size_t i) const { return get()[i]; }
  void swap(ReservedArray& other) noexcept { memory_.swap(other.memory_); }

 private:
  ReservedMemory memory_;
};

}  // namespace rocebox
