// SPDX-License-Identifier: BSD-3-Clause
// What the engine tells about packets that a trace follows.
#pragma once
#include <cstdint>
#include <string_view>

#include "runtime/kernel/counter.h"
#include "runtime/packet/packet.h"

namespace rocebox {

enum class TraceVerdict : std::uint8_t {
  kArrive,  ///< came in by device port `port`
  kPass,    ///< the kernel's default
  kSend,    ///< the kernel chose output `port`
  kDrop,    ///< ends here; `reason` says why
  kHold,    ///< the kernel keeps it
  kEmit,    ///< a held or made packet goes on by output `port`
  kLeave,   ///< went out by device port `port`
  kNote,    ///< the kernel did what `note` says to a packet that goes on
};

/// What identifies a packet after its bytes are gone.
struct TraceInfo {
  std::uint64_t sequence;  ///< number of arrival at the device; 0: made
  std::uint32_t qpn, psn;
  std::uint8_t opcode;
  bool traced, has_bth;
};
/// Takes the identity of a packet; cheap enough for traced runs only.
TraceInfo trace_info(Packet packet);

struct TraceEvent {
  Nanos at;
  std::string_view stage;  ///< kernel name; empty at the device's ports
  TraceVerdict verdict;
  Port port;
  const Counter* reason;  ///< for kDrop
  TraceInfo info;
  Packet packet;               ///< as the kernel left it; valid during the call
  std::string_view note = {};  ///< for kNote
};

class TraceSink {
 public:
  /// Whether a packet that enters or was made is to be followed.
  virtual bool follows(Packet packet) = 0;
  virtual void record(const TraceEvent& event) = 0;

 protected:
  ~TraceSink() = default;
};

}  // namespace rocebox
