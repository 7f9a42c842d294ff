// SPDX-License-Identifier: BSD-3-Clause
// Handles: what the C API gives out instead of pointers: numbers that are checked, so that a wrong one, or one of what
// is gone, is an error and no crash.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace rocebox::libsdr {

enum class HandleKind : std::uint8_t { kContext = 1, kQueuePair, kMemory, kSend, kReceive, kReliable, kTransfer };

/// Finding one takes no lock; adding and removing do.
class Handles {
 public:
  using Value = std::uintptr_t;
  static Handles& get();

  /// 0: there are as many as there can be. Add a handle before what it stands for is begun, or that cannot be undone.
  Value add(HandleKind kind, void* object);
  /// False: it is gone already, so another thread has removed it.
  bool remove(Value value);
  /// Null: it is none of that kind.
  void* find(HandleKind kind, Value value) const;
  /// Whether it is given out, and not removed.
  bool has(Value value) const { return find(static_cast<HandleKind>(value >> 56), value) != nullptr; }

  static constexpr std::size_t kMost = 1u << 24;
  /// From now on there are at most so many places, up to kMost; those that are given out stay.
  void limit(std::size_t most);

 private:
  // A value: kind << 56 | generation << 32 | place << 8 | 0xA5.
  static constexpr std::size_t kEntries = 4096, kSegments = kMost / kEntries;
  struct Entry {
    std::atomic<Value> value{0};
    std::atomic<void*> object{nullptr};
    std::uint32_t generation = 0;
  };
  Entry* at(std::size_t place) const {
    Entry* segment =
        place / kEntries < kSegments ? segments_[place / kEntries].load(std::memory_order_acquire) : nullptr;
    return segment ? segment + place % kEntries : nullptr;
  }

  std::array<std::atomic<Entry*>, kSegments> segments_{};
  std::mutex change_;
  std::deque<std::size_t> free_;
  std::size_t used_ = 0, most_ = kMost;
};

/// Objects behind handles. They are used again and never freed, so that a thread that looks at one which another has
/// just destroyed finds no other memory there.
template <class T>
class ObjectPool {
 public:
  static ObjectPool& get() {
    static auto* const pool = new ObjectPool;
    return *pool;
  }
  T* take() {
    const std::lock_guard lock(change_);
    if (free_.empty()) return &all_.emplace_back();
    T* one = free_.back();
    free_.pop_back();
    return one;
  }
  void give_back(T* one) {
    const std::lock_guard lock(change_);
    free_.push_back(one);
  }

 private:
  std::mutex change_;
  std::deque<T> all_;
  std::vector<T*> free_;
};

}  // namespace rocebox::libsdr
