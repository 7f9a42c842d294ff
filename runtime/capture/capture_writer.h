// SPDX-License-Identifier: BSD-3-Clause
// Captures out: pcap and pcapng with nanosecond time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/capture/output_file.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// Which way a packet went, as pcapng knows it.
enum class Direction : std::uint8_t { kUnknown, kInbound, kOutbound };

/// What a capture keeps of a packet: the bytes held, its length on the wire, its direction.
struct CapturedFrame {
  std::span<const std::uint8_t> held;
  std::uint32_t wire_bytes;
  Direction direction = Direction::kUnknown;
};

/// Writes one capture to an OutputFile: a failed run leaves nothing under the final name.
class CaptureWriter {
 public:
  /// `path` ends in `.pcapng` for pcapng, else the format is pcap; `-` is standard output, `-.pcapng` too. `interfaces`
  /// name the places of capture (pcapng has one interface block each). Throws ConfigError when it cannot be opened.
  CaptureWriter(const std::string& path, const std::vector<std::string>& interfaces, Waiting waiting = {});

  /// `at` is nanoseconds since 1970. `comment` is for pcapng. Errors are kept for failed().
  void write(unsigned interface, Nanos at, Packet packet, std::string_view comment = {}) {
    write(interface, at, {packet.bytes(), packet.wire_bytes()}, comment);
  }
  void write(unsigned interface, Nanos at, const CapturedFrame& frame, std::string_view comment = {});
  /// Says in a pcapng that its maker lost so many packets: the file has what was left.
  void write_lost(std::uint64_t packets);

  OutputFile& file() { return file_; }
  /// Closes the file and gives it its name. Throws std::runtime_error naming file and reason.
  void finish() {
    file_.close();
    file_.publish();
  }
  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void write_header(const std::vector<std::string>& interfaces);

  OutputFile file_;
  bool pcapng_;
  std::uint64_t packets_ = 0, bytes_ = 0;
};

/// Whether a capture of that name is written as pcapng.
inline bool is_pcapng_name(std::string_view path) { return path.ends_with(".pcapng"); }

}  // namespace rocebox
