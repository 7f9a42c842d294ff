// SPDX-License-Identifier: BSD-3-Clause
// Recorder: traces and captures of a live run, switched on and off while packets flow.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/drives/live/recording.h"
#include "runtime/drives/run_files.h"

namespace rocebox {

/// The cores copy what is wanted into a ring each; a thread of its own writes it, in the order of time. What finds no
/// room in a ring is lost to the recordings and counted; the packets themselves are never touched. Without recordings
/// the devices are not traced at all, and the thread sleeps.
class Recorder {
 public:
  /// `ring_bytes` for each shard, from the first recording on; a power of two.
  Recorder(Live& live, const config::RunConfig& config, std::size_t ring_bytes = kRecordRingBytes);
  /// As finish().
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// No recording may be written to any of these from now on, which the run reads or writes. On any thread.
  void spare(const RunFiles& files);
  /// One row for each of them, for clients that write a recording themselves (RunFiles::rows).
  std::vector<std::string> spared() const;
  /// Starts a recording and returns its number. Files are this process's to open. Throws ConfigError. On any thread but
  /// the shards'.
  unsigned start(RecordingRequest request);
  /// Ends one: its files are complete when list() says that it is done. Throws ConfigError when there is none of that
  /// number.
  void stop(unsigned id);
  /// A row for each that runs, and for the last of those that have ended.
  Json list() const;

  /// Ends all, and returns when their files are complete. What happened is in list().
  void finish();

 private:
  struct Slot {
    std::unique_ptr<Recording> recording;
    bool stop = false;
    std::vector<std::uint64_t> lost_before;  // by shard: what the counters said when it began
  };
  // A caller that holds it keeps the thread waiting, not the other way round: a mutex alone is not fair to one that
  // asks once.
  class Hold {
   public:
    explicit Hold(const Recorder& recorder) : asked_(recorder.asked_) {
      asked_++;
      lock_ = std::unique_lock(recorder.mutex_);
    }
    ~Hold() { asked_--; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    std::atomic<unsigned>& asked_;
    std::unique_lock<std::mutex> lock_;
  };
  void attach(unsigned slot, const Recording* recording);
  std::uint64_t lost(unsigned slot) const;
  void work();
  bool write_until(Nanos limit);
  bool fills();
  void end(unsigned slot);
  bool any() const;

  Live& live_;
  const config::RunConfig& config_;
  std::size_t ring_bytes_;
  mutable std::atomic<unsigned> asked_{0};  // by threads that wait for the mutex or have it
  mutable std::mutex mutex_;                // all below
  std::condition_variable wake_;
  std::vector<std::unique_ptr<RecordBox>> boxes_;  // by shard
  std::vector<std::deque<Tap>> taps_;              // by shard, by device
  std::vector<Slot> slots_{kRecordingsMax};
  std::deque<Json> ended_;
  RunFiles spared_;
  unsigned next_id_ = 1, next_slot_ = 0;
  bool finished_ = false;
  std::thread thread_;  // the last: it uses all the others
};

}  // namespace rocebox
