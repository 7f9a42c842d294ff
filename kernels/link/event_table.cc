// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/event_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/link/limits.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/psn.h"

namespace rocebox::link {
namespace {

std::string kind_text(const Event& event) {
  std::string text;
  for (const std::string& word : event.kind) (text += text.empty() ? "" : "|") += word;
  return text;
}

}  // namespace

EventTable::EventTable(const std::vector<Event>& events)
    : events_(events), matchers_(events.begin(), events.end()), states_(events.size()) {
  std::size_t firings = 0;
  for (std::uint32_t i = 0; i < events_.size(); i++) {
    const Event& event = events_[i];
    firings = event.packet == 0 && event.occurrence == 0 ? kFiringsMax : firings + 1;
    if (event.packet)
      by_packet_.push_back({static_cast<std::uint64_t>(event.packet), i});
    else if (event.is_scanned())
      scanned_.push_back(i);
    else
      keyed_++;
    if (event.packet == 0 && event.relative_psn >= 0) waiting_++;
  }
  firings_.reserve(std::min(firings, kFiringsMax));
  std::sort(by_packet_.begin(), by_packet_.end(), [](const ByPacket& a, const ByPacket& b) {
    return a.packet != b.packet ? a.packet < b.packet : a.event < b.event;
  });
  keys_.resize(std::bit_ceil(2 * (keyed_ + waiting_) + 1));
  for (auto i = static_cast<std::uint32_t>(events_.size()); i-- > 0;)
    if (events_[i].packet == 0 && events_[i].psn >= 0)
      insert_rising(psn_key(static_cast<std::uint32_t>(events_[i].qpn), static_cast<std::uint32_t>(events_[i].psn)), i);
  for (std::uint32_t i = 0; i < events_.size(); i++) {
    if (events_[i].packet != 0 || events_[i].relative_psn < 0) continue;
    Key& key = slot(waiting_key(static_cast<std::uint32_t>(events_[i].qpn)));
    key.value = waiting_key(static_cast<std::uint32_t>(events_[i].qpn));
    states_[i].next = std::exchange(key.first, i);
  }
}

// Where a key is, or where it would be.
EventTable::Key& EventTable::slot(std::uint64_t key) {
  const std::size_t mask = keys_.size() - 1;
  std::size_t at = static_cast<std::size_t>(key * 0x9e3779b97f4a7c15ull >> 32) & mask;
  while (keys_[at].value != key && keys_[at].value != kNoKey) at = (at + 1) & mask;
  return keys_[at];
}

void EventTable::insert_rising(std::uint64_t key, std::uint32_t event) {
  Key& found = slot(key);
  found.value = key;
  std::uint32_t* place = &found.first;
  while (*place < event) place = &states_[*place].next;
  states_[event].next = std::exchange(*place, event);
}

// The relative PSNs that waited for this request become PSNs.
void EventTable::first_request(const Facts& facts) {
  std::uint32_t* place = &slot(waiting_key(facts.qpn)).first;
  while (*place != kNone) {
    const std::uint32_t event = *place;
    if (!matchers_[event].addresses_match(facts)) {
      place = &states_[event].next;
      continue;
    }
    *place = states_[event].next;
    waiting_--;
    insert_rising(psn_key(facts.qpn, roce::psn_add(facts.psn, events_[event].relative_psn)), event);
  }
}

bool EventTable::due(std::uint32_t event, const Facts& facts) {
  const Event& wanted = events_[event];
  if (!matchers_[event].matches(facts) || (wanted.relative_psn >= 0 && !facts.is_request)) return false;
  const std::uint64_t seen = ++states_[event].seen;
  return wanted.occurrence == 0 || seen == static_cast<std::uint64_t>(wanted.occurrence);
}

void EventTable::record(const Firing& firing) {
  states_[firing.event].fired++;
  if (firings_.size() < firings_.capacity())
    firings_.push_back(firing);
  else
    firings_not_listed_++;
}

// The rarer conditions have columns only where one is written.
void EventTable::report_events(Report& report) const {
  const auto used = [this](auto is_written) { return std::any_of(events_.begin(), events_.end(), is_written); };
  const bool relative = used([](const Event& e) { return e.relative_psn >= 0; });
  const bool opcode = used([](const Event& e) { return e.opcode >= 0; });
  const bool kind = used([](const Event& e) { return !e.kind.empty(); });
  const bool source = used([](const Event& e) { return e.source.has_value(); });
  const bool destination = used([](const Event& e) { return e.destination.has_value(); });
  report.table("events", events_.size(), [&](Report& row, std::size_t i) {
    const Event& event = events_[i];
    row.count("event", static_cast<std::int64_t>(i + 1));
    row.count("packet", event.packet);
    row.count("qpn", event.qpn);
    row.count("psn", event.psn);
    if (relative) row.count("relative_psn", event.relative_psn);
    if (opcode) row.text("opcode", event.opcode < 0 ? "-" : roce::opcode_text(static_cast<std::uint8_t>(event.opcode)));
    if (kind) row.text("kind", event.kind.empty() ? "-" : kind_text(event));
    if (source) row.text("source", event.source ? roce::address_text(*event.source) : "-");
    if (destination) row.text("destination", event.destination ? roce::address_text(*event.destination) : "-");
    row.text("do", action_name(event.action));
    row.count("fired", static_cast<std::int64_t>(states_[i].fired));
  });
}

void EventTable::report(Report& report) const {
  report_events(report);
  report.table("events_fired", firings_.size(), [&](Report& row, std::size_t i) {
    const Firing& firing = firings_[i];
    row.count("event", std::int64_t{firing.event} + 1);
    row.duration("at", firing.at);
    row.count("packet", static_cast<std::int64_t>(firing.packet));
    row.count("qpn", firing.has_qpn_and_psn ? std::int64_t{firing.qpn} : -1);
    row.count("psn", firing.has_qpn_and_psn ? std::int64_t{firing.psn} : -1);
    row.text("opcode", firing.has_bth ? roce::opcode_text(firing.opcode) : "none");
    row.text("do", action_name(events_[firing.event].action));
    row.flag("applied", firing.applied);
  });
  report.count("events_fired_not_listed", static_cast<std::int64_t>(firings_not_listed_));
}

}  // namespace rocebox::link
