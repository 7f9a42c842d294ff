// SPDX-License-Identifier: BSD-3-Clause
// Captures in: pcap and pcapng through libpcap, with nanosecond time, as Ethernet frames.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/packet/packet.h"

struct pcap;
struct bpf_program;

namespace rocebox {

/// A frame in a capture. `bytes` are valid until the next call.
struct CaptureRecord {
  Nanos at = 0;                  ///< nanoseconds since 1970
  std::uint32_t wire_bytes = 0;  ///< frame length without FCS
  std::span<const std::uint8_t> bytes;
};

/// A compiled libpcap filter over Ethernet frames.
class CaptureFilter {
 public:
  /// Throws ConfigError with libpcap's explanation. An empty text matches everything.
  explicit CaptureFilter(const std::string& text);
  ~CaptureFilter();
  CaptureFilter(CaptureFilter&&) noexcept;
  CaptureFilter& operator=(CaptureFilter&&) = delete;
  bool matches(const CaptureRecord& record) const;

 private:
  std::unique_ptr<bpf_program> program_;
};

class CaptureReader {
 public:
  enum class Status {
    kPacket,
    kEnd,     ///< the file ends where a record ends
    kCut,     ///< the file ends inside a record; all before it was read
    kBroken,  ///< not a record: error() says what libpcap found
  };

  /// Opens `path`, `-` for standard input. Throws ConfigError for what cannot be read, is no capture, or carries no
  /// Ethernet.
  explicit CaptureReader(std::string path);
  ~CaptureReader();
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  Status next(CaptureRecord& record);
  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }
  /// Records read so far.
  std::uint64_t records() const { return records_; }
  /// Bytes of the file that were read, for progress; 0 when unknown (standard input).
  std::uint64_t position() const;
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  std::string path_, error_;
  pcap* pcap_ = nullptr;
  std::uint32_t skip_front_ = 0, skip_back_ = 0;  // bytes of the link type around the Ethernet frame
  std::uint64_t records_ = 0, file_bytes_ = 0;
};

}  // namespace rocebox
