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
  std::uint64_t identity;  ///< the same in all devices that hand packets to each other
  std::uint32_t qpn, psn;
  std::uint8_t opcode;
  std::uint8_t traced;  ///< what TraceSink::follows() said
  bool has_opcode;
  bool has_qpn_and_psn;
  bool made;  ///< by a kernel of the device
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
  /// Whether a packet that enters or was made is to be followed: 0, or a mark that its events will bear.
  virtual std::uint8_t follows(Packet packet) = 0;
  virtual void record(const TraceEvent& event) = 0;

  bool every_port = false;  ///< kArrive and kLeave of all packets are recorded, of those that nobody follows too
  bool every_drop = false;  ///< kDrop likewise; packets that were held before the trace began are among them

 protected:
  ~TraceSink() = default;
};

}  // namespace rocebox
