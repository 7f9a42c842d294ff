// SPDX-License-Identifier: BSD-3-Clause
// Captures out: pcap and pcapng with nanosecond time. A file appears under its name when it is complete.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/packet/packet.h"

namespace rocebox {

/// Writes one capture. Until finish() the bytes go to `NAME.part`, which the destructor removes: a failed run leaves
/// nothing under the final name. Standard output, devices and pipes are written directly.
class CaptureWriter {
 public:
  /// `path` ends in `.pcapng` for pcapng, else the format is pcap; `-` is standard output. `interfaces` name the
  /// places of capture (pcapng has one interface block each). Throws ConfigError when it cannot be opened.
  CaptureWriter(std::string path, std::vector<std::string> interfaces);
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  /// `at` is nanoseconds since 1970. `comment` is for pcapng. Errors are kept for failed().
  void write(unsigned interface, Nanos at, Packet packet, std::string_view comment = {});

  /// The reason when a write failed, else empty. Cheap.
  std::string failed() const;
  /// Flushes, closes and gives the file its name. Throws std::runtime_error naming file and reason.
  void finish();

  const std::string& path() const { return path_; }
  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void write_header(const std::vector<std::string>& interfaces);
  void put(const void* data, std::size_t size);
  [[noreturn]] void fail();

  std::string path_, part_;  // part_ is empty when written directly
  std::FILE* file_ = nullptr;
  bool pcapng_ = false;
  int error_ = 0;
  std::vector<char> buffer_;
  std::uint64_t packets_ = 0, bytes_ = 0;
};

}  // namespace rocebox
