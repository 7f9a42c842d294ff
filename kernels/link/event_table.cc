// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/event_table.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "runtime/roce/parse.h"

namespace rocebox::link {
namespace {

std::uint64_t key_of(const Event& event) {
  return static_cast<std::uint64_t>(event.qpn) << 24 | static_cast<std::uint64_t>(event.psn);
}

}  // namespace

EventTable::EventTable(const std::vector<Event>& events) : events_(events), states_(events.size()) {
  std::size_t firings = 0;
  for (std::uint32_t i = 0; i < events_.size(); i++) {
    firings = events_[i].packet == 0 && events_[i].occurrence == 0 ? kFiringsMax : firings + 1;
    if (events_[i].packet)
      by_packet_.push_back({static_cast<std::uint64_t>(events_[i].packet), i});
    else
      by_key_.push_back(i);
  }
  firings_.reserve(std::min(firings, kFiringsMax));
  std::sort(by_packet_.begin(), by_packet_.end(), [](const ByPacket& a, const ByPacket& b) {
    return a.packet != b.packet ? a.packet < b.packet : a.event < b.event;
  });
  std::stable_sort(by_key_.begin(), by_key_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key_of(events_[a]) < key_of(events_[b]); });
  keys_.resize(std::bit_ceil(2 * by_key_.size() + 1));
  for (std::uint32_t i = 0; i < by_key_.size(); i++) {
    Key& key = slot(key_of(events_[by_key_[i]]));
    if (key.count++ == 0) key.qpn_psn = key_of(events_[by_key_[i]]), key.first = i;
  }
}

EventTable::Key& EventTable::slot(std::uint64_t qpn_psn) {
  const std::size_t mask = keys_.size() - 1;
  std::size_t at = static_cast<std::size_t>(qpn_psn * 0x9e3779b97f4a7c15ull >> 32) & mask;
  while (keys_[at].qpn_psn != qpn_psn && keys_[at].qpn_psn != kNoKey) at = (at + 1) & mask;
  return keys_[at];
}

const EventTable::Key* EventTable::find(std::uint64_t qpn_psn) {
  const Key& key = slot(qpn_psn);
  return key.count ? &key : nullptr;
}

bool EventTable::due(std::uint32_t event, std::uint8_t opcode) {
  const Event& wanted = events_[event];
  if (wanted.opcode >= 0 && wanted.opcode != opcode) return false;
  const std::uint64_t seen = ++states_[event].seen;
  return wanted.occurrence == 0 || seen == static_cast<std::uint64_t>(wanted.occurrence);
}

Firing EventTable::describe(std::uint64_t index, Packet packet, Nanos now) {
  Firing firing{now, index, 0, 0, 0, packet.meta().opcode, packet.meta().bth_offset != 0, true};
  if (firing.has_bth) {
    firing.qpn = static_cast<std::uint32_t>(roce::bth(packet).destination_qp);
    firing.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  }
  return firing;
}

void EventTable::record(const Firing& firing) {
  states_[firing.event].fired++;
  if (firings_.size() < firings_.capacity())
    firings_.push_back(firing);
  else
    firings_not_listed_++;
}

void EventTable::report(Report& report) const {
  report.table("events", events_.size(), [&](Report& row, std::size_t i) {
    const Event& event = events_[i];
    row.count("event", static_cast<std::int64_t>(i + 1));
    row.count("packet", event.packet);
    row.count("qpn", event.qpn);
    row.count("psn", event.psn);
    row.text("do", action_name(event.action));
    row.count("fired", static_cast<std::int64_t>(states_[i].fired));
  });
  report.table("events_fired", firings_.size(), [&](Report& row, std::size_t i) {
    const Firing& firing = firings_[i];
    row.count("event", std::int64_t{firing.event} + 1);
    row.duration("at", firing.at);
    row.count("packet", static_cast<std::int64_t>(firing.packet));
    row.count("qpn", firing.has_bth ? std::int64_t{firing.qpn} : -1);
    row.count("psn", firing.has_bth ? std::int64_t{firing.psn} : -1);
    char unknown[16];
    std::snprintf(unknown, sizeof unknown, "opcode 0x%02x", unsigned{firing.opcode});
    const bool known = roce::opcode_info(firing.opcode).has(roce::kIsKnown);
    row.text("opcode", !firing.has_bth ? "none" : known ? roce::opcode_name(firing.opcode) : unknown);
    row.text("do", action_name(events_[firing.event].action));
    row.flag("applied", firing.applied);
  });
  report.count("events_fired_not_listed", static_cast<std::int64_t>(firings_not_listed_));
}

}  // namespace rocebox::link
