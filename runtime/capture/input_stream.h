// SPDX-License-Identifier: BSD-3-Clause
// Bytes in: files, pipes and standard input, whose end can also be asked for from outside.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "runtime/capture/unpacker.h"

namespace rocebox {

/// A request, by a signal, that a run ends early.
class StopRequest {
 public:
  /// Throws std::runtime_error when there is no descriptor left.
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  /// May be called in a signal handler.
  void request() noexcept;
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  /// Readable from the request on, so that it ends a wait that has already begun.
  int descriptor() const noexcept { return event_; }

 private:
  std::atomic<bool> requested_{false};
  int event_;
};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

/// What waiting for a pipe is tied to.
struct WaitHooks {
  const StopRequest* stop = nullptr;     ///< ends the wait, and with it the stream
  std::function<bool()> before_waiting;  ///< called when nothing is there to read; false ends the stream. Never throws
};

/// A FILE to read from; what is packed with gzip or zstd comes unpacked. A request to stop is the end of the stream,
/// however long the writer of a pipe keeps silent.
class InputStream {
 public:
  /// `path`: `-` is standard input. Throws ConfigError without the name of the file. A FIFO is opened without waiting
  /// for its writer; reading waits.
  InputStream(const std::string& path, WaitHooks hooks);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Made once; whoever takes it closes it, before this object goes.
  std::FILE* open_file();
  /// Whether the stream ended because of a request.
  bool stopped() const { return stopped_; }
  /// Whether what is packed ended before its end, or why it cannot be unpacked.
  bool cut() const { return unpacker_.cut(); }
  const std::string& error() const { return unpacker_.error(); }
  /// Whether something else stands behind what is packed, and was left out.
  bool ignored_rest() const { return unpacker_.ignored_rest(); }
  /// Bytes read, packed as they are.
  std::uint64_t position() const { return position_; }
  /// Size of a regular file, else 0.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Whether `path` is something to wait for: standard input, a pipe, a device.
  static bool waits(const std::string& path);

 private:
  bool wait();
  long read(char* buffer, std::size_t size);

  int descriptor_ = -1;
  bool owned_ = false, regular_ = false, stopped_ = false;
  WaitHooks hooks_;
  Unpacker unpacker_;
  std::uint64_t position_ = 0, file_bytes_ = 0;
  std::vector<char> buffer_;
};

}  // namespace rocebox
