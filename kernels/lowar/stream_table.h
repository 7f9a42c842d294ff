// SPDX-License-Identifier: BSD-3-Clause
// The streams of one direction: by key, and in the order of their use, so that one that has been idle gives its place
// to a new one. All memory is taken when made; every call takes constant time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/lowar/stream.h"
#include "runtime/flows/flow_table.h"
#include "runtime/packet/packet.h"
#include "runtime/packet/prefetch.h"

namespace rocebox::lowar {

/// `Stream` is what is kept of one; a new one is Stream{}.
template <class Stream>
class StreamTable {
 public:
  static constexpr std::uint32_t kNone = flows::FlowTable<StreamKey>::kNone;

  /// `count` streams, of which those give their place that were not used for `idle`.
  StreamTable(std::uint32_t count, Nanos idle) : idle_(idle), grain_(idle / 16), table_(count), entries_(count) {}

  std::uint64_t hash(const StreamKey& key) const { return table_.hash(key); }
  void prefetch(std::uint64_t hash) const { table_.prefetch(hash); }
  void prefetch_stream(std::uint32_t index) const { prefetch_lines(&entries_[index], &entries_[index] + 1); }
  Stream& operator[](std::uint32_t index) { return entries_[index].stream; }
  std::uint32_t index_of(const Stream& stream) const {
    const auto bytes = reinterpret_cast<const char*>(&stream) - reinterpret_cast<const char*>(entries_.data());
    return static_cast<std::uint32_t>(static_cast<std::size_t>(bytes) / sizeof(Entry));
  }

  std::uint32_t find(const StreamKey& key, std::uint64_t hash) const { return table_.find(key, hash); }
  std::uint32_t find(const StreamKey& key) const { return table_.find(key); }

  /// The number of the key's stream, which is used now; kNone when it is new and there is no place.
  std::uint32_t use(const StreamKey& key, std::uint64_t hash, Nanos now) {
    const std::uint32_t known = table_.size();
    const std::uint32_t index = table_.insert(key, hash);
    if (index == kNone) return kNone;
    Entry& entry = entries_[index];
    if (table_.size() != known) {
      entry.stream = Stream{};
      link(index, now);
    } else if (now - entry.used >= grain_) {  // seldom: the order need not be finer
      unlink(index);
      link(index, now);
    }
    return index;
  }

  /// As use(), after a retire() where there is no place.
  template <class Release>
  std::uint32_t use(const StreamKey& key, std::uint64_t hash, Nanos now, Release release) {
    const std::uint32_t index = use(key, hash, now);
    if (index != kNone || !retire(now, release)) return index;
    return use(key, hash, now);
  }

  /// The stream that has been idle for longest, when for the time given or more, gives its place and what else it has:
  /// `release(stream)` takes that, or returns false when the stream has to stay. False: none has gone.
  template <class Release>
  bool retire(Nanos now, Release release) {
    if (oldest_ == 0 || now - entries_[oldest_ - 1].used < idle_ + grain_) return false;
    const std::uint32_t index = oldest_ - 1;
    if (!release(entries_[index].stream)) return false;
    unlink(index);
    table_.erase(index);
    return true;
  }

  /// Bytes of memory that so many streams take, when all are in use.
  static constexpr std::size_t bytes(std::uint32_t count) {
    return flows::FlowTable<StreamKey>::bytes(count) + count * sizeof(Entry);
  }

 private:
  struct Entry {
    Stream stream;
    Nanos used;                  // within `grain_`
    std::uint32_t older, newer;  // number + 1; 0: none
  };

  void link(std::uint32_t index, Nanos now) {
    Entry& entry = entries_[index];
    entry.used = now;
    entry.older = newest_;
    entry.newer = 0;
    (newest_ ? entries_[newest_ - 1].newer : oldest_) = index + 1;
    newest_ = index + 1;
  }
  void unlink(std::uint32_t index) {
    const Entry& entry = entries_[index];
    (entry.older ? entries_[entry.older - 1].newer : oldest_) = entry.newer;
    (entry.newer ? entries_[entry.newer - 1].older : newest_) = entry.older;
  }

  Nanos idle_, grain_;
  std::uint32_t oldest_ = 0, newest_ = 0;
  flows::FlowTable<StreamKey> table_;
  flows::ZeroedArray<Entry> entries_;
};

}  // namespace rocebox::lowar
