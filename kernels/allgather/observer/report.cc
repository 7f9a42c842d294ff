// SPDX-License-Identifier: BSD-3-Clause
// Observer: the report. Rows keep the order in which streams, collectives and groups were first seen.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/allgather/observer/limits.h"
#include "kernels/allgather/observer/observer.h"
#include "runtime/roce/address.h"

namespace rocebox::allgather {
namespace {

std::int64_t number(std::uint64_t count) { return static_cast<std::int64_t>(count); }

struct Gap {
  std::uint32_t first, count;
};

// The first runs of chunks that have not come, between those that have.
std::vector<Gap> gaps_of(const ChunkWindow& window, const std::uint64_t* words, std::uint32_t size) {
  std::vector<Gap> gaps;
  for (std::uint64_t chunk = window.lowest; window.count > 0 && chunk <= window.highest; chunk++) {
    const auto one = static_cast<std::uint32_t>(chunk);
    if (window.has(words, size, one)) continue;
    if (!gaps.empty() && gaps.back().first + gaps.back().count == one)
      gaps.back().count++;
    else if (gaps.size() == kGapsShown)
      break;
    else
      gaps.push_back({one, 1});
  }
  return gaps;
}

}  // namespace

std::string_view Observer::name_of(EventKind kind) {
  constexpr std::string_view kNames[] = {"skipped", "out_of_order",  "duplicate", "late",
                                         "overrun", "beyond_window", "restart"};
  return kNames[static_cast<unsigned>(kind)];
}

void Observer::report(Report& report) const {
  report_collectives(report);
  report_streams(report);
  report_groups(report);
  report_events(report);
}

void Observer::report_collectives(Report& report) const {
  struct Sum {
    std::set<roce::IpAddress> sources, groups;
    std::uint64_t chunks = 0, missing = 0, duplicates = 0, out_of_order = 0, late = 0, bytes = 0;
  };
  std::vector<Sum> sums(collective_table_.size());
  for (std::uint32_t i = 0; i < table_.size(); i++) {
    const Stream& stream = streams_[i];
    Sum& sum = sums[stream.collective];
    sum.sources.insert(table_.key(i).source);
    sum.groups.insert(table_.key(i).group);
    sum.chunks += stream.window.count;
    sum.missing += stream.window.missing(static_cast<std::uint64_t>(config_.block_chunks));
    sum.duplicates += stream.duplicates;
    sum.out_of_order += stream.out_of_order;
    sum.late += stream.late;
    sum.bytes += stream.bytes;
  }
  report.table("collectives", sums.size(), [&](Report& r, std::size_t i) {
    const std::uint32_t tag = collective_table_.key(static_cast<std::uint32_t>(i));
    r.count("collective_number", collective_of(tag));
    r.count("generation_number", generation_of(tag));
    r.count("groups", number(sums[i].groups.size()));
    r.count("sources", number(sums[i].sources.size()));
    r.count("chunks", number(sums[i].chunks));
    r.count("missing", number(sums[i].missing));
    r.count("duplicates", number(sums[i].duplicates));
    r.count("out_of_order", number(sums[i].out_of_order));
    r.count("late", number(sums[i].late));
    r.count("bytes", number(sums[i].bytes));
    r.duration("first_at", collectives_[i].first_at);
    r.duration("last_at", collectives_[i].last_at);
  });
}

void Observer::report_streams(Report& report) const {
  report.table("streams", table_.size(), [&](Report& r, std::size_t row) {
    const auto index = static_cast<std::uint32_t>(row);
    const StreamKey& key = table_.key(index);
    const Stream& stream = streams_[index];
    r.text("group", roce::address_text(key.group));
    r.text("source", roce::address_text(key.source));
    r.count("source_qpn", key.source_qpn);
    r.count("collective_number", collective_of(key.tag));
    r.count("generation_number", generation_of(key.tag));
    r.count("lowest_number", stream.window.lowest);
    r.count("highest_number", stream.window.highest);
    r.count("chunks", stream.window.count);
    r.count("missing", number(stream.window.missing(static_cast<std::uint64_t>(config_.block_chunks))));
    r.count("duplicates", stream.duplicates);
    r.count("out_of_order", stream.out_of_order);
    r.count("late", stream.late);
    r.count("beyond_window", stream.beyond_window);
    r.count("restarts", stream.restarts);
    r.count("bytes", number(stream.bytes));
    r.duration("first_at", stream.first_at);
    r.duration("last_at", stream.last_at);
    const std::vector<Gap> gaps = gaps_of(stream.window, words(index), window_);
    r.table("gaps", gaps.size(), [&](Report& g, std::size_t i) {
      g.count("chunk_number", gaps[i].first);
      g.count("count", gaps[i].count);
    });
  });
}

void Observer::report_groups(Report& report) const {
  report.table("groups", group_table_.size(), [&](Report& r, std::size_t i) {
    const StagingModel& staging = groups_[i];
    r.text("group", roce::address_text(group_table_.key(static_cast<std::uint32_t>(i)).address));
    r.count("chunks", number(staging.chunks));
    r.peak("slots_max", staging.taken_max);
    r.peak("staging_bytes_max", number(std::uint64_t{staging.taken_max} * staging_.slot_bytes));
    r.duration("held_max", staging.held_max);
    r.duration("held_mean", staging.chunks ? number(staging.held_sum / staging.chunks) : 0);
    r.count("overruns", number(staging.overruns));
  });
}

void Observer::report_events(Report& report) const {
  report.table("events", events_size_, [&](Report& r, std::size_t i) {
    const Event& event = events_[i];
    const StreamKey& key = table_.key(event.stream);
    r.duration("at", event.at);
    r.text("what", name_of(event.kind));
    r.text("group", roce::address_text(key.group));
    r.text("source", roce::address_text(key.source));
    r.count("collective_number", collective_of(key.tag));
    r.count("generation_number", generation_of(key.tag));
    r.count("chunk_number", event.chunk);
    r.count("chunks", event.count);
  });
  report.count("events_unlisted", number(events_unlisted_));
}

}  // namespace rocebox::allgather
