// SPDX-License-Identifier: BSD-3-Clause
// libpcap filters over Ethernet frames, with or without VLAN tags.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/packet/packet.h"

struct bpf_program;

namespace rocebox {

/// A frame in a capture. `bytes` are valid until the next call.
struct CaptureRecord {
  Nanos at = 0;                  ///< nanoseconds since 1970
  std::uint32_t wire_bytes = 0;  ///< frame length without FCS
  std::span<const std::uint8_t> bytes;
};

/// A compiled libpcap filter. libpcap's `src host X` means untagged frames only; here it looks behind the VLAN tags,
/// as a user means it. A filter that speaks of the tags itself, by `vlan` or `ether[...]`, sees the frame as it is.
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
  bool sees_tags_ = false;
  mutable std::vector<std::uint8_t> untagged_;  // a frame without its tags
};

}  // namespace rocebox
