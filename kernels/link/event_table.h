// SPDX-License-Identifier: BSD-3-Clause
// The explicit faults of one direction: finds those that a packet meets, and remembers what they
// did.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/link/config.h"
#include "runtime/kernel/report.h"

namespace rocebox::link {

/// Firings listed in the report; beyond, they are only counted.
inline constexpr std::size_t kFiringsMax = 65536;

/// One firing, as it is reported: 32 bytes.
struct Firing {
  Nanos at;
  std::uint64_t packet;    ///< number in its direction, from 1
  std::uint32_t event;     ///< place in the list, from 0
  std::uint32_t qpn, psn;  ///< as the packet came
  std::uint8_t opcode;
  bool has_bth, applied;
};

class EventTable {
 public:
  /// `events` must outlive the table.
  explicit EventTable(const std::vector<Event>& events);

  bool empty() const { return events_.empty(); }

  /// Calls `fire(event, firing)` for every event that packet number `index` meets, in the order of
  /// the list; `fire` returns whether to go on. Call once a packet, in order.
  template <class Fire>
  void match(std::uint64_t index, Packet packet, Nanos now, Fire fire);

  void record(const Firing& firing);
  void report(Report& report) const;

 private:
  struct ByPacket {
    std::uint64_t packet;
    std::uint32_t event;
  };
  struct Key {  // of the hash table: open addressing, at most half full
    std::uint64_t qpn_psn = kNoKey;
    std::uint32_t first = 0, count = 0;  // events of this key in by_key_
  };
  struct State {
    std::uint64_t seen = 0, fired = 0;
  };
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

  static Firing describe(std::uint64_t index, Packet packet, Nanos now);
  /// Null when no event has this key.
  const Key* find(std::uint64_t qpn_psn);
  Key& slot(std::uint64_t qpn_psn);
  bool due(std::uint32_t event, std::uint8_t opcode);

  const std::vector<Event>& events_;
  std::vector<State> states_;
  std::vector<ByPacket> by_packet_;  // rising
  std::size_t next_by_packet_ = 0;
  std::vector<std::uint32_t> by_key_;  // events grouped by key, rising within a group
  std::vector<Key> keys_;
  std::vector<Firing> firings_;
  std::uint64_t firings_not_listed_ = 0;
};

template <class Fire>
void EventTable::match(std::uint64_t index, Packet packet, Nanos now, Fire fire) {
  while (next_by_packet_ < by_packet_.size() && by_packet_[next_by_packet_].packet < index) next_by_packet_++;
  std::size_t number = next_by_packet_;
  const bool by_number = number < by_packet_.size() && by_packet_[number].packet == index;
  if (!by_number && by_key_.empty()) return;
  Firing firing = describe(index, packet, now);
  const Key* key = firing.has_bth ? find(std::uint64_t{firing.qpn} << 24 | firing.psn) : nullptr;
  std::uint32_t place = 0;
  bool goes_on = true;  // all of a key's events count the packet, even when one before them ended it
  for (;;) {
    const bool more = number < by_packet_.size() && by_packet_[number].packet == index;
    const bool more_keys = key && place < key->count;
    if (!more && !more_keys) return;
    std::uint32_t event;
    if (more && (!more_keys || by_packet_[number].event < by_key_[key->first + place])) {
      event = by_packet_[number++].event;
    } else {
      event = by_key_[key->first + place++];
      if (!due(event, firing.opcode)) continue;
    }
    firing.event = event;
    if (goes_on) goes_on = fire(events_[event], firing);
  }
}

}  // namespace rocebox::link
