// SPDX-License-Identifier: BSD-3-Clause
// What the report says of connections, queue pairs, messages and events.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/sdr/observer/observer.h"
#include "runtime/roce/address.h"

namespace rocebox::sdr::observer {
namespace {

// `3, 7-9`; of many the first runs, and `...`.
std::string text_of(const MissingRuns& missing) {
  std::string text;
  for (const MissingRun& run : missing.runs) {
    if (run.end == 0) break;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", run.first);
    if (run.end > run.first + 1) text += fmt::format("-{}", run.end - 1);
  }
  return missing.has_more ? text + ", ..." : text;
}

constexpr const char* kEventNames[] = {"late", "duplicate", "outside", "immediate_conflict", "missing"};

}  // namespace

void Observer::report(Report& report) const {
  report.table("connections", connections_.groups(),
               [&](Report& r, std::size_t i) { report_connection(r, static_cast<std::uint32_t>(i)); });
  report.table("qps", connections_.qps(),
               [&](Report& r, std::size_t i) { report_qp(r, static_cast<std::uint32_t>(i)); });
  std::vector<const Slot*> open;
  for (std::uint32_t group = 0; group < connections_.groups(); group++) {
    const std::size_t first = open.size();
    for (std::uint32_t id = 0; id < connections_.group(group).ids; id++)
      if (const Slot& slot = messages_.slot(group, id); slot.number) open.push_back(&slot);
    std::sort(open.begin() + static_cast<std::ptrdiff_t>(first), open.end(),
              [](const Slot* a, const Slot* b) { return a->number < b->number; });
  }
  const std::span<const EndedMessage> ended = messages_.ended();
  report.table("messages", ended.size() + open.size(), [&](Report& r, std::size_t i) {
    if (i < ended.size()) return report_message(r, ended[i].slot, ended[i].missing);
    const Slot& slot = *open[i - ended.size()];
    const auto id = static_cast<std::uint32_t>(slot.number % connections_.group(slot.group).ids);
    const std::span<const std::uint64_t> bits = messages_.bitmap(slot.group, id);
    report_message(r, slot, messages_.missing_of(slot, bits));
    if (config_.bitmaps) report_chunks(r, slot, bits);
  });
  const std::span<const Event> events = messages_.events();
  report.table("events", events.size(), [&](Report& r, std::size_t i) { report_event(r, events[i]); });
}

void Observer::report_connection(Report& r, std::uint32_t index) const {
  const Group& group = connections_.group(index);
  const GroupKey& key = connections_.group_key(index);
  r.count("connection_number", index);
  r.text("source", key.is_numbered ? "" : roce::address_text(key.addresses.source));
  r.text("destination", roce::address_text(key.addresses.destination));
  if (key.is_numbered) r.count("configured_number", key.value);
  r.count("mtu", group.mtu);
  r.count("message_ids", group.ids);
  r.flag("message_ids_known", group.ids_known);
  r.count("packets", static_cast<std::int64_t>(group.packets));
  r.count("bytes", static_cast<std::int64_t>(group.bytes));
  r.count("messages", static_cast<std::int64_t>(group.messages));
  r.count("complete", static_cast<std::int64_t>(group.complete));
  r.count("duplicates", static_cast<std::int64_t>(group.duplicates));
  r.count("late", static_cast<std::int64_t>(group.late));
  r.count("outside", static_cast<std::int64_t>(group.outside));
  r.count("beyond", static_cast<std::int64_t>(group.beyond));
  r.count("missing_of_ended", static_cast<std::int64_t>(group.missing));
  r.count("state_bytes_a_message", static_cast<std::int64_t>(messages_.bytes_a_slot()));
  r.duration("first", group.first);
  r.duration("last", group.last);
}

void Observer::report_qp(Report& r, std::uint32_t index) const {
  const TransportQp& qp = connections_.qp(index);
  r.count("connection_number", qp.group);
  r.text("destination", roce::address_text(connections_.qp_key(index).addresses.destination));
  r.count("qpn", connections_.qp_key(index).qpn);
  r.count("generation", qp.generation);
  r.count("packets", static_cast<std::int64_t>(qp.packets));
  r.duration("first", qp.first);
  r.duration("last", qp.last);
}

void Observer::report_message(Report& r, const Slot& slot, const MissingRuns& missing) const {
  const Group& group = connections_.group(slot.group);
  const auto id = static_cast<std::uint32_t>(slot.number % group.ids);
  const std::uint32_t expected = slot.expected();
  r.count("connection_number", slot.group);
  r.count("message_number", static_cast<std::int64_t>(slot.number - connections_.first_number()));
  r.count("id_number", id);
  r.count("generation", static_cast<std::int64_t>(slot.number / group.ids % connections_.generations()));
  r.text("state", slot.complete ? "complete" : slot.missing() || slot.end ? "incomplete" : "whole so far");
  r.count("packets", slot.packets);
  r.count("expected", expected);
  r.flag("end_known", slot.end != 0);
  r.count("missing", slot.missing());
  r.count("bytes", static_cast<std::int64_t>(slot.bytes));
  r.count("chunks", messages_.chunks_of(expected));
  r.count("chunks_complete", slot.chunks);
  r.count("duplicates", slot.duplicates);
  r.count("late", slot.late);
  r.count("outside", slot.outside);
  r.count("empty", slot.empty);
  const unsigned fragments = layout_.fragments();
  const bool is_known = fragments != 0 && static_cast<unsigned>(__builtin_popcount(slot.fragments)) == fragments;
  r.flag("immediate_known", is_known);
  r.count("immediate", is_known ? slot.user : 0);
  r.count("immediate_conflicts", slot.conflicts);
  r.duration("first", slot.first);
  r.duration("last", slot.last);
  r.duration("complete_after", slot.complete ? slot.complete - slot.first : 0);
  r.text("missing_packets", text_of(missing));
}

// Of messages whose ID was not used again: of the others the bits are gone.
void Observer::report_chunks(Report& r, const Slot& slot, std::span<const std::uint64_t> bits) const {
  std::string text;
  const std::uint32_t bits_end = std::min(slot.expected(), static_cast<std::uint32_t>(config_.packets));
  for (std::uint32_t chunk = 0; chunk < messages_.chunks_of(bits_end); chunk++)
    text += messages_.has_chunk(bits, slot, chunk) ? '1' : '0';
  r.text("chunk_bitmap", text);
}

void Observer::report_event(Report& r, const Event& event) const {
  const Group& group = connections_.group(event.group);
  r.duration("at", event.at);
  r.text("what", kEventNames[static_cast<unsigned>(event.kind)]);
  r.count("connection_number", event.group);
  r.count("message_number", static_cast<std::int64_t>(event.number - connections_.first_number()));
  r.count("id_number", static_cast<std::int64_t>(event.number % group.ids));
  r.count("packet_offset", event.offset);
  r.count("qpn", event.qpn);
  r.count("packets_missing", event.packets);
}

}  // namespace rocebox::sdr::observer
