// SPDX-License-Identifier: BSD-3-Clause
// Processors: the DPA's threads, and the multiplexer that hands them events (SCR, 4.3.2, 4.3.3). Deterministic: an
// event of a flow and kind is always the same thread's, threads run to completion and share nothing, and equal times go
// by thread.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/scr/limits.h"
#include "runtime/kernel/deadline_heap.h"

namespace rocebox::scr {

/// Threads by purpose.
enum class Pool : std::uint8_t { kFabric, kPeer, kHost };

constexpr Pool pool_of(unsigned kind) {
  return kind == SCR_PEER ? Pool::kPeer : kind == SCR_HOST ? Pool::kHost : Pool::kFabric;
}

class Processors {
 public:
  /// `threads` of each pool; `keys` queues, numbered as EventQueues has them.
  Processors(const std::array<std::uint32_t, 3>& threads, std::uint32_t keys)
      : waits_(keys), count_(threads[0] + threads[1] + threads[2]) {
    std::uint32_t first = 0;
    for (unsigned pool = 0; pool < 3; pool++) {
      pools_[pool] = {first, threads[pool]};
      first += threads[pool];
    }
    threads_ = std::make_unique<Thread[]>(count_);
    for (std::uint32_t key = 0; key < keys; key++) {
      const Range& pool = pools_[static_cast<unsigned>(pool_of(key % SCR_KINDS))];
      waits_[key].thread = pool.first + key / SCR_KINDS % pool.count;
    }
    due_.reserve(count_);
  }

  std::uint32_t threads() const { return count_; }
  /// Whose events of that queue are: of a flow always the same one's.
  std::uint32_t thread_of(std::uint32_t key) const { return waits_[key].thread; }

  /// An event of that queue can be handled from `ready` on.
  void add(std::uint32_t key, Nanos ready) {
    // Several of one queue stand here once: who takes the first adds the next.
    Wait& wait = waits_[key];
    wait.ready = ready;
    wait.next = kNone;
    Lane& lane = threads_[wait.thread].lane;
    const bool is_first = lane.last == kNone;
    (is_first ? lane.first : waits_[lane.last].next) = key;
    lane.last = key;
    if (is_first && wait.thread != taken_) arm(wait.thread);
  }
  /// When the next event can be handled.
  Nanos due() const { return due_.next(); }
  /// The queue whose event is handled then; `thread` is whose it is. There must be one. Before due() is asked again,
  /// that thread is busy().
  std::uint32_t take(std::uint32_t& thread) {
    thread = static_cast<std::uint32_t>(due_.first_order());
    due_.take_first();
    taken_ = thread;
    Lane& lane = threads_[thread].lane;
    const std::uint32_t key = lane.first;
    lane.first = waits_[key].next;
    if (lane.first == kNone) lane.last = kNone;
    return key;
  }
  /// The thread that took one is busy until then.
  void busy(std::uint32_t number, Nanos until) {
    threads_[number].free_at = until;
    taken_ = kNone;
    if (threads_[number].lane.first != kNone)
      arm(number);
    else
      due_.close();
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Wait {
    Nanos ready = 0;
    std::uint32_t next = kNone;
    std::uint32_t thread = 0;
  };
  struct Lane {
    std::uint32_t first = kNone, last = kNone;
  };
  struct Thread : Deadline {
    Nanos free_at = 0;
    Lane lane;
  };
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  // A thread that something waits for.
  void arm(std::uint32_t number) {
    Thread& thread = threads_[number];
    due_.arm(thread, std::max(waits_[thread.lane.first].ready, thread.free_at), number);
  }

  std::vector<Wait> waits_;
  std::array<Range, 3> pools_;
  std::uint32_t count_;
  std::uint32_t taken_ = kNone;  // the thread between take() and busy()
  std::unique_ptr<Thread[]> threads_;
  DeadlineHeap due_;
};

}  // namespace rocebox::scr
