// SPDX-License-Identifier: BSD-3-Clause
// Bytes out to what may have no room for them: pipes, terminals, devices, and whatever standard output is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace rocebox {

/// How long an output waits for whoever reads from a named pipe. Bounded: opening fails when nobody reads, and so does
/// writing when the reader takes nothing for two seconds.
enum class Patience : std::uint8_t { kEndless, kBounded };

/// What waiting for a reader is tied to.
struct Waiting {
  Waiting(Patience how = Patience::kEndless, int descriptor = -1) : patience(how), stop(descriptor) {}
  Patience patience;
  /// A descriptor that is readable from when the run is to end on; -1: there is none. Opening fails then, and a reader
  /// has two seconds more to take something.
  int stop;
  int milliseconds = 2000;  ///< that patience which is bounded lasts
};

/// Writes to a descriptor, and never waits longer than `waiting` says: the first wait that is in vain is the last, so
/// that a reader who takes nothing holds up nobody for long. Needs no non-blocking descriptor, which those who share
/// standard output with us would see.
class DirectStream {
 public:
  /// Takes over the descriptor.
  DirectStream(int descriptor, Waiting waiting);
  ~DirectStream();
  DirectStream(const DirectStream&) = delete;
  DirectStream& operator=(const DirectStream&) = delete;

  /// A FILE that writes through this; whoever takes it closes it, before this object goes. Null, with errno.
  std::FILE* open_file();
  /// How much was written; less than all, with errno, is the end.
  long write(const char* data, std::size_t size);

 private:
  bool wait();
  int descriptor_;
  Waiting waiting_;
  std::size_t piece_bytes_;
  int error_ = 0;
};

/// Opens a named pipe for writing, as soon as somebody reads from it. -1 with errno: ENXIO when nobody does and
/// patience is bounded, ECANCELED when the run is to end.
int open_fifo(const std::string& path, Waiting waiting);

}  // namespace rocebox
