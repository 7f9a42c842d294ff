// SPDX-License-Identifier: BSD-3-Clause
// The explicit faults of one direction: finds those that a packet meets, and remembers what they did.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/link/config.h"
#include "kernels/link/match.h"
#include "runtime/kernel/report.h"

namespace rocebox::link {

/// One firing, as it is reported: 32 bytes.
struct Firing {
  Nanos at;
  std::uint64_t packet;    ///< number in its direction, from 1
  std::uint32_t event;     ///< place in the list, from 0
  std::uint32_t qpn, psn;  ///< as the packet came
  std::uint8_t opcode;
  bool has_bth, has_qpn_and_psn, applied;
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
    std::uint64_t value = kNoKey;
    std::uint32_t first = kNone;  // the chain of events of this key
  };
  struct State {
    std::uint64_t seen = 0, fired = 0;
    std::uint32_t next = kNone;  // in its chain
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  // Events with a relative PSN wait under their QPN until its first request has come. Their chains fall by number,
  // those of PSNs rise: each event is put in front as a rule.
  static std::uint64_t waiting_key(std::uint32_t qpn) { return std::uint64_t{1} << 63 | qpn; }
  static std::uint64_t psn_key(std::uint32_t qpn, std::uint32_t psn) { return std::uint64_t{qpn} << 24 | psn; }

  void report_events(Report& report) const;
  Key& slot(std::uint64_t key);
  void insert_rising(std::uint64_t key, std::uint32_t event);
  void first_request(const Facts& facts);
  bool due(std::uint32_t event, const Facts& facts);

  const std::vector<Event>& events_;
  std::vector<Matcher> matchers_;
  std::vector<State> states_;
  std::vector<ByPacket> by_packet_;  // rising
  std::size_t next_by_packet_ = 0;
  std::vector<Key> keys_;
  std::size_t keyed_ = 0, waiting_ = 0;  // events with a PSN; of these, the ones whose QP has not been seen
  std::vector<std::uint32_t> scanned_;   // events that every packet is held against, rising
  std::vector<Firing> firings_;
  std::uint64_t firings_not_listed_ = 0;
};

template <class Fire>
void EventTable::match(std::uint64_t index, Packet packet, Nanos now, Fire fire) {
  while (next_by_packet_ < by_packet_.size() && by_packet_[next_by_packet_].packet < index) next_by_packet_++;
  std::size_t number = next_by_packet_, scan = 0;
  const auto numbered = [&] {
    return number < by_packet_.size() && by_packet_[number].packet == index ? by_packet_[number].event : kNone;
  };
  if (keyed_ == 0 && scanned_.empty() && numbered() == kNone) return;
  const Facts facts = facts_of(packet);  // as it came: what fires may change it
  if (waiting_ && facts.is_request) first_request(facts);
  std::uint32_t keyed = keyed_ && facts.has_qpn_and_psn ? slot(psn_key(facts.qpn, facts.psn)).first : kNone;
  bool goes_on = true;  // all events that the packet meets count it, even when one before them ended it
  for (;;) {
    const std::uint32_t scanned = scan < scanned_.size() ? scanned_[scan] : kNone;
    const std::uint32_t event = std::min({numbered(), keyed, scanned});
    if (event == kNone) return;
    if (event == numbered()) {
      number++;
    } else {
      if (event == keyed)
        keyed = states_[event].next;
      else
        scan++;
      if (!due(event, facts)) continue;
    }
    if (goes_on)
      goes_on = fire(events_[event], Firing{now, index, event, facts.qpn, facts.psn, facts.opcode, facts.has_bth,
                                            facts.has_qpn_and_psn, true});
  }
}

}  // namespace rocebox::link
