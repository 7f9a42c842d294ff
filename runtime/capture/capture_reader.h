// SPDX-License-Identifier: BSD-3-Clause
// Captures in: pcap and pcapng through libpcap, with nanosecond time, as Ethernet frames.
#pragma once
#include <string>

#include "runtime/capture/capture_filter.h"
#include "runtime/capture/input_stream.h"

struct pcap;

namespace rocebox {

class CaptureReader {
 public:
  enum class Status {
    kPacket,
    kEnd,     ///< the file ends where a record ends, or the stream was told to stop
    kCut,     ///< the file ends inside a record, or inside of what is packed; all before it was read
    kBroken,  ///< not a record that can be used: error() says why
  };

  /// Opens `path`, `-` for standard input; gzip and zstd are unpacked. Throws ConfigError, which begins with the path
  /// (or "standard input"),
  /// for what cannot be read, is no capture, or carries no Ethernet. A stream that is told to stop before its header
  /// came has no records.
  explicit CaptureReader(std::string path, WaitHooks hooks = {});
  ~CaptureReader();
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  Status next(CaptureRecord& record);
  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }
  /// Whether the file goes on behind its packed capture with something else, which was left out.
  bool ignored_rest() const { return stream_.ignored_rest(); }
  /// Records read so far.
  std::uint64_t records() const { return records_; }
  /// Bytes read so far, for progress.
  std::uint64_t position() const { return stream_.position(); }
  /// Size of the file; 0 when unknown (standard input, pipes).
  std::uint64_t file_bytes() const { return stream_.file_bytes(); }

 private:
  Status failed();
  bool take_time(long seconds, long nanos, Nanos& at);
  void set_link_type();

  std::string path_, error_;
  InputStream stream_;  // before pcap_, which reads from it
  pcap* pcap_ = nullptr;
  std::uint32_t skip_front_ = 0, skip_back_ = 0;  // bytes around the Ethernet frame
  std::uint64_t records_ = 0;
};

}  // namespace rocebox
