// SPDX-License-Identifier: BSD-3-Clause
// Packed: memory for the objects of one type, side by side.
#pragma once
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

namespace rocebox {

/// Thousands of objects that are used by turns lie on as few pages as they fill: a processor remembers the places of
/// some thousand pages. A type whose `operator new` and `delete` use this is allocated by allocate() and release(), on
/// any thread. What is given back is used again, and nothing goes back to the system. Throws std::bad_alloc.
template <class T>
class Packed {
 public:
  static void* allocate() {
    Packed& all = instance();
    const std::lock_guard lock(all.mutex_);
    if (all.free_.empty()) all.grow();
    void* const place = all.free_.back();
    all.free_.pop_back();
    return place;
  }
  static void release(void* place) noexcept {
    if (!place) return;
    Packed& all = instance();
    const std::lock_guard lock(all.mutex_);
    all.free_.push_back(place);  // there is room for all
  }

 private:
  static constexpr std::size_t kPage = 4096, kAtOnce = 64;
  static Packed& instance() {
    static auto* all = new Packed;  // it outlives whatever is in it
    return *all;
  }
  // The last are taken first, so what is made one after the other lies so.
  void grow() {
    places_ += kAtOnce;
    free_.reserve(places_);
    auto* const chunk = static_cast<std::byte*>(::operator new (kAtOnce * sizeof(T), std::align_val_t{kPage}));
    for (std::size_t i = kAtOnce; i-- > 0;) free_.push_back(chunk + i * sizeof(T));
  }

  std::mutex mutex_;
  std::vector<void*> free_;
  std::size_t places_ = 0;
};

}  // namespace rocebox
