// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/tap.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace rocebox {

static_assert(kRecordingsMax <= 8, "a slot is a bit of PacketMeta::traced");

bool Selection::takes_ports() const {
  return std::any_of(ports.begin(), ports.end(), [](std::uint8_t ways) { return ways != 0; });
}

bool Selection::takes(const TraceEvent& event) const {
  bool wanted = false;
  if (event.verdict == TraceVerdict::kArrive)
    wanted = event.port < ports.size() && (ports[event.port] & kRx);
  else if (event.verdict == TraceVerdict::kLeave)
    wanted = event.port < ports.size() && (ports[event.port] & kTx);
  else if (event.verdict == TraceVerdict::kDrop)
    wanted = std::binary_search(drops.begin(), drops.end(), event.reason);
  return wanted && (!filter || filter->matches(event.packet));
}

void Tap::set(unsigned slot, const Selection* selection) {
  selections_[slot] = selection;
  every_port = every_drop = false;
  for (const Selection* each : selections_) {
    if (!each) continue;
    every_port |= each->takes_ports();
    every_drop |= !each->drops.empty();
  }
}

bool Tap::idle() const {
  return std::all_of(selections_.begin(), selections_.end(), [](const Selection* each) { return !each; });
}

std::uint8_t Tap::follows(Packet packet) {
  unsigned mark = 0;
  for (unsigned slot = 0; slot < selections_.size(); slot++) {
    const Selection* selection = selections_[slot];
    if (selection && selection->follow && (!selection->filter || selection->filter->matches(packet)))
      mark |= 1u << slot;
  }
  return static_cast<std::uint8_t>(mark);
}

void Tap::record(const TraceEvent& event) {
  unsigned takers = 0;
  std::uint32_t snap_bytes = 0;
  for (unsigned slot = 0; slot < selections_.size(); slot++) {
    const Selection* selection = selections_[slot];
    if (!selection) continue;
    if (selection->follow ? !(event.info.traced & 1u << slot) : !selection->takes(event)) continue;
    takers |= 1u << slot;
    snap_bytes = std::max(snap_bytes, selection->snap_bytes);
  }
  if (takers == 0) return;
  const std::uint32_t held_bytes = std::min(event.packet.size(), snap_bytes);
  std::byte* room = box_.ring.claim(static_cast<std::uint32_t>(sizeof(Record)) + held_bytes);
  if (!room) {
    for (unsigned slot = 0; slot < selections_.size(); slot++)
      if (takers & 1u << slot) box_.lost[slot].add();
    return;
  }
  new (room) Record{event.at,
                    event.stage,
                    event.note,
                    event.reason,
                    event.info,
                    device_,
                    event.packet.wire_bytes(),
                    held_bytes,
                    static_cast<std::uint8_t>(takers),
                    event.verdict,
                    event.port,
                    event.packet.meta().input};
  std::memcpy(room + sizeof(Record), event.packet.data(), held_bytes);
  box_.ring.commit();
}

}  // namespace rocebox
